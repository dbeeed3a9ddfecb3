//! Which digest judges the bytes, what it may refuse, and how much waits for its word.

use super::ledger::From;
use super::settings::Release;
use crate::digest::Digest;
use crate::store::Hold;

/// Up to this size nothing of a neighbour's goes out before the proof.
pub(super) const WHOLE: u64 = 64 * 1024 * 1024;
/// What waits for the proof in any case.
const TAIL: u64 = 64 * 1024;

/// What the bytes are judged by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Judge {
    /// The digest they should have.
    pub(super) digest: Option<Digest>,
    /// Whether it may refuse the origin's own bytes: the client stated it, or the URL contains it.
    pub(super) binding: bool,
}

/// What the digest of the whole says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Give everything out and store it.
    Accept,
    /// Nothing of a neighbour's bytes went out yet: take them back, the origin goes on.
    TakeBack,
    /// Cut.
    Refuse,
}

impl Judge {
    /// How much of what this source sends waits for the proof.
    pub(super) fn hold(self, from: From, total: Option<u64>, release: Release) -> Hold {
        match (from, release) {
            (From::Peer, Release::Proven) => Hold::Everything,
            (From::Peer, Release::Auto) if total.is_none_or(|total| total <= WHOLE) => Hold::Everything,
            (From::Peer, Release::Auto | Release::Stream) => Hold::Tail(TAIL),
            (From::Origin | From::Cache, _) if self.binding => Hold::Tail(TAIL),
            (From::Origin | From::Cache, _) => Hold::Nothing,
        }
    }

    /// Judges the whole: `from_peer` if any byte came from a neighbour, `can_take_back` if none of those went out.
    pub(super) fn verdict(self, found: Digest, from_peer: bool, can_take_back: bool) -> Verdict {
        match self.digest {
            None => Verdict::Accept,
            Some(digest) if digest == found => Verdict::Accept,
            // a learned digest never refuses what is all the origin's
            Some(_) if !self.binding && !from_peer => Verdict::Accept,
            Some(_) if from_peer && can_take_back => Verdict::TakeBack,
            Some(_) => Verdict::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_binding_digest_refuses_the_origin() {
        let (right, wrong) = (Digest::of(b"a"), Digest::of(b"b"));
        let learned = Judge { digest: Some(right), binding: false };
        let stated = Judge { digest: Some(right), binding: true };
        for (judge, found, from_peer, held, want) in [
            (Judge::default(), wrong, false, true, Verdict::Accept),
            (learned, right, true, true, Verdict::Accept),
            (learned, wrong, false, false, Verdict::Accept),
            (learned, wrong, true, true, Verdict::TakeBack),
            (learned, wrong, true, false, Verdict::Refuse),
            (stated, wrong, false, true, Verdict::Refuse),
            (stated, wrong, true, true, Verdict::TakeBack),
        ] {
            assert_eq!(judge.verdict(found, from_peer, held), want);
        }
    }

    #[test]
    fn what_waits_for_the_proof() {
        let stated = Judge { digest: Some(Digest::of(b"a")), binding: true };
        for (judge, from, total, release, want) in [
            (Judge::default(), From::Origin, Some(1), Release::Proven, Hold::Nothing),
            (stated, From::Origin, Some(1), Release::Auto, Hold::Tail(TAIL)),
            (stated, From::Peer, Some(WHOLE), Release::Auto, Hold::Everything),
            (stated, From::Peer, Some(WHOLE + 1), Release::Auto, Hold::Tail(TAIL)),
            (stated, From::Peer, Some(WHOLE + 1), Release::Proven, Hold::Everything),
            (stated, From::Peer, Some(1), Release::Stream, Hold::Tail(TAIL)),
            (stated, From::Peer, None, Release::Auto, Hold::Everything),
        ] {
            assert_eq!(judge.hold(from, total, release), want);
        }
    }
}
