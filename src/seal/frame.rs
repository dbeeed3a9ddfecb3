//! Sealed datagrams: the format, its cheap checks before decryption, and the keys of boots already met.
//!
//! The order of refusal is the order of cost: length, magic and version, key id, salted checksum, and only then
//! the cipher. Keys of foreign boots are kept once a frame under them was authentic, so that forgers can fill
//! nothing.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use zeroize::Zeroizing;

use super::key::{KeySet, random};
use super::{BootId, SealError, SiteKeys};

/// The wire version.
pub const VERSION: u8 = 1;
/// The longest frame.
pub const MAX_FRAME: usize = 1200;
/// The longest body of a frame: the greatest multiple of 64 within a frame, less header, length and tag.
pub const MAX_BODY: usize = MAX_FRAME / BLOCK * BLOCK - OVERHEAD;

const MAGIC: [u8; 2] = *b"LD";
const BLOCK: usize = 64;
/// Header without checksum and nonce: the associated data.
const HEADER: usize = 24;
const TAG: usize = 16;
const OVERHEAD: usize = HEADER + 4 + 12 + 2 + TAG;
/// How many keys of foreign boots are kept.
const KEPT_BOOTS: usize = 1024;

/// Seals this run's frames and opens everybody's. A cheap clone; all clones share the nonce counter.
#[derive(Clone)]
pub struct Sealer(Arc<Inner>);

struct Inner {
    keys: SiteKeys,
    boot: BootId,
    cipher: Aes256Gcm,
    /// The first four bytes of all nonces of this sealer.
    nonce_prefix: [u8; 4],
    nonce_counter: AtomicU64,
    met: Mutex<Met>,
}

/// The ciphers of foreign boots by place of the key set and boot; the oldest leaves first.
#[derive(Default)]
struct Met {
    ciphers: HashMap<(usize, BootId), Aes256Gcm>,
    order: VecDeque<(usize, BootId)>,
}

/// A frame that opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The run of the node that sealed it.
    pub boot: BootId,
    /// What was sealed.
    pub body: Vec<u8>,
    /// Which accepted secret it is under; 0 is the sending one.
    pub key: usize,
}

/// Why a frame did not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No frame of this site: wrong length, magic or checksum. Nothing was decrypted.
    #[error("not a frame")]
    Noise,
    /// A frame of a later wire version. Nothing was decrypted.
    #[error("a frame of version {0}")]
    Newer(u8),
    /// Under a secret that is not accepted here. Nothing was decrypted.
    #[error("a frame under a secret that is not accepted here")]
    UnknownKey,
    /// It passed every cheap check, and the cipher refused it.
    #[error("a forged frame")]
    Forged,
}

/// A frame that passed the cheap checks.
pub struct Checked<'a> {
    sealer: &'a Inner,
    boot: BootId,
    header: &'a [u8; HEADER],
    nonce: &'a [u8; 12],
    sealed: &'a [u8],
    /// The key set that the checksum fits.
    set: (usize, &'a KeySet),
    cipher: Option<Aes256Gcm>,
}

impl Sealer {
    /// A sealer for this run. Nonces are a random start counted up, so that two sealers of one run (after a
    /// reload of the secrets) do not meet either.
    pub fn new(keys: SiteKeys, boot: BootId) -> Result<Self, SealError> {
        let (mut nonce_prefix, mut start) = ([0; 4], [0; 8]);
        random(&mut nonce_prefix)?;
        random(&mut start)?;
        let cipher = keys.sending().ok_or(SealError::NoSecret)?.frame_cipher(boot);
        let nonce_counter = AtomicU64::new(u64::from_be_bytes(start));
        Ok(Self(Arc::new(Inner { keys, boot, cipher, nonce_prefix, nonce_counter, met: Mutex::default() })))
    }

    /// The run whose frames it seals.
    pub fn boot(&self) -> BootId {
        self.0.boot
    }

    /// Seals a body of at most [`MAX_BODY`] bytes.
    pub fn seal(&self, body: &[u8]) -> Result<Vec<u8>, SealError> {
        let count = self.0.nonce_counter.fetch_add(1, Ordering::Relaxed);
        let nonce: Vec<u8> = self.0.nonce_prefix.into_iter().chain(count.to_be_bytes()).collect();
        let nonce: [u8; 12] = nonce.try_into().map_err(|_length| SealError::Cipher)?;
        self.0.seal_with(nonce, body)
    }

    /// The cheap checks: says whether it is worth opening, and whether its run has been met before.
    pub fn check<'a>(&'a self, frame: &'a [u8]) -> Result<Checked<'a>, OpenError> {
        self.0.check(frame)
    }

    /// Checks and opens.
    pub fn open(&self, frame: &[u8]) -> Result<Opened, OpenError> {
        self.check(frame)?.open()
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("boot", &self.0.boot).finish_non_exhaustive()
    }
}

