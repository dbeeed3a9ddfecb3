//! Fetching for later: a want that nobody waits for yields to all others at the origin, until somebody does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::engine::Engine;
use super::error::FetchError;
use super::flight::FlightKey;
use super::line::{Going, Line};
use super::outcome::{Bytes, CacheStatus, Given};
use super::want::Want;
use crate::http::Background;
use crate::store::End;

/// The wants that nobody waits for, by what they fetch.
#[derive(Debug, Default)]
pub(super) struct Backgrounds(Mutex<HashMap<FlightKey, Background>>);

/// Takes a want out again when it ends, however it ends.
struct Entry<'a> {
    all: &'a Backgrounds,
    key: FlightKey,
}

/// What became of fetching for later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The status of the answer.
    pub status: u16,
    /// Where it leads, if it is a redirect.
    pub location: Option<String>,
    /// How it came about.
    pub cache: CacheStatus,
    /// Whether its bytes came now: else they were here, or there are none.
    pub arrived: bool,
    /// The size of what is held now.
    pub bytes: Option<u64>,
    /// Whether it is held now.
    pub held: bool,
}

impl Backgrounds {
    /// Somebody who waits wants this: who fetches it gives way no longer.
    pub(super) fn lift(&self, key: &FlightKey) {
        if let Some(background) = self.lock().get(key) {
            background.lift();
        }
    }

    fn enter(&self, key: FlightKey, background: Background) -> Entry<'_> {
        self.lock().insert(key, background);
        Entry { all: self, key }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<FlightKey, Background>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

impl Engine {
    /// Fetches something so that it is held, by the rules of any download, and waits until it is or cannot be.
    pub async fn prefetch(&self, mut want: Want) -> Result<Fetched, FetchError> {
        let background = want.background.get_or_insert_default().clone();
        let key = self.key_of(&want);
        let _entry = self.0.backgrounds.enter(key, background);
        let line = Line::begin(&want, &self.0.clock);
        let reply = self.fetch(want).await?;
        let cache = reply.status;
        Ok(match reply.given {
            Given::Held(held) => {
                let (status, location) = (held.head.status, held.head.get("location").map(str::to_owned));
                let arrived = matches!(held.bytes, Bytes::Growing(..));
                let (bytes, whole) = match &held.bytes {
                    Bytes::Growing(running, ..) => {
                        let is_whole = matches!(running.growing().ended().await, End::Complete(_));
                        let received = running.growing().progress().received;
                        if let Some(line) = line {
                            let line = Arc::new(line.told(&cache, status));
                            Going::new(&line, None).arrived(running, received, is_whole);
                        }
                        (Some(received), is_whole && cache.stored)
                    }
                    Bytes::None | Bytes::Blob(..) | Bytes::Proving(..) => (held.size, held.slice.is_none()),
                };
                Fetched { status, location, cache, arrived, bytes, held: whole }
            }
            Given::Passed(response) => {
                let location = response.headers().get(http::header::LOCATION);
                let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
                Fetched {
                    status: response.status().as_u16(),
                    location,
                    cache,
                    arrived: false,
                    bytes: None,
                    held: false,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Target;
    use crate::policy::UrlKey;

    #[test]
    fn who_waits_lifts_what_is_fetched_for_later_and_nothing_else() {
        let key = |path: &str| {
            let target = Target::new(crate::http::Scheme::Http, "h", path).unwrap();
            FlightKey::Url(UrlKey::of(&target, &[]))
        };
        let (all, one) = (Backgrounds::default(), Background::default());
        let entry = all.enter(key("/a"), one.clone());
        all.lift(&key("/b"));
        assert!(!one.is_lifted());
        all.lift(&key("/a"));
        assert!(one.is_lifted());
        drop(entry);
        assert!(all.lock().is_empty());
    }
}
