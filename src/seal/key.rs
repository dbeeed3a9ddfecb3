//! From a secret to keys: Argon2id makes the site key slow to guess, HKDF makes one key a purpose from it.

use aes_gcm::{Aes256Gcm, KeyInit as _};
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// The fewest bytes of a secret.
const MIN_SECRET: usize = 16;
/// Argon2id version 0x13: memory in KiB, passes, lanes. Part of wire version 1.
const ARGON2: (u32, u32, u32) = (19 * 1024, 2, 1);
/// Secrets that stand in documentation somewhere, compared without case and punctuation.
const SAMPLES: [&str; 14] = [
    "changemechangeme",
    "changemechangemechangeme",
    "changethissecret",
    "changethissecretnow",
    "replacethissecret",
    "replacewithyoursecret",
    "correcthorsebatterystaple",
    "thisisasecretkey",
    "mysecretpassword",
    "supersecretpassword",
    "supersecretsecret",
    "passwordpassword",
    "larderlarderlarder",
    "yoursecrethereplease",
];

/// What the operator keeps the same on all nodes of a site.
pub struct Secret(Zeroizing<Vec<u8>>);

/// Why a secret is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Fewer than 16 bytes.
    #[error("the secret is shorter than 16 bytes: make one with `larder secret new`")]
    TooShort,
    /// From somebody's documentation, or of one repeated character.
    #[error("the secret is a sample that everybody knows: make one with `larder secret new`")]
    Sample,
}

/// Why something could not be derived or sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// No secret was given.
    #[error("no secret was given")]
    NoSecret,
    /// The key derivation failed, in practice for want of memory.
    #[error("the site key could not be derived")]
    Derivation,
    /// The system gave no random bytes.
    #[error("the system has no random numbers")]
    Random,
    /// The body does not fit into a frame.
    #[error("a body of {0} bytes does not fit into a frame")]
    TooLong(usize),
    /// The cipher refused.
    #[error("the cipher refused to seal")]
    Cipher,
}

/// The keys of a site, one set a secret; the first set seals, all of them open. A cheap clone.
#[derive(Clone)]
pub struct SiteKeys(Arc<[KeySet]>);

/// What one secret gives.
pub(super) struct KeySet {
    /// Public: tells the receiver which secret a frame or token is under.
    pub(super) id: [u8; 4],
    pub(super) checksum_salt: [u8; 16],
    site_key: Zeroizing<[u8; 32]>,
}

