//! Grants: the holder's side of a bearer token. A grant admits one asker to one thing, any number of requests,
//! each with a fresh counter, until it has not been used for a minute. It reserves nothing.
//!
//! One thing may have two names, the resource key and the digest of its blob; one grant covers both.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::key::random;
use super::{Bearer, GrantId, SealError, Thing, Window};
use crate::clock::SharedClock;
use crate::tls::NodeId;

/// A grant ends this long after its last use.
const LIFE: Duration = Duration::from_secs(60);
/// How many grants live at once; the one longest unused leaves for a new one.
const MOST: usize = 8192;

/// The grants that this node gave; a cheap clone.
#[derive(Debug, Clone)]
pub struct Grants {
    clock: SharedClock,
    book: Arc<Mutex<Book>>,
}

/// Why a token that opened is still not admitted: everyday answers, never offences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No such grant, or it ended.
    #[error("the grant is not known or has ended: ask again")]
    Unknown,
    /// The counter was used before.
    #[error("the token was used before: ask again")]
    Spent,
    /// The token names another asker, holder or thing than the grant.
    #[error("the token does not fit its grant: ask again")]
    Mismatch,
}

#[derive(Debug, Default)]
struct Book {
    grants: HashMap<GrantId, Grant>,
    by_use: HashMap<(NodeId, Thing), GrantId>,
    /// Each grant once, roughly by last use: a used one moves to the back when it comes to the front.
    order: VecDeque<(GrantId, Instant)>,
}

#[derive(Debug)]
struct Grant {
    asker: NodeId,
    thing: Thing,
    alias: Option<Thing>,
    last_used: Instant,
    seen: Window,
}

impl Grants {
    /// None given yet.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, book: Arc::default() }
    }

    /// Admits `asker` to `thing`; asked again while it lives, the same grant goes on.
    pub fn issue(&self, asker: NodeId, thing: Thing) -> Result<GrantId, SealError> {
        self.issue_named(asker, thing, None)
    }

    /// Admits `asker` to `thing` under its other name too.
    pub fn issue_named(
        &self,
        asker: NodeId,
        thing: Thing,
        alias: Option<Thing>,
    ) -> Result<GrantId, SealError> {
        let now = self.clock.instant();
        let mut book = self.book();
        book.forget(now);
        if let Some(id) = book.by_use.get(&(asker, thing)).copied()
            && let Some(grant) = book.grants.get_mut(&id)
            && now.duration_since(grant.last_used) < LIFE
        {
            grant.last_used = now;
            grant.alias = alias.or(grant.alias);
            return Ok(id);
        }
        let mut bytes = [0; 16];
        random(&mut bytes)?;
        let id = GrantId(bytes);
        book.grants.insert(id, Grant { asker, thing, alias, last_used: now, seen: Window::new() });
        if let Some(ended) = book.by_use.insert((asker, thing), id) {
            book.grants.remove(&ended);
        }
        book.order.push_back((id, now));
        Ok(id)
    }

    /// Judges a token for a request that reached the node `me`; what the request asks for and who asks are for
    /// the caller to compare with the token.
    pub fn admit(&self, bearer: &Bearer, me: NodeId) -> Result<(), Refused> {
        let now = self.clock.instant();
        if bearer.holder != me {
            return Err(Refused::Mismatch);
        }
        let mut book = self.book();
        let grant = book.grants.get_mut(&bearer.grant).ok_or(Refused::Unknown)?;
        if now.duration_since(grant.last_used) >= LIFE {
            return Err(Refused::Unknown);
        }
        let covered = grant.thing == bearer.thing || grant.alias == Some(bearer.thing);
        if grant.asker != bearer.asker || !covered {
            return Err(Refused::Mismatch);
        }
        if !grant.seen.admit(bearer.counter) {
            return Err(Refused::Spent);
        }
        grant.last_used = now;
        Ok(())
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Drops what has ended, and the longest unused where there are too many.
    fn forget(&mut self, now: Instant) {
        while let Some((id, queued)) = self.order.front().copied() {
            let crowded = self.grants.len() >= MOST;
            if !crowded && now.duration_since(queued) < LIFE {
                return;
            }
            self.order.pop_front();
            let Some(grant) = self.grants.get(&id) else { continue };
            let used_since = grant.last_used > queued;
            if used_since && now.duration_since(grant.last_used) < LIFE {
                self.order.push_back((id, grant.last_used));
                continue;
            }
            let key = (grant.asker, grant.thing);
            self.grants.remove(&id);
            if self.by_use.get(&key) == Some(&id) {
                self.by_use.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
