//! Bearer tokens: what an asker presents to a holder over HTTP, sealed by the site's key.
//!
//! base64url without padding of: version (1) ‖ key id (4) ‖ salt (16) ‖ AES-256-GCM of (grant (16) ‖ kind (1) ‖
//! thing (32) ‖ asker (16) ‖ holder (16) ‖ counter (8)) ‖ tag (16), the first 21 bytes being the associated
//! data. Key and nonce come from the random salt by HKDF, so that the nodes of a site, which share the bearer
//! key, need not agree on nonces. All tokens have the same length.

use aes_gcm::aead::{Aead as _, Payload};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::key::random;
use super::{SealError, SiteKeys};
use crate::digest::Digest;
use crate::tls::NodeId;

const VERSION: u8 = 1;
const HEAD: usize = 21;
/// What keys and nonces of bearers are made for.
const PURPOSE: &[u8] = b"bearer";

/// Which grant a token uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GrantId(pub [u8; 16]);

/// What a grant admits to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Thing {
    /// A blob by its digest.
    Blob(Digest),
    /// A stored head, or a growing transfer, by its resource key.
    Resource([u8; 32]),
}

/// What a token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bearer {
    /// The grant that the holder gave.
    pub grant: GrantId,
    /// What it admits to.
    pub thing: Thing,
    /// Who asks.
    pub asker: NodeId,
    /// Who is asked.
    pub holder: NodeId,
    /// Fresh for each request.
    pub counter: u64,
}

/// No accepted key opens the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no accepted key opens the token")]
pub struct BearerError;

impl SiteKeys {
    /// Seals a token with the sending key.
    pub fn seal_bearer(&self, bearer: &Bearer) -> Result<String, SealError> {
        let mut salt = [0; 16];
        random(&mut salt)?;
        self.seal_bearer_with(bearer, salt)
    }

    /// Opens a token with whichever accepted key it is under.
    pub fn open_bearer(&self, token: &str) -> Result<Bearer, BearerError> {
        let token = URL_SAFE_NO_PAD.decode(token).map_err(|_not_base64| BearerError)?;
        let (head, sealed) = token.split_first_chunk::<HEAD>().ok_or(BearerError)?;
        let [version, a, b, c, d, salt @ ..] = *head;
        if version != VERSION {
            return Err(BearerError);
        }
        let plain = self.by_id([a, b, c, d]).find_map(|(_, set)| {
            let (cipher, nonce) = set.cipher(PURPOSE, salt);
            cipher.decrypt((&nonce).into(), Payload { msg: sealed, aad: head }).ok()
        });
        Bearer::decode(&plain.ok_or(BearerError)?).ok_or(BearerError)
    }

    fn seal_bearer_with(&self, bearer: &Bearer, salt: [u8; 16]) -> Result<String, SealError> {
        let set = self.sending().ok_or(SealError::NoSecret)?;
        let (cipher, nonce) = set.cipher(PURPOSE, salt);
        let mut token = vec![VERSION];
        token.extend_from_slice(&set.id);
        token.extend_from_slice(&salt);
        let sealed = cipher
            .encrypt((&nonce).into(), Payload { msg: &bearer.encode(), aad: &token })
            .map_err(|_refused| SealError::Cipher)?;
        token.extend_from_slice(&sealed);
        Ok(URL_SAFE_NO_PAD.encode(token))
    }
}

impl Bearer {
    fn encode(&self) -> Vec<u8> {
        let (kind, thing) = match &self.thing {
            Thing::Blob(digest) => (0, digest.as_bytes()),
            Thing::Resource(key) => (1, key),
        };
        let counter = self.counter.to_be_bytes();
        let parts: [&[u8]; 6] =
            [&self.grant.0, &[kind], thing, self.asker.as_bytes(), self.holder.as_bytes(), &counter];
        parts.concat()
    }

    fn decode(plain: &[u8]) -> Option<Self> {
        let (grant, rest) = plain.split_first_chunk()?;
        let (kind, rest) = rest.split_first()?;
        let (thing, rest) = rest.split_first_chunk()?;
        let (asker, rest) = rest.split_first_chunk()?;
        let (holder, rest) = rest.split_first_chunk()?;
        let thing = match kind {
            0 => Thing::Blob(Digest::from_bytes(*thing)),
            1 => Thing::Resource(*thing),
            _ => return None,
        };
        Some(Self {
            grant: GrantId(*grant),
            thing,
            asker: NodeId::from_bytes(*asker),
            holder: NodeId::from_bytes(*holder),
            counter: u64::from_be_bytes(rest.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests;
