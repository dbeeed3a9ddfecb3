//! What others may see of a running transfer.

/// A running transfer as the status pages show it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TransferView {
    /// Names this transfer while it runs.
    pub id: String,
    /// What is fetched, secrets left out.
    pub url: String,
    /// `origin` or `peer`.
    pub source: &'static str,
    /// Bytes received so far.
    pub received: u64,
    /// The whole size, once known.
    pub size: Option<u64>,
    /// How many readers follow it.
    pub readers: usize,
    /// When it began.
    #[serde(skip)]
    pub started_at: crate::clock::Timestamp,
}