impl Secret {
    /// Reads the content of a secret file or variable: one line end at the end is not part of it.
    pub fn parse(text: &[u8]) -> Result<Self, SecretError> {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() < MIN_SECRET {
            return Err(SecretError::TooShort);
        }
        let plain: Zeroizing<Vec<u8>> = Zeroizing::new(
            text.iter().filter(|b| b.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect(),
        );
        let repeated = text.iter().all(|byte| Some(byte) == text.first());
        if repeated || SAMPLES.iter().any(|sample| sample.as_bytes() == plain.as_slice()) {
            return Err(SecretError::Sample);
        }
        Ok(Self(Zeroizing::new(text.to_vec())))
    }

    /// Whether it is these bytes.
    pub fn is(&self, bytes: &[u8]) -> bool {
        subtle::ConstantTimeEq::ct_eq(self.0.as_slice(), bytes).into()
    }

    /// A new secret to write into a file: 32 random bytes in base64url.
    pub fn generate() -> Result<String, SealError> {
        let mut bytes = Zeroizing::new([0; 32]);
        random(bytes.as_mut_slice())?;
        Ok(URL_SAFE_NO_PAD.encode(bytes.as_slice()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl SiteKeys {
    /// Derives the keys of all accepted secrets, the sending one first. Slow on purpose (about 20 ms and 19 MiB
    /// a secret): call it from a thread that may block.
    pub fn derive(site: &str, secrets: &[Secret]) -> Result<Self, SealError> {
        if secrets.is_empty() {
            return Err(SealError::NoSecret);
        }
        secrets.iter().map(|secret| KeySet::derive(site, secret)).collect::<Result<_, _>>().map(Self)
    }

    /// A short public name of the sending key: equal on all machines that were given the same secret and site.
    pub fn fingerprint(&self) -> String {
        let mut bytes = [0; 8];
        if let Some(first) = self.0.first() {
            first.expand(&[b"larder fingerprint v1"], &mut bytes);
        }
        let text = crate::digest::hex(&bytes);
        let groups: Vec<&str> = text.as_bytes().chunks(4).filter_map(|g| str::from_utf8(g).ok()).collect();
        groups.join("-")
    }

    /// The set that seals.
    pub(super) fn sending(&self) -> Option<&KeySet> {
        self.0.first()
    }

    /// The accepted sets of this id with their place; ids are short, so that two sets could share one.
    pub(super) fn by_id(&self, id: [u8; 4]) -> impl Iterator<Item = (usize, &KeySet)> {
        self.0.iter().enumerate().filter(move |(_, set)| set.id == id)
    }
}

impl fmt::Debug for SiteKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SiteKeys({})", self.0.len())
    }
}

impl KeySet {
    fn derive(site: &str, secret: &Secret) -> Result<Self, SealError> {
        let mut hasher = Sha256::new_with_prefix(b"larder site v1");
        hasher.update(site.as_bytes());
        let hash: [u8; 32] = hasher.finalize().into();
        let salt = hash.first_chunk::<16>().ok_or(SealError::Derivation)?;
        let (memory, passes, lanes) = ARGON2;
        let parameters = argon2::Params::new(memory, passes, lanes, Some(32))
            .map_err(|_out_of_range| SealError::Derivation)?;
        let mut site_key = Zeroizing::new([0; 32]);
        argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, parameters)
            .hash_password_into(&secret.0, salt, site_key.as_mut_slice())
            .map_err(|_no_memory| SealError::Derivation)?;
        let mut set = Self { id: [0; 4], checksum_salt: [0; 16], site_key };
        let (mut id, mut checksum_salt) = ([0; 4], [0; 16]);
        set.expand(&[b"larder key id v1"], &mut id);
        set.expand(&[b"larder checksum v1"], &mut checksum_salt);
        set.id = id;
        set.checksum_salt = checksum_salt;
        Ok(set)
    }

    /// HKDF-SHA256 with an empty salt; the parts of `info` are joined. The output is far below HKDF's limit, so
    /// that it always succeeds.
    pub(super) fn expand(&self, info: &[&[u8]], to: &mut [u8]) {
        let done = Hkdf::<Sha256>::new(None, self.site_key.as_slice()).expand_multi_info(info, to);
        debug_assert!(done.is_ok(), "the output is shorter than 255 blocks");
    }
}

impl KeySet {
    /// A cipher and a nonce of this purpose's own, for one salt.
    pub(super) fn cipher(&self, purpose: &[u8], salt: [u8; 16]) -> (Aes256Gcm, [u8; 12]) {
        let mut key = Zeroizing::new([0; 32]);
        let mut nonce = [0; 12];
        self.expand(&[b"larder ", purpose, b" v1 key", &salt], key.as_mut_slice());
        self.expand(&[b"larder ", purpose, b" v1 nonce", &salt], &mut nonce);
        let key: &[u8; 32] = &key;
        (Aes256Gcm::new(key.into()), nonce)
    }
}

/// Fills `to` with random bytes.
pub(super) fn random(to: &mut [u8]) -> Result<(), SealError> {
    getrandom::fill(to).map_err(|_no_source| SealError::Random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_secrets_are_refused() {
        for short in [&b""[..], b"\n", b"123456789012345", b"123456789012345\r\n"] {
            assert_eq!(Secret::parse(short).err(), Some(SecretError::TooShort));
        }
        for sample in [&b"change-me-change-me"[..], b"Correct Horse Battery Staple\n", &[b'a'; 40]] {
            assert_eq!(Secret::parse(sample).err(), Some(SecretError::Sample));
        }
        assert!(Secret::parse(b"1234567890123456").is_ok());
        assert_eq!(format!("{:?}", Secret::parse(b"1234567890123456").unwrap()), "Secret");
    }

    #[test]
    fn a_secret_is_its_bytes_and_no_others() {
        let secret = Secret::parse(b"1234567890123456\n").unwrap();
        assert!(secret.is(b"1234567890123456"));
        for other in [&b""[..], b"1234567890123457", b"1234567890123456\n", b"12345678901234567"] {
            assert!(!secret.is(other));
        }
    }

    #[test]
    fn generated_secrets_are_accepted_and_differ() {
        let (a, b) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        assert!(a != b && a.len() == 43 && Secret::parse(a.as_bytes()).is_ok());
    }

    #[test]
    fn one_line_end_is_not_part_of_the_secret_and_site_and_secret_are() {
        let keys = |site: &str, secret: &[u8]| {
            SiteKeys::derive(site, &[Secret::parse(secret).unwrap()]).unwrap().fingerprint()
        };
        let base = keys("lab", b"a secret of the lab");
        assert_eq!(base, keys("lab", b"a secret of the lab\n"));
        assert_eq!(base, keys("lab", b"a secret of the lab\r\n"));
        assert_ne!(base, keys("lab", b"a secret of the lab\n\n"));
        assert_ne!(base, keys("office", b"a secret of the lab"));
        assert_eq!(base.len(), 19);
        assert_eq!(SiteKeys::derive("lab", &[]).err(), Some(SealError::NoSecret));
    }
}
