//! What the peers of a network have in common.

use zeroize::Zeroizing;

use crate::digest::unhex;

/// The secret of mORMot peers; never printed.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Why a secret is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The peers refuse it too.
    #[error("the secret is empty")]
    Empty,
    /// `hex:` without hexadecimal.
    #[error("after \"hex:\" there must be an even number of hexadecimal digits")]
    Hex,
}

impl Secret {
    /// Below this length a secret can be guessed from one recorded frame: nothing in the protocol makes that slow.
    pub const WEAK: usize = 16;

    /// Reads the content of a secret file or variable: one line end at the end is not part of it.
    pub fn parse(text: &[u8]) -> Result<Self, SecretError> {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let bytes = match text.strip_prefix(b"hex:") {
            Some(hex) => {
                let hex = str::from_utf8(hex).map_err(|_no_text| SecretError::Hex)?;
                unhex(hex).map_err(|_no_hex| SecretError::Hex)?
            }
            None => text.to_vec(),
        };
        if bytes.is_empty() {
            return Err(SecretError::Empty);
        }
        Ok(Self(Zeroizing::new(bytes)))
    }

    /// Whether it can be guessed.
    pub fn is_weak(&self) -> bool {
        self.0.len() < Self::WEAK
    }

    /// The bytes themselves, not to be shown.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}
