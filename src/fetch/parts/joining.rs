//! What is all here and about to be found: a part that is being stored, parts that are being joined. Whoever asks for
//! it meanwhile waits a moment for that.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::policy::UrlKey;
use crate::range::RangeRequest;

/// How long the own disk is waited for; what takes longer is asked for as if it were not here.
const MOMENT: Duration = Duration::from_secs(2);

/// What is about to be found, by URL.
#[derive(Debug, Default)]
pub(in crate::fetch) struct Joining(watch::Sender<HashMap<UrlKey, Vec<Soon>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Soon {
    range: Range<u64>,
    size: u64,
}

/// These bytes are about to be found, until this is dropped.
#[derive(Debug)]
pub(super) struct Mark {
    all: Arc<Joining>,
    url: UrlKey,
    soon: Soon,
}

impl Soon {
    /// Whether a request for this is better met by it: a range that lies inside, or a whole that begins with it.
    fn serves(&self, wanted: Option<RangeRequest>) -> bool {
        let Some(wanted) = wanted else { return self.range.start == 0 };
        let inside = |wanted: Range<u64>| self.range.start <= wanted.start && wanted.end <= self.range.end;
        wanted.resolve(self.size).is_ok_and(inside)
    }
}

impl Joining {
    pub(super) fn begin(self: &Arc<Self>, url: UrlKey, range: Range<u64>, size: u64) -> Mark {
        let soon = Soon { range, size };
        self.0.send_modify(|urls| urls.entry(url).or_default().push(soon.clone()));
        Mark { all: Arc::clone(self), url, soon }
    }

    /// Completes when nothing that would serve this is about to be found any more, or it takes too long.
    pub(in crate::fetch) async fn done(&self, url: &UrlKey, wanted: Option<RangeRequest>) {
        let is_found = |urls: &HashMap<UrlKey, Vec<Soon>>| {
            !urls.get(url).is_some_and(|soon| soon.iter().any(|soon| soon.serves(wanted)))
        };
        if is_found(&self.0.borrow()) {
            return;
        }
        let mut watch = self.0.subscribe();
        if tokio::time::timeout(MOMENT, watch.wait_for(is_found)).await.is_err() {
            tracing::debug!("parts are long in being stored");
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.all.0.send_modify(|urls| {
            let Some(soon) = urls.get_mut(&self.url) else { return };
            if let Some(at) = soon.iter().position(|soon| *soon == self.soon) {
                soon.swap_remove(at);
            }
            if soon.is_empty() {
                urls.remove(&self.url);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_inside_is_waited_for_and_a_whole_by_its_beginning() {
        let range = |field: &str| RangeRequest::parse(field);
        let (middle, beginning) = (Soon { range: 4..8, size: 10 }, Soon { range: 0..5, size: 10 });
        for (wanted, by_middle, by_beginning) in [
            (None, false, true),
            (range("bytes=4-7"), true, false),
            (range("bytes=4-8"), false, false),
            (range("bytes=4-4"), true, true),
            (range("bytes=-3"), false, false),
            (range("bytes=20-"), false, false),
        ] {
            assert_eq!(middle.serves(wanted), by_middle, "{wanted:?}");
            assert_eq!(beginning.serves(wanted), by_beginning, "{wanted:?}");
        }
        assert!(Soon { range: 4..10, size: 10 }.serves(range("bytes=-3")));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_waits_until_it_is_found_but_not_for_ever() {
        let (all, url) = (Arc::new(Joining::default()), UrlKey::from_bytes([1; 32]));
        let other = UrlKey::from_bytes([2; 32]);
        let soon = |what| async move { tokio::time::timeout(MOMENT / 2, what).await.is_ok() };
        assert!(soon(all.done(&url, None)).await);
        let (one, two) = (all.begin(url, 0..9, 9), all.begin(url, 0..9, 9));
        assert!(soon(all.done(&other, None)).await);
        drop(one);
        assert!(!soon(all.done(&url, None)).await, "it is still being made");
        all.done(&url, None).await;
        let found = async {
            tokio::time::sleep(MOMENT / 4).await;
            drop(two);
        };
        assert!(tokio::join!(soon(all.done(&url, None)), found).0);
        assert!(all.0.borrow().is_empty());
    }
}
