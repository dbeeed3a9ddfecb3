//! Passwords of administrators: Argon2id hashes in the configuration, checked one at a time.
//!
//! A check costs tens of milliseconds by design, so the last right ones are remembered for a while under a keyed
//! hash that never leaves this process, and whoever guesses is stopped after [`FAILURES`] wrong passwords for one
//! name in a [`WINDOW`]. An unknown name costs as much as a known one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use super::access::Who;
use super::config::User;
use crate::clock::SharedClock;
use crate::digest::{Digest, Hasher};

/// Wrong passwords for one name.
const FAILURES: u32 = 10;
/// The time they are counted in.
const WINDOW: Duration = Duration::from_secs(60);
/// How long a right one is remembered.
const REMEMBERED: Duration = Duration::from_secs(300);
/// The most names and proofs kept.
const MOST: usize = 1024;

/// Why a password was not even looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

/// Who may log in by a password.
pub(super) struct Passwords {
    users: Vec<User>,
    clock: SharedClock,
    /// Keys what is remembered; without it nothing is.
    key: Option<Zeroizing<[u8; 32]>>,
    one: Semaphore,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    right: HashMap<Digest, (Instant, Who)>,
    wrong: HashMap<String, (Instant, u32)>,
}

/// The hash of a password as the configuration has it; none where the system gives no random bytes.
pub fn hash_password(password: &[u8]) -> Option<String> {
    let mut salt = [0_u8; 16];
    getrandom::fill(&mut salt).ok()?;
    let hashed = Argon2::default().hash_password_with_salt(password, &salt);
    hashed.ok().map(|hash: PasswordHash| hash.to_string())
}

/// Whether a text is the hash of a password that can be checked.
pub fn is_password_hash(text: &str) -> bool {
    PasswordHash::new(text).is_ok_and(|hash| hash.algorithm.as_str() == "argon2id" && hash.hash.is_some())
}

impl Passwords {
    /// For these; those without a password never log in by one.
    pub(super) fn new(users: &[User], clock: SharedClock) -> Self {
        let mut key = Zeroizing::new([0_u8; 32]);
        let key = getrandom::fill(key.as_mut()).is_ok().then_some(key);
        let users = users.iter().filter(|user| !user.password.is_empty()).cloned().collect();
        Self { users, clock, key, one: Semaphore::new(1), seen: Mutex::default() }
    }

    /// Whether anybody may.
    pub(super) fn are_used(&self) -> bool {
        !self.users.is_empty()
    }

    /// Whose name and password these are.
    pub(super) async fn who(&self, name: &str, password: &str) -> Result<Option<Who>, TooMany> {
        if !self.are_used() || name.len() > 256 || password.len() > 1024 {
            return Ok(None);
        }
        let proof = self.key.as_ref().map(|key| proof(key, name, password));
        if let Some(who) = proof.as_ref().and_then(|proof| self.remembered(proof)) {
            return Ok(Some(who));
        }
        let Ok(_alone) = self.one.acquire().await else { return Ok(None) };
        if self.is_guessing(name) {
            return Err(TooMany);
        }
        let user = self.users.iter().find(|user| user.name == name);
        // a stranger's password is checked against somebody's hash, so that the time does not tell him apart
        let hash = user.or(self.users.first()).map(|user| user.password.clone()).unwrap_or_default();
        let given = Zeroizing::new(password.to_owned());
        let checked = tokio::task::spawn_blocking(move || is_right(&hash, given.as_bytes())).await;
        let right = user.filter(|_| checked.unwrap_or(false));
        let who = right.map(|user| Who { name: user.name.clone(), role: user.role });
        self.note(name, proof, who.as_ref());
        Ok(who)
    }

    fn remembered(&self, proof: &Digest) -> Option<Who> {
        let now = self.clock.instant();
        let seen = self.lock();
        let (at, who) = seen.right.get(proof)?;
        (now.saturating_duration_since(*at) < REMEMBERED).then(|| who.clone())
    }

    fn is_guessing(&self, name: &str) -> bool {
        let now = self.clock.instant();
        let mut seen = self.lock();
        seen.wrong.retain(|_, (since, _)| now.saturating_duration_since(*since) < WINDOW);
        seen.wrong.get(name).is_some_and(|(_, count)| *count >= FAILURES) || seen.wrong.len() >= MOST
    }

    fn note(&self, name: &str, proof: Option<Digest>, who: Option<&Who>) {
        let now = self.clock.instant();
        let mut seen = self.lock();
        match who {
            Some(who) => {
                seen.right.retain(|_, (at, _)| now.saturating_duration_since(*at) < REMEMBERED);
                if let Some(proof) = proof.filter(|_| seen.right.len() < MOST) {
                    seen.right.insert(proof, (now, who.clone()));
                }
                seen.wrong.remove(name);
            }
            None => seen.wrong.entry(name.to_owned()).or_insert((now, 0)).1 += 1,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passwords").field("users", &self.users.len()).finish_non_exhaustive()
    }
}

fn proof(key: &[u8; 32], name: &str, password: &str) -> Digest {
    let mut hasher = Hasher::new();
    for part in [key.as_slice(), &name.len().to_be_bytes(), name.as_bytes(), password.as_bytes()] {
        hasher.update(part);
    }
    hasher.finish()
}

fn is_right(hash: &str, password: &[u8]) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Role;
    use crate::clock::{ManualClock, Timestamp};

    #[test]
    fn a_hash_is_told_from_other_texts() {
        let hash = hash_password(b"correct horse").unwrap();
        assert!(is_password_hash(&hash), "{hash}");
        assert!(is_right(&hash, b"correct horse") && !is_right(&hash, b"correct hors"));
        assert_ne!(hash, hash_password(b"correct horse").unwrap(), "salted");
        for text in ["", "geheim", "$argon2id$", "$2b$12$abcdefghijklmnopqrstuv"] {
            assert!(!is_password_hash(text), "{text}");
        }
    }

    #[tokio::test]
    async fn guessing_ends_and_the_right_one_is_remembered() {
        let clock = ManualClock::new(Timestamp(0));
        let ann =
            User { name: "ann".to_owned(), role: Role::Operator, password: hash_password(b"right").unwrap() };
        let front = User { name: "bob".to_owned(), role: Role::Admin, password: String::new() };
        let passwords = Passwords::new(&[ann, front], clock.clone());
        let who = passwords.who("ann", "right").await.unwrap().unwrap();
        assert_eq!((who.name.as_str(), who.role), ("ann", Role::Operator));
        assert_eq!(passwords.who("bob", "").await, Ok(None), "who has no password has none that is right");
        assert_eq!(passwords.who("eve", "right").await, Ok(None));
        for _ in 0..FAILURES {
            assert_eq!(passwords.who("ann", "wrong").await, Ok(None));
        }
        assert_eq!(passwords.who("ann", "wrong").await, Err(TooMany));
        assert!(passwords.who("ann", "right").await.unwrap().is_some(), "it was proved a moment ago");
        clock.advance(REMEMBERED);
        assert!(passwords.who("ann", "right").await.unwrap().is_some(), "the window has passed");
    }
}
