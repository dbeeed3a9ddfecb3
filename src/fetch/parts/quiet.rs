//! When nobody asks for parts of a thing any more: only then what is missing of it is fetched for later. A client
//! that walks through a thing part by part would ask the origin for the same bytes in the same moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::policy::UrlKey;

/// How long nobody asks before it is quiet. Nobody waits for what then comes.
const QUIET: Duration = Duration::from_secs(1);

/// What is asked, by URL.
#[derive(Debug, Default)]
pub(in crate::fetch) struct Asking(Mutex<HashMap<UrlKey, Asked>>);

#[derive(Debug, Default)]
struct Asked {
    /// So many clients are between their question and the end of what is kept of the answer.
    now: usize,
    /// So many have waited for quiet: the last one goes on, and an earlier one leaves.
    waited: u64,
    waiting: usize,
}

/// Somebody asks for a part, until this is dropped.
pub(super) struct Question {
    all: Arc<Asking>,
    url: UrlKey,
}

/// Somebody waits until nobody asks.
struct Waiting<'a> {
    all: &'a Asking,
    url: UrlKey,
    number: u64,
}

impl Asking {
    pub(super) fn ask(self: &Arc<Self>, url: UrlKey) -> Question {
        self.change(url, |asked| asked.now += 1);
        Question { all: Arc::clone(self), url }
    }

    /// Completes when nobody has asked for parts of a thing for a while, or asks now where whoever asked has its end
    /// and so nothing more to ask; whether nobody began to wait later.
    pub(super) async fn quiet(&self, url: UrlKey, has_end: bool) -> bool {
        let waiting = Waiting::begin(self, url);
        let mut pause = if has_end { Duration::ZERO } else { QUIET };
        loop {
            tokio::time::sleep(std::mem::replace(&mut pause, QUIET)).await;
            let (is_last, is_quiet) =
                self.change(url, |asked| (asked.waited == waiting.number, asked.now == 0));
            if is_quiet || !is_last {
                return is_last;
            }
        }
    }

    fn change<T>(&self, url: UrlKey, change: impl FnOnce(&mut Asked) -> T) -> T {
        let mut urls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = urls.entry(url).or_default();
        let result = change(asked);
        if asked.now == 0 && asked.waiting == 0 {
            urls.remove(&url);
        }
        result
    }
}

impl<'a> Waiting<'a> {
    fn begin(all: &'a Asking, url: UrlKey) -> Self {
        let number = all.change(url, |asked| {
            asked.waiting += 1;
            asked.waited += 1;
            asked.waited
        });
        Self { all, url, number }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.all.change(self.url, |asked| asked.now = asked.now.saturating_sub(1));
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.all.change(self.url, |asked| asked.waiting = asked.waiting.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> UrlKey {
        UrlKey::from_bytes([1; 32])
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_quiet_when_the_last_question_is_answered() {
        let all = Arc::new(Asking::default());
        let question = all.ask(url());
        let asked = tokio::time::timeout(10 * QUIET, all.quiet(url(), false)).await;
        assert!(asked.is_err(), "somebody asks");
        drop(question);
        assert!(all.quiet(url(), false).await);
        assert!(all.0.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_the_end_asks_nothing_more() {
        let all = Arc::new(Asking::default());
        let soon = |has_end| {
            let all = Arc::clone(&all);
            async move { tokio::time::timeout(QUIET / 2, all.quiet(url(), has_end)).await.is_ok() }
        };
        assert!(soon(true).await && !soon(false).await);
        let question = all.ask(url());
        assert!(!soon(true).await, "another one asks");
        drop(question);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_last_goes_on() {
        let all = Arc::new(Asking::default());
        let later = async {
            tokio::time::sleep(QUIET / 2).await;
            all.quiet(url(), false).await
        };
        assert_eq!(tokio::join!(all.quiet(url(), false), later), (false, true));
        assert!(all.0.lock().unwrap().is_empty());
    }
}
