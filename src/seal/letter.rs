//! Letters: bytes of any length that only who holds an accepted secret can have written, and can read.
//!
//! Version (1) ‖ key id (4) ‖ salt (16) ‖ AES-256-GCM of the bytes ‖ tag (16), the first 21 bytes being the associated
//! data; key and nonce come from the random salt as those of a bearer do. A letter says nothing of when it was written:
//! whoever reads one must be able to bear an old one.

use aes_gcm::aead::{Aead as _, Payload};

use super::key::random;
use super::{SealError, SiteKeys};

const VERSION: u8 = 1;
const HEAD: usize = 21;
/// What keys and nonces of letters are made for.
const PURPOSE: &[u8] = b"letter";

/// No accepted key opens the letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no accepted key opens the letter")]
pub struct LetterError;

impl SiteKeys {
    /// Seals a letter with the sending key.
    pub fn seal_letter(&self, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut salt = [0; 16];
        random(&mut salt)?;
        self.seal_letter_with(plain, salt)
    }

    /// Opens a letter with whichever accepted key it is under.
    pub fn open_letter(&self, letter: &[u8]) -> Result<Vec<u8>, LetterError> {
        let (head, sealed) = letter.split_first_chunk::<HEAD>().ok_or(LetterError)?;
        let [version, a, b, c, d, salt @ ..] = *head;
        if version != VERSION {
            return Err(LetterError);
        }
        let plain = self.by_id([a, b, c, d]).find_map(|(_, set)| {
            let (cipher, nonce) = set.cipher(PURPOSE, salt);
            cipher.decrypt((&nonce).into(), Payload { msg: sealed, aad: head }).ok()
        });
        plain.ok_or(LetterError)
    }

    fn seal_letter_with(&self, plain: &[u8], salt: [u8; 16]) -> Result<Vec<u8>, SealError> {
        let set = self.sending().ok_or(SealError::NoSecret)?;
        let (cipher, nonce) = set.cipher(PURPOSE, salt);
        let mut letter = vec![VERSION];
        letter.extend_from_slice(&set.id);
        letter.extend_from_slice(&salt);
        let sealed = cipher
            .encrypt((&nonce).into(), Payload { msg: plain, aad: &letter })
            .map_err(|_refused| SealError::Cipher)?;
        letter.extend_from_slice(&sealed);
        Ok(letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{hex, unhex};
    use crate::seal::Secret;

    fn keys(secrets: &[&str]) -> SiteKeys {
        let secrets: Vec<_> = secrets.iter().map(|s| Secret::parse(s.as_bytes()).unwrap()).collect();
        SiteKeys::derive("lab", &secrets).unwrap()
    }

    /// `tests/fixtures/frames/letter-v1.json`: a letter as the first release wrote it.
    #[test]
    fn letters_are_read_and_written_as_ever() {
        let text = include_str!("../../tests/fixtures/frames/letter-v1.json");
        let vector: serde_json::Value = serde_json::from_str(text).unwrap();
        let bytes = |name: &str| unhex(vector[name].as_str().unwrap()).unwrap();
        let keys = keys(&[vector["secret"].as_str().unwrap()]);
        let (plain, salt) = (vector["plain"].as_str().unwrap().as_bytes(), bytes("salt").try_into().unwrap());
        assert_eq!(hex(&keys.seal_letter_with(plain, salt).unwrap()), vector["letter"].as_str().unwrap());
        assert_eq!(keys.open_letter(&bytes("letter")).unwrap(), plain);
    }

    #[test]
    fn only_who_has_an_accepted_secret_writes_and_reads() {
        let (old, new) = ("an old secret of the site", "a new secret of the site");
        let letter = keys(&[old]).seal_letter(b"orders").unwrap();
        assert_ne!(letter, keys(&[old]).seal_letter(b"orders").unwrap(), "no salt comes twice");
        assert_eq!(keys(&[new, old]).open_letter(&letter).unwrap(), b"orders");
        assert!(keys(&[new]).open_letter(&letter).is_err());
        for place in 0..letter.len() {
            let mut changed = letter.clone();
            changed[place] ^= 1;
            assert!(keys(&[old]).open_letter(&changed).is_err(), "{place}");
            assert!(keys(&[old]).open_letter(&letter[..place]).is_err(), "{place}");
            if place == 30 {
                break;
            }
        }
        assert!(keys(&[old]).open_letter(&letter[..letter.len() - 1]).is_err());
    }
}
