//! The certificates at hand: one a host, used until half its life is over, the longest unused going first.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::clock::Timestamp;
use crate::tls::LocalAuthority;

/// Hosts at hand. Each keeps its TLS sessions, so this bounds memory too.
const MOST: usize = 256;

/// The server's side of TLS for each host.
#[derive(Debug, Default)]
pub(super) struct Leaves(HashMap<String, Leaf>);

#[derive(Debug)]
struct Leaf {
    config: Arc<ServerConfig>,
    made: Timestamp,
    used: Timestamp,
}

impl Leaves {
    /// The one for this host, if it is good for a while.
    pub(super) fn at_hand(&mut self, host: &str, now: Timestamp) -> Option<Arc<ServerConfig>> {
        let leaf = self.0.get_mut(host)?;
        // A clock that was set back would make it one of the future.
        if now < leaf.made || now.since(leaf.made) >= LocalAuthority::RENEW {
            return None;
        }
        leaf.used = now;
        Some(Arc::clone(&leaf.config))
    }

    /// Keeps a new one.
    pub(super) fn keep(&mut self, host: &str, config: &Arc<ServerConfig>, now: Timestamp) {
        if self.0.len() >= MOST && !self.0.contains_key(host) {
            let unused = self.0.iter().min_by_key(|(_, leaf)| leaf.used).map(|(host, _)| host.clone());
            unused.and_then(|host| self.0.remove(&host));
        }
        let leaf = Leaf { config: Arc::clone(config), made: now, used: now };
        self.0.insert(host.to_owned(), leaf);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn config() -> Arc<ServerConfig> {
        let folder = tempfile::tempdir().unwrap();
        let domains = ["a.test".to_owned()];
        let authority = LocalAuthority::create(folder.path(), "x", &domains, Timestamp(0)).unwrap();
        authority.server("a.test", Timestamp(0)).unwrap()
    }

    #[test]
    fn a_leaf_serves_half_its_life() {
        let (mut leaves, start) = (Leaves::default(), Timestamp::from_seconds(1_800_000_000));
        let config = config();
        assert!(leaves.at_hand("a.test", start).is_none());
        leaves.keep("a.test", &config, start);
        let same = leaves.at_hand("a.test", start.plus(LocalAuthority::RENEW - Duration::from_millis(1)));
        assert!(same.is_some_and(|same| Arc::ptr_eq(&same, &config)));
        assert!(leaves.at_hand("a.test", start.plus(LocalAuthority::RENEW)).is_none());
        assert!(leaves.at_hand("a.test", Timestamp(start.0 - 1)).is_none(), "the clock was set back");
        assert!(leaves.at_hand("b.test", start).is_none());
    }

    #[test]
    fn the_longest_unused_goes_first() {
        let (mut leaves, config) = (Leaves::default(), config());
        for number in 0..MOST as u64 {
            leaves.keep(&format!("{number}.test"), &config, Timestamp(number));
        }
        assert!(leaves.at_hand("0.test", Timestamp(1000)).is_some());
        leaves.keep("new.test", &config, Timestamp(1001));
        assert_eq!(leaves.0.len(), MOST);
        assert!(leaves.at_hand("1.test", Timestamp(1002)).is_none());
        assert!(leaves.at_hand("0.test", Timestamp(1002)).is_some());
    }
}
