//! Sessions of the page: who logged in, known by a cookie.
//!
//! The cookie's value is 256 random bits; only its SHA-256 is kept, and only in memory, so that a restart logs
//! everybody out. A session ends after [`LIFE`], or [`IDLE`] after its last use; at most [`MOST`] live at one
//! time, the one unused for longest goes first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::COOKIE;
use zeroize::Zeroizing;

use super::access::Who;
use crate::clock::SharedClock;
use crate::digest::{Digest, hex};

/// The longest a session lives.
pub(super) const LIFE: Duration = Duration::from_secs(12 * 3600);
/// The longest it lives unused.
const IDLE: Duration = Duration::from_secs(2 * 3600);
/// The most of them.
const MOST: usize = 256;

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    /// What the cookie is called: cookies are shared by all ports of a host, and by all nodes on it.
    cookie: String,
    clock: SharedClock,
    held: Mutex<HashMap<Digest, Session>>,
}

#[derive(Debug, Clone)]
struct Session {
    who: Who,
    begun: Instant,
    used: Instant,
}

impl Sessions {
    /// None yet.
    pub(super) fn new(cookie: String, clock: SharedClock) -> Self {
        Self { cookie, clock, held: Mutex::default() }
    }

    /// Begins one: the value of its cookie, or none where the system gives no random bytes.
    pub(super) fn open(&self, who: Who) -> Option<Zeroizing<String>> {
        let mut random = Zeroizing::new([0_u8; 32]);
        getrandom::fill(random.as_mut()).ok()?;
        let value = Zeroizing::new(hex(random.as_ref()));
        let now = self.clock.instant();
        let mut held = self.lock();
        held.retain(|_, session| session.lives(now));
        while held.len() >= MOST {
            let oldest = held.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| *key);
            oldest.and_then(|key| held.remove(&key));
        }
        held.insert(Digest::of(value.as_bytes()), Session { who, begun: now, used: now });
        Some(value)
    }

    /// Whose session the request's cookie names.
    pub(super) fn find(&self, request: &HeaderMap) -> Option<Who> {
        let key = Digest::of(self.value(request)?.as_bytes());
        let now = self.clock.instant();
        let mut held = self.lock();
        let session = held.get_mut(&key)?;
        if !session.lives(now) {
            held.remove(&key);
            return None;
        }
        session.used = now;
        Some(session.who.clone())
    }

    /// Ends the one the request's cookie names.
    pub(super) fn close(&self, request: &HeaderMap) {
        if let Some(value) = self.value(request) {
            self.lock().remove(&Digest::of(value.as_bytes()));
        }
    }

    /// The `Set-Cookie` of a value (RFC 6265, section 5.2), or of its end.
    pub(super) fn set_cookie(&self, value: Option<&str>, secure: bool) -> String {
        let secure = if secure { "; Secure" } else { "" };
        let (value, age) = value.map_or(("", 0), |value| (value, LIFE.as_secs()));
        format!("{}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}", self.cookie)
    }

    fn value<'a>(&self, request: &'a HeaderMap) -> Option<&'a str> {
        let fields = request.get_all(COOKIE).iter().filter_map(|field| field.to_str().ok());
        let pairs = fields.flat_map(|field| field.split(';'));
        pairs
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(name, _)| *name == self.cookie)
            .map(|it| it.1)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Session>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn lives(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.begun) < LIFE && now.saturating_duration_since(self.used) < IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, Timestamp};

    fn with(cookie: &str) -> HeaderMap {
        HeaderMap::from_iter([(COOKIE, cookie.parse().unwrap())])
    }

    #[test]
    fn a_session_ends_by_itself_and_when_asked() {
        let clock = ManualClock::new(Timestamp(0));
        let sessions = Sessions::new("larder-1".to_owned(), clock.clone());
        let value = sessions.open(Who::of_token()).unwrap();
        let cookie = with(&format!("other=1; larder-1={}; more=2", value.as_str()));
        assert_eq!(sessions.find(&cookie), Some(Who::of_token()));
        assert_eq!(sessions.find(&with("larder-1=00; larder-2=1")), None);
        assert_eq!(sessions.find(&HeaderMap::new()), None);
        clock.advance(IDLE - Duration::from_secs(1));
        assert!(sessions.find(&cookie).is_some(), "use keeps it alive");
        clock.advance(IDLE);
        assert!(sessions.find(&cookie).is_none());
        let value = sessions.open(Who::of_token()).unwrap();
        let cookie = with(&format!("larder-1={}", value.as_str()));
        for _ in 0..12 {
            clock.advance(Duration::from_secs(3600));
            sessions.find(&cookie);
        }
        assert!(sessions.find(&cookie).is_none(), "however often it is used");
        let value = sessions.open(Who::of_token()).unwrap();
        let cookie = with(&format!("larder-1={}", value.as_str()));
        sessions.close(&cookie);
        assert!(sessions.find(&cookie).is_none());
    }

    #[test]
    fn there_are_never_too_many() {
        let clock = ManualClock::new(Timestamp(0));
        let sessions = Sessions::new("c".to_owned(), clock.clone());
        let first = sessions.open(Who::of_token()).unwrap();
        for _ in 0..MOST {
            clock.advance(Duration::from_millis(1));
            sessions.open(Who::of_token()).unwrap();
        }
        assert_eq!(sessions.lock().len(), MOST);
        assert!(sessions.find(&with(&format!("c={}", first.as_str()))).is_none());
    }

    #[test]
    fn the_cookie_is_strict() {
        let sessions = Sessions::new("c".to_owned(), ManualClock::new(Timestamp(0)));
        let set = "c=ab; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict";
        assert_eq!(sessions.set_cookie(Some("ab"), false), set);
        assert_eq!(sessions.set_cookie(Some("ab"), true), format!("{set}; Secure"));
        assert!(sessions.set_cookie(None, false).starts_with("c=; Path=/; Max-Age=0;"));
    }
}
