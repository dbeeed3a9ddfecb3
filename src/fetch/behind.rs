//! Where origins led clients that had shown who they are: the links may be signed, and whoever has one was let in for
//! it. What lies behind them is guarded. In memory, bounded, the oldest go first; a client follows at once or never.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Response;
use http::header::LOCATION;

use super::engine::{Case, Engine};
use crate::digest::Digest;
use crate::http::Body;
use crate::policy::UrlKey;

/// How long a link is remembered: longer than signed ones last.
const LASTS: Duration = Duration::from_secs(24 * 3600);
/// How many are remembered.
const MOST: usize = 8192;

/// The links, and what they led to.
#[derive(Debug, Default)]
pub(super) struct Behind {
    links: Mutex<HashMap<UrlKey, Link>>,
    led: Mutex<HashMap<(UrlKey, Digest), Instant>>,
}

/// A link: when it was given, and by which URL.
#[derive(Debug, Clone, Copy)]
struct Link {
    since: Instant,
    by: UrlKey,
}

impl Behind {
    fn note(&self, url: UrlKey, by: UrlKey, now: Instant) {
        let mut links = lock(&self.links);
        bound(&mut links, now, |link| link.since);
        links.insert(url, Link { since: now, by });
    }

    /// Whether this URL is one to which a client was led that had shown who it is.
    pub(super) fn leads(&self, url: &UrlKey, now: Instant) -> bool {
        lock(&self.links).get(url).is_some_and(|link| now.saturating_duration_since(link.since) < LASTS)
    }

    /// This came from behind such a link.
    pub(super) fn found(&self, url: &UrlKey, digest: Digest, now: Instant) {
        let Some(by) = lock(&self.links).get(url).map(|link| link.by) else { return };
        let mut led = lock(&self.led);
        bound(&mut led, now, |since| *since);
        led.insert((by, digest), now);
    }

    /// Whether this URL has led to this by such a link.
    pub(super) fn has_led(&self, url: &UrlKey, digest: &Digest) -> bool {
        lock(&self.led).contains_key(&(*url, *digest))
    }
}

/// Makes room for one more.
fn bound<K: std::hash::Hash + Eq, V>(all: &mut HashMap<K, V>, now: Instant, since: impl Fn(&V) -> Instant) {
    if all.len() < MOST {
        return;
    }
    all.retain(|_, one| now.saturating_duration_since(since(one)) < LASTS);
    let mut times: Vec<Instant> = all.values().map(&since).collect();
    if times.len() >= MOST {
        let (_, oldest, _) = times.select_nth_unstable(MOST / 16);
        let oldest = *oldest;
        all.retain(|_, one| since(one) > oldest);
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// The origin let a client in by leading it elsewhere.
    pub(super) fn hear_where(&self, case: &Case, response: &Response<Body>) {
        if !response.status().is_redirection() || !case.want.is_authorized() {
            return;
        }
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        if let Some(Ok(target)) = location.map(|location| case.want.target.join(location)) {
            self.0.behind.note(self.url_key(&target), case.url, self.0.clock.instant());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock, Timestamp};

    #[test]
    fn links_are_remembered_for_a_day_and_the_oldest_go_for_new_ones() {
        let (links, start) = (Behind::default(), ManualClock::new(Timestamp(0)).instant());
        let at = |number: usize| start + Duration::from_millis(u64::try_from(number).unwrap());
        for number in 0..MOST + 10 {
            links.note(UrlKey::numbered(number), UrlKey::numbered(MOST * 2), at(number));
        }
        assert!(lock(&links.links).len() <= MOST);
        assert!(
            !links.leads(&UrlKey::numbered(0), at(MOST)) && links.leads(&UrlKey::numbered(MOST), at(MOST))
        );
        assert!(!links.leads(&UrlKey::numbered(MOST), at(MOST) + LASTS));
        // what came from there was led to by the URL that gave the link, and by no other
        let digest = Digest::of(b"a");
        links.found(&UrlKey::numbered(MOST), digest, at(MOST));
        assert!(
            links.has_led(&UrlKey::numbered(MOST * 2), &digest)
                && !links.has_led(&UrlKey::numbered(MOST), &digest)
        );
        links.found(&UrlKey::numbered(MOST * 3), Digest::of(b"b"), at(MOST));
        assert!(!links.has_led(&UrlKey::numbered(MOST * 2), &Digest::of(b"b")));
    }
}
