//! Why a want could not be met.

use crate::origin::OriginError;

/// Why a want could not be met: a sentence for the client.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The origin could not be asked, or answered nonsense.
    #[error("{0}")]
    Origin(#[from] OriginError),
    /// No source could deliver it.
    #[error("{0}")]
    Source(String),
    /// What came does not have the digest it must have.
    #[error("the bytes do not have the stated digest")]
    Digest,
    /// This client holds the first bytes of something that turned out wrong.
    #[error("an earlier download of this URL was cut because its bytes were wrong")]
    Cut,
    /// An administrator forbade it.
    #[error("blocked here: {0}")]
    Blocked(String),
    /// `only-if-cached`, and it is not.
    #[error("not held here, and the request allows no other source")]
    NotHeld,
    /// It turned out to be of something else before anything went out: ask again.
    #[error("the file changed at the origin")]
    Again,
    /// The program is stopping.
    #[error("larder is stopping")]
    Stopping,
}
