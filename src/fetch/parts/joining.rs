//! What is being made whole of its parts: whoever asks for it meanwhile waits a moment for that, as all of it is here.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::watch;

use crate::policy::UrlKey;

/// How long a copy on the own disk is waited for; what is long is read from the parts.
const MOMENT: Duration = Duration::from_secs(2);

/// What is being made whole, by URL, and how often.
#[derive(Debug, Default)]
pub(in crate::fetch) struct Joining(watch::Sender<HashMap<UrlKey, usize>>);

/// A thing is made whole, until this is dropped.
pub(super) struct Mark<'a> {
    all: &'a Joining,
    url: UrlKey,
}

impl Joining {
    pub(super) fn begin(&self, url: UrlKey) -> Mark<'_> {
        self.0.send_modify(|urls| *urls.entry(url).or_default() += 1);
        Mark { all: self, url }
    }

    /// Completes when nobody makes this whole any more, or it takes too long.
    pub(in crate::fetch) async fn done(&self, url: &UrlKey) {
        if !self.0.borrow().contains_key(url) {
            return;
        }
        let mut watch = self.0.subscribe();
        let done = watch.wait_for(|urls| !urls.contains_key(url));
        if tokio::time::timeout(MOMENT, done).await.is_err() {
            tracing::debug!("parts are long in being joined");
        }
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.all.0.send_modify(|urls| {
            if let Some(times) = urls.get_mut(&self.url) {
                *times -= 1;
                if *times == 0 {
                    urls.remove(&self.url);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_waits_until_it_is_done_but_not_for_ever() {
        let (all, url) = (Joining::default(), UrlKey::from_bytes([1; 32]));
        let other = UrlKey::from_bytes([2; 32]);
        let soon = |what| async move { tokio::time::timeout(MOMENT / 2, what).await.is_ok() };
        assert!(soon(all.done(&url)).await);
        let (one, two) = (all.begin(url), all.begin(url));
        assert!(soon(all.done(&other)).await);
        drop(one);
        assert!(!soon(all.done(&url)).await, "it is still being made");
        all.done(&url).await;
        let made = async {
            tokio::time::sleep(MOMENT / 4).await;
            drop(two);
        };
        assert!(tokio::join!(soon(all.done(&url)), made).0);
        assert!(all.0.borrow().is_empty());
    }
}