impl Checked<'_> {
    /// Whether a frame of the same run opened before: then opening it costs little, and a flood of forgeries
    /// under other runs need not delay it.
    pub const fn is_familiar(&self) -> bool {
        self.cipher.is_some()
    }

    /// Opens it.
    pub fn open(self) -> Result<Opened, OpenError> {
        let (key, set) = self.set;
        let (cipher, fresh) = match self.cipher {
            Some(cipher) => (cipher, false),
            None => (set.frame_cipher(self.boot), true),
        };
        let plain = cipher
            .decrypt(self.nonce.into(), Payload { msg: self.sealed, aad: self.header })
            .map_err(|_refused| OpenError::Forged)?;
        let body = unpad(&plain).ok_or(OpenError::Forged)?.to_vec();
        if fresh {
            self.sealer.met().keep((key, self.boot), cipher);
        }
        Ok(Opened { boot: self.boot, body, key })
    }
}

impl fmt::Debug for Checked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").field("boot", &self.boot).finish_non_exhaustive()
    }
}

impl Inner {
    fn seal_with(&self, nonce: [u8; 12], body: &[u8]) -> Result<Vec<u8>, SealError> {
        let set = self.keys.sending().ok_or(SealError::NoSecret)?;
        let plain = pad(body)?;
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&[VERSION, 0]);
        header.extend_from_slice(&set.id);
        header.extend_from_slice(&self.boot.to_bytes());
        let sealed = self
            .cipher
            .encrypt((&nonce).into(), Payload { msg: &plain, aad: &header })
            .map_err(|_refused| SealError::Cipher)?;
        let checksum = checksum(set, &header, &nonce, &sealed);
        let mut frame = header;
        frame.extend_from_slice(&checksum.to_be_bytes());
        frame.extend_from_slice(&nonce);
        frame.extend_from_slice(&sealed);
        Ok(frame)
    }

    fn check<'a>(&'a self, frame: &'a [u8]) -> Result<Checked<'a>, OpenError> {
        let noise = OpenError::Noise;
        let (header, rest) = frame.split_first_chunk::<HEADER>().ok_or(noise)?;
        let (checksum_bytes, rest) = rest.split_first_chunk::<4>().ok_or(noise)?;
        let (nonce, sealed) = rest.split_first_chunk::<12>().ok_or(noise)?;
        let [magic_l, magic_d, version, _, a, b, c, d, boot @ ..] = *header;
        if [magic_l, magic_d] != MAGIC || frame.len() > MAX_FRAME {
            return Err(noise);
        }
        if version > VERSION {
            return Err(OpenError::Newer(version));
        }
        // a whole block has room for the length and the tag
        if version != VERSION || !frame.len().is_multiple_of(BLOCK) {
            return Err(noise);
        }
        let boot = BootId::from_bytes(boot);
        let mut sets = self.keys.by_id([a, b, c, d]).peekable();
        if sets.peek().is_none() {
            return Err(OpenError::UnknownKey);
        }
        let stated = u32::from_be_bytes(*checksum_bytes);
        let set = sets.find(|(_, set)| checksum(set, header, nonce, sealed) == stated).ok_or(noise)?;
        let cipher = self.met().ciphers.get(&(set.0, boot)).cloned();
        Ok(Checked { sealer: self, boot, header, nonce, sealed, set, cipher })
    }

    fn met(&self) -> std::sync::MutexGuard<'_, Met> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Met {
    fn keep(&mut self, of: (usize, BootId), cipher: Aes256Gcm) {
        if self.ciphers.insert(of, cipher).is_some() {
            return;
        }
        self.order.push_back(of);
        if self.order.len() > KEPT_BOOTS {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.ciphers.remove(&oldest));
        }
    }
}

impl KeySet {
    /// The cipher of one run's frames.
    fn frame_cipher(&self, boot: BootId) -> Aes256Gcm {
        let mut key = Zeroizing::new([0; 32]);
        self.expand(&[b"larder frame v1", &boot.to_bytes()], key.as_mut_slice());
        let key: &[u8; 32] = &key;
        Aes256Gcm::new(key.into())
    }
}

/// Not a defence (a forger who saw a frame can fit it): it spares the cipher the network's noise.
fn checksum(set: &KeySet, header: &[u8], nonce: &[u8], sealed: &[u8]) -> u32 {
    let parts: [&[u8]; 4] = [&set.checksum_salt, header, nonce, sealed];
    parts.into_iter().fold(0, crc32c::crc32c_append)
}

/// Length, body, and zeros up to the next whole block of the frame.
fn pad(body: &[u8]) -> Result<Vec<u8>, SealError> {
    let length = u16::try_from(body.len()).map_err(|_above| SealError::TooLong(body.len()))?;
    if body.len() > MAX_BODY {
        return Err(SealError::TooLong(body.len()));
    }
    let mut plain = length.to_be_bytes().to_vec();
    plain.extend_from_slice(body);
    plain.resize((body.len() + OVERHEAD).next_multiple_of(BLOCK) - (OVERHEAD - 2), 0);
    Ok(plain)
}

fn unpad(plain: &[u8]) -> Option<&[u8]> {
    let (length, rest) = plain.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests;
