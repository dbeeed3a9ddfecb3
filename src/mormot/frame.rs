//! Sealed messages: the frame of 244 bytes, its keys, and the same frame as a token of HTTP.
//!
//! The order of refusal is the order of cost: length, seeded checksum, cipher, then what the message says.
//! A refusal is counted by whoever asked and held against nobody: an address of UDP is anybody's claim.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use aes_gcm::aead::AeadInOut as _;
use aes_gcm::{Aes128Gcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::Secret;
use super::message::{LENGTH, Message};

/// The length of a frame.
pub const FRAME: usize = 244;
/// The length of a frame as a token: base64url without padding.
pub const TOKEN: usize = 326;

const IV: usize = 16;
const TAG: usize = 16;
/// What is enciphered: the message and a block that says nothing.
const PLAIN: usize = LENGTH + PAD.len();
const PAD: [u8; 16] = [16; 16];
/// The two labels of the derivation.
const FIRST: &[u8] = b"4b0fb62af680447c9d0604fc74b908fa";
const SECOND: &[u8] = b"2b6f48c3ffe847b9beb6d8de602c9f25";

/// The bytes of a frame.
pub type Frame = [u8; FRAME];

/// What a secret gives.
pub struct Keys {
    cipher: Aes128Gcm,
    /// The seed of the checksum.
    magic: u32,
    nonces: Nonces,
}

/// Why something is no frame of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Of another length.
    #[error("not 244 bytes")]
    Length,
    /// Noise, or under another secret. Nothing was deciphered.
    #[error("another checksum")]
    Checksum,
    /// It fits the checksum, and the cipher refused it.
    #[error("a forged frame")]
    Forged,
    /// Authentic, with a number that nobody knows.
    #[error("a message of an unknown sort")]
    Unknown,
}

/// Why no keys or no frame could be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// No random numbers for nonces.
    #[error("the system has no random numbers")]
    Random,
    /// The cipher refused.
    #[error("the cipher refused to seal")]
    Cipher,
}

impl Keys {
    /// Derives the keys of a secret.
    pub fn derive(secret: &Secret) -> Result<Self, SealError> {
        let first = hmac(FIRST, secret.bytes())?;
        let second = hmac(first.as_slice(), SECOND)?;
        let (key, _) = first.split_first_chunk::<16>().ok_or(SealError::Cipher)?;
        let (_, magic) = second.split_last_chunk::<4>().ok_or(SealError::Cipher)?;
        Ok(Self {
            cipher: Aes128Gcm::new(key.into()),
            magic: u32::from_le_bytes(*magic),
            nonces: Nonces::new()?,
        })
    }

    /// Seals a message under a nonce of its own.
    pub fn seal(&self, message: &Message) -> Result<Frame, SealError> {
        let mut frame = [0; FRAME];
        self.seal_into(message, &mut frame)?;
        Ok(frame)
    }

    /// The same where the frame is to stand: nothing is copied.
    pub fn seal_into(&self, message: &Message, frame: &mut Frame) -> Result<(), SealError> {
        self.seal_with(&self.nonces.next(), message, frame)
    }

    /// Seals under this initialization vector, whose last four bytes the cipher does not use.
    fn seal_with(&self, iv: &[u8; IV], message: &Message, frame: &mut Frame) -> Result<(), SealError> {
        let parts = parts_mut(frame).ok_or(SealError::Cipher)?;
        let (text, padding) = parts.text.split_first_chunk_mut::<LENGTH>().ok_or(SealError::Cipher)?;
        message.encode_into(text);
        padding.copy_from_slice(&PAD);
        *parts.iv = *iv;
        let nonce = iv.first_chunk::<12>().ok_or(SealError::Cipher)?;
        let tag = self.cipher.encrypt_inout_detached(nonce.into(), &[], parts.text.as_mut_slice().into());
        parts.tag.copy_from_slice(&tag.map_err(|_refused| SealError::Cipher)?);
        if let Some((body, checksum)) = frame.split_last_chunk_mut::<4>() {
            *checksum = crc32c::crc32c_append(self.magic, body).to_le_bytes();
        }
        Ok(())
    }

    /// Opens a datagram.
    pub fn open(&self, datagram: &[u8]) -> Result<Message, Refusal> {
        let frame: &Frame = datagram.try_into().map_err(|_length| Refusal::Length)?;
        let (body, checksum) = frame.split_last_chunk::<4>().ok_or(Refusal::Length)?;
        if crc32c::crc32c_append(self.magic, body) != u32::from_le_bytes(*checksum) {
            return Err(Refusal::Checksum);
        }
        let mut frame = *frame;
        let parts = parts_mut(&mut frame).ok_or(Refusal::Length)?;
        let nonce = parts.iv.first_chunk::<12>().ok_or(Refusal::Length)?;
        let text = parts.text.as_mut_slice().into();
        self.cipher
            .decrypt_inout_detached(nonce.into(), &[], text, (&*parts.tag).into())
            .map_err(|_refused| Refusal::Forged)?;
        let (text, padding) = parts.text.split_first_chunk::<LENGTH>().ok_or(Refusal::Length)?;
        if *padding != PAD {
            return Err(Refusal::Forged);
        }
        Message::decode(text).ok_or(Refusal::Unknown)
    }

    /// A message as a token.
    pub fn seal_token(&self, message: &Message) -> Result<String, SealError> {
        Ok(URL_SAFE_NO_PAD.encode(self.seal(message)?))
    }

    /// Opens a token.
    pub fn open_token(&self, token: &str) -> Result<Message, Refusal> {
        let mut frame = [0; FRAME];
        // a longer one would not fit
        let length = URL_SAFE_NO_PAD.decode_slice(token, &mut frame).map_err(|_no_token| Refusal::Length)?;
        if token.len() != TOKEN || length != FRAME {
            return Err(Refusal::Length);
        }
        self.open(&frame)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// The parts of a frame before its checksum.
struct Parts<'a> {
    iv: &'a mut [u8; IV],
    text: &'a mut [u8; PLAIN],
    tag: &'a mut [u8; TAG],
}

fn parts_mut(frame: &mut Frame) -> Option<Parts<'_>> {
    let (iv, rest) = frame.split_first_chunk_mut::<IV>()?;
    let (text, rest) = rest.split_first_chunk_mut::<PLAIN>()?;
    let (tag, _) = rest.split_first_chunk_mut::<TAG>()?;
    Some(Parts { iv, text, tag })
}

fn hmac(key: &[u8], message: &[u8]) -> Result<Zeroizing<[u8; 32]>, SealError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_length| SealError::Cipher)?;
    mac.update(message);
    Ok(Zeroizing::new(mac.finalize().into_bytes().into()))
}

/// Nonces that never come twice under one key: a random start of 96 bits, of which 64 count up. All nodes of a
/// network have the same key, and only chance keeps them apart.
struct Nonces {
    fixed: [u8; 8],
    count: AtomicU64,
}

impl Nonces {
    fn new() -> Result<Self, SealError> {
        let (mut fixed, mut start) = ([0; 8], [0; 8]);
        getrandom::fill(&mut fixed)
            .and_then(|()| getrandom::fill(&mut start))
            .map_err(|_| SealError::Random)?;
        Ok(Self { fixed, count: AtomicU64::new(u64::from_le_bytes(start)) })
    }

    fn next(&self) -> [u8; IV] {
        let [a, b, c, d, rest @ ..] = self.fixed;
        let [e, f, g, h, i, j, k, l] = self.count.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let [m, n, o, p] = rest;
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }
}

#[cfg(test)]
mod tests;
