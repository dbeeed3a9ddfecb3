//! Which blobs go when room is needed: a pure choice.
//!
//! Blobs that were asked for once go before those that were asked for again, so that one pass over many
//! things (a mirror run, a scan) does not wash out what is used every day; among equals the one that was used
//! longest ago goes first. Pinned ones never go. Times of use in the future (a clock that was set back) count
//! as the oldest: they must not live for ever.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::index::BlobRecord;

/// Of the room that blobs take, the share that blobs used again may fill before they compete as equals.
const PROTECTED: f64 = 0.8;

/// Chooses blobs of at least `need` bytes, as far as there are any.
pub(super) fn choose(
    blobs: &[Arc<BlobRecord>],
    is_pinned: impl Fn(&Digest) -> bool,
    need: u64,
    now: Timestamp,
) -> Vec<Digest> {
    let total: u64 = blobs.iter().map(|blob| blob.size).sum();
    let again: u64 = blobs.iter().filter(|blob| blob.hits > 0).map(|blob| blob.size).sum();
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    let protect = again as f64 <= total as f64 * PROTECTED;
    let mut order: Vec<&Arc<BlobRecord>> = blobs.iter().filter(|blob| !is_pinned(&blob.digest)).collect();
    order.sort_by_key(|blob| {
        let used = if blob.last_used > now { Timestamp(0) } else { blob.last_used };
        (protect && blob.hits > 0, used, blob.digest)
    });
    let mut freed = 0;
    let enough = order.into_iter().take_while(|blob| {
        let before = freed;
        freed += blob.size;
        before < need
    });
    enough.map(|blob| blob.digest).collect()
}

/// Blobs that were not used for longer than `max_age`; those from the future are left to [`choose`].
pub(super) fn aged(
    blobs: &[Arc<BlobRecord>],
    is_pinned: impl Fn(&Digest) -> bool,
    max_age: std::time::Duration,
    now: Timestamp,
) -> Vec<Digest> {
    let old = blobs.iter().filter(|blob| now.since(blob.last_used) > max_age && !is_pinned(&blob.digest));
    old.map(|blob| blob.digest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn blob(name: u8, size: u64, used: u64, hits: u64) -> Arc<BlobRecord> {
        Arc::new(BlobRecord {
            digest: Digest::from_bytes([name; 32]),
            size,
            inode: 1,
            ctime_ns: 1,
            stored_at: Timestamp(0),
            last_used: Timestamp(used),
            hits,
            first_hand: true,
            guarded: false,
        })
    }

    fn names(chosen: Vec<Digest>) -> Vec<u8> {
        chosen.iter().map(|digest| digest.as_bytes()[0]).collect()
    }

    #[test]
    fn what_was_used_once_and_long_ago_goes_first() {
        let blobs = [blob(1, 10, 5, 0), blob(2, 10, 3, 0), blob(3, 10, 1, 7), blob(4, 10, 9, 0)];
        let choose = |need| names(choose(&blobs, |_| false, need, Timestamp(100)));
        assert!(choose(0).is_empty());
        assert_eq!(choose(1), [2]);
        assert_eq!(choose(20), [2, 1]);
        assert_eq!(choose(1000), [2, 1, 4, 3]);
    }

    #[test]
    fn pins_stay_and_the_future_is_old() {
        let blobs = [blob(1, 10, 5, 0), blob(2, 10, 500, 0)];
        assert_eq!(names(choose(&blobs, |_| false, 1, Timestamp(100))), [2]);
        assert_eq!(names(choose(&blobs, |d| d.as_bytes()[0] == 2, 100, Timestamp(100))), [1]);
    }

    #[test]
    fn s18_age_counts_from_the_last_use_and_a_jump_purges_nothing_from_the_future() {
        let blobs = [blob(1, 10, 1000, 0), blob(2, 10, 90_000, 0)];
        let aged = |now| names(aged(&blobs, |_| false, Duration::from_secs(60), Timestamp(now)));
        assert_eq!(aged(62_000), [1]);
        assert_eq!(aged(500), [] as [u8; 0]);
    }
}
