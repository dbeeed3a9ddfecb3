//! Which digest judges the bytes, what it may refuse, and how much waits for its word.

use super::ledger::From;
use super::settings::Release;
use crate::digest::{Algorithm, Digest, Found, Stated};
use crate::store::Hold;

/// Up to this size nothing of a neighbour's goes out before the proof.
pub(super) const WHOLE: u64 = 64 * 1024 * 1024;
/// What waits for the proof in any case.
pub(super) const TAIL: u64 = 64 * 1024;

/// What the bytes are judged by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Judge {
    /// The SHA-256 they should have.
    pub(super) digest: Option<Digest>,
    /// What was stated in another algorithm, while the SHA-256 that belongs to it is not known.
    pub(super) stated: Option<Stated>,
    /// Whether what was stated may refuse the origin's own bytes: the client stated it, or the URL contains it. A
    /// SHA-256 beside a value of another algorithm is a neighbour's word and binds nobody.
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
    /// By what the client or the URL states; `known` is the SHA-256 that is known to belong to it.
    pub(super) fn binding(stated: Option<Stated>, known: impl Fn(&Stated) -> Option<Digest>) -> Self {
        let Some(stated) = stated else { return Self::default() };
        match stated.sha256().or_else(|| known(&stated)) {
            Some(digest) => Self { digest: Some(digest), stated: None, binding: true },
            None => Self { digest: None, stated: Some(stated), binding: true },
        }
    }

    /// By what an index states: it refuses nothing that is the origin's.
    pub(super) fn learned(stated: Stated, known: impl Fn(&Stated) -> Option<Digest>) -> Self {
        Self { binding: false, ..Self::binding(Some(stated), known) }
    }

    /// By what neighbours say the thing is, beside what was stated.
    pub(super) fn with_word(self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self }
    }

    /// Whether there is anything to judge by.
    pub(super) fn is_set(self) -> bool {
        self.digest.is_some() || self.stated.is_some()
    }

    /// What was stated and binds everybody.
    pub(super) fn bound(self) -> Option<Stated> {
        self.stated.or(self.digest.map(Stated::from)).filter(|_| self.binding)
    }

    /// What was stated, binds everybody and is strong enough to name the thing by: neighbours may be asked for it,
    /// and halves from two answers may be joined under it.
    pub(super) fn named(self) -> Option<Stated> {
        self.bound().filter(Stated::is_strong)
    }

    /// What neighbours are asked for: strong, though it may bind nobody.
    pub(super) fn asked(self) -> Option<Stated> {
        self.stated.or(self.digest.map(Stated::from)).filter(Stated::is_strong)
    }

    /// The algorithm that is reckoned beside SHA-256.
    pub(super) fn beside(self) -> Option<Algorithm> {
        self.stated.map(|stated| stated.algorithm())
    }

    /// Whether a neighbour whose bytes alone these are has sent other ones than it said.
    pub(super) fn blames(self, found: Found) -> bool {
        match (self.digest, self.stated) {
            (Some(digest), _) => digest != found.digest,
            (None, Some(stated)) => !found.is(&stated),
            (None, None) => false,
        }
    }

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
    pub(super) fn verdict(self, found: Found, from_peer: bool, can_take_back: bool) -> Verdict {
        let is_stated = self.stated.is_none_or(|stated| found.is(&stated));
        let is_said = self.digest.is_none_or(|digest| digest == found.digest);
        let is_bound = self.binding && self.bound().is_some_and(|stated| !found.is(&stated));
        let is_vouched = self.digest.is_some() || self.stated.is_some_and(|stated| stated.is_strong());
        match (from_peer, can_take_back) {
            // a learned digest never refuses what is all the origin's
            (false, _) if !is_bound => Verdict::Accept,
            (true, _) if is_stated && is_said && is_vouched => Verdict::Accept,
            (true, true) => Verdict::TakeBack,
            (true, false) | (false, _) => Verdict::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Hasher;

    fn found(bytes: &[u8], algorithm: Algorithm) -> Found {
        let mut hasher = Hasher::beside(Some(algorithm));
        hasher.update(bytes);
        hasher.found()
    }

    fn of(bytes: &[u8], algorithm: Algorithm) -> Stated {
        found(bytes, algorithm).beside.unwrap_or(Digest::of(bytes).into())
    }

    #[test]
    fn only_a_binding_digest_refuses_the_origin() {
        let (right, wrong) = (found(b"a", Algorithm::Sha256), found(b"b", Algorithm::Sha256));
        let learned = Judge { digest: Some(right.digest), ..Judge::default() };
        let stated = Judge { binding: true, ..learned };
        for (judge, found, from_peer, held, want) in [
            (Judge::default(), wrong, false, true, Verdict::Accept),
            (learned, right, true, true, Verdict::Accept),
            (learned, wrong, false, false, Verdict::Accept),
            (learned, wrong, true, true, Verdict::TakeBack),
            (learned, wrong, true, false, Verdict::Refuse),
            (stated, wrong, false, true, Verdict::Refuse),
            (stated, wrong, true, true, Verdict::TakeBack),
            // without anything to judge by no neighbour is believed
            (Judge::default(), wrong, true, true, Verdict::TakeBack),
        ] {
            assert_eq!(judge.verdict(found, from_peer, held), want);
        }
    }

    #[test]
    fn another_algorithm_judges_alone_where_it_is_strong() {
        let judge = |algorithm| Judge::binding(Some(of(b"a", algorithm)), |_| None);
        let (strong, weak) = (judge(Algorithm::Sha3_256), judge(Algorithm::Md5));
        let (right, wrong) = (found(b"a", Algorithm::Sha3_256), found(b"b", Algorithm::Sha3_256));
        let (weak_right, weak_wrong) = (found(b"a", Algorithm::Md5), found(b"b", Algorithm::Md5));
        for (judge, found, from_peer, want) in [
            (strong, right, true, Verdict::Accept),
            (strong, wrong, true, Verdict::TakeBack),
            (strong, right, false, Verdict::Accept),
            (strong, wrong, false, Verdict::Refuse),
            // compared with what the origin sends, never enough for what a neighbour does
            (weak, weak_right, false, Verdict::Accept),
            (weak, weak_wrong, false, Verdict::Refuse),
            (weak, weak_right, true, Verdict::TakeBack),
            // with the word of witnesses both must hold, and that word does not bind the origin
            (weak.with_word(weak_right.digest), weak_right, true, Verdict::Accept),
            (weak.with_word(weak_wrong.digest), weak_right, true, Verdict::TakeBack),
            (weak.with_word(weak_wrong.digest), weak_right, false, Verdict::Accept),
            // a value that was not reckoned proves nothing
            (strong, weak_right, true, Verdict::TakeBack),
        ] {
            assert_eq!(judge.verdict(found, from_peer, true), want, "{judge:?} {found:?}");
        }
    }

    #[test]
    fn what_neighbours_are_asked_for() {
        let (sha3, md5) = (of(b"a", Algorithm::Sha3_256), of(b"a", Algorithm::Md5));
        let digest = Digest::of(b"a");
        for (stated, known, want) in [
            (Stated::from(digest), None, Some(digest.into())),
            (sha3, None, Some(sha3)),
            (sha3, Some(digest), Some(digest.into())),
            (md5, None, None),
        ] {
            assert_eq!(Judge::binding(Some(stated), |_| known).named(), want);
        }
        assert_eq!(Judge { digest: Some(digest), ..Judge::default() }.named(), None);
        let learned = |stated| Judge::learned(stated, |_| None);
        assert_eq!(learned(digest.into()).asked(), Some(digest.into()));
        assert!(learned(sha3).bound().is_none() && learned(sha3).asked().is_some());
        assert_eq!(learned(md5).asked(), None);
    }

    #[test]
    fn what_waits_for_the_proof() {
        let stated = Judge { digest: Some(Digest::of(b"a")), binding: true, stated: None };
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
