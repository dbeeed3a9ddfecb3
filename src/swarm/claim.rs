//! Who goes to the origin: of those who claim a thing at about the same time, the one whose turn comes first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Turn;
use crate::digest::Hasher;
use crate::tls::NodeId;

/// The pause before somebody is asked for a second time; it doubles up to [`SLOWEST`].
const AGAIN: Duration = Duration::from_millis(10);
const SLOWEST: Duration = Duration::from_millis(50);

/// A node's turn for one thing: the lowest goes first. Different things have different orders, so that no node
/// fetches everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank([u8; 32]);

impl Rank {
    /// Of a node for the thing with this key.
    pub fn of(node: NodeId, key: &[u8; 32]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(b"larder claim v1");
        hasher.update(node.as_bytes());
        hasher.update(key);
        Self(*hasher.finish().as_bytes())
    }
}

/// What a claimant does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this time, unless something is heard.
    Wait(Instant),
    /// Go to the origin: everybody else waits for this node.
    Go,
    /// Ask this node whether it has begun.
    Ask(NodeId),
}

/// One node's claim to one thing.
#[derive(Debug)]
pub struct Claim {
    key: [u8; 32],
    me: Turn,
    /// Those that claim it too and go before this node.
    before: BTreeMap<Turn, NodeId>,
    /// Those that were waited for in vain.
    lost: BTreeSet<NodeId>,
    closes: Instant,
    patience: Duration,
    asked: Option<Asked>,
}

/// Who is asked, and since when.
#[derive(Debug, Clone, Copy)]
struct Asked {
    node: NodeId,
    since: Instant,
    next: Instant,
    pause: Duration,
}

impl Claim {
    /// A claim of `me`, who stands at `depth` if anywhere, made now. Others are listened for during `window`, and each of those that go before this node has
    /// `patience` to say that it has begun.
    pub fn new(
        (me, depth): (NodeId, Option<u8>),
        key: [u8; 32],
        now: Instant,
        window: Duration,
        patience: Duration,
    ) -> Self {
        Self {
            key,
            me: Turn::of(me, depth, &key),
            before: BTreeMap::new(),
            lost: BTreeSet::new(),
            closes: now + window,
            patience,
            asked: None,
        }
    }

    /// Another node claims it, which stands at this depth, if anywhere.
    pub fn hear(&mut self, node: NodeId, depth: Option<u8>) {
        let turn = Turn::of(node, depth, &self.key);
        if turn < self.me && !self.lost.contains(&node) {
            self.before.insert(turn, node);
        }
    }

    /// Everybody has been heard: there is nothing to listen for.
    pub fn close(&mut self, now: Instant) {
        self.closes = self.closes.min(now);
    }

    /// This node does not fetch it, or no longer: the next one does.
    pub fn lose(&mut self, node: NodeId) {
        self.before.retain(|_, other| *other != node);
        self.lost.insert(node);
    }

    /// What to do now.
    pub fn step(&mut self, now: Instant) -> Step {
        if now < self.closes {
            return Step::Wait(self.closes);
        }
        loop {
            let Some(first) = self.before.values().next().copied() else { return Step::Go };
            let asked = match self.asked.filter(|asked| asked.node == first) {
                None => Asked { node: first, since: now, next: now, pause: AGAIN },
                Some(asked) if now >= asked.since + self.patience => {
                    self.lose(first);
                    continue;
                }
                Some(asked) => asked,
            };
            if now < asked.next {
                self.asked = Some(asked);
                return Step::Wait(asked.next.min(asked.since + self.patience));
            }
            let pause = (asked.pause * 2).min(SLOWEST);
            self.asked = Some(Asked { next: now + asked.pause, pause, ..asked });
            return Step::Ask(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};
    use proptest::prelude::*;

    const WINDOW: Duration = Duration::from_millis(10);
    const PATIENCE: Duration = Duration::from_millis(250);

    fn node(n: u8) -> NodeId {
        NodeId::from_bytes([n; 16])
    }

    fn claim(n: u8, now: Instant) -> Claim {
        Claim::new((node(n), None), [7; 32], now, WINDOW, PATIENCE)
    }

    /// The nodes 1 to 5 in the order of their turns.
    fn in_order() -> Vec<u8> {
        let mut all: Vec<u8> = (1..=5).collect();
        all.sort_by_key(|n| Rank::of(node(*n), &[7; 32]));
        all
    }

    #[test]
    fn alone_one_goes_when_the_window_closes() {
        let now = SystemClock.instant();
        let mut claim = claim(1, now);
        assert_eq!(claim.step(now), Step::Wait(now + WINDOW));
        assert_eq!(claim.step(now + WINDOW), Step::Go);
        let mut early = self::claim(1, now);
        early.close(now);
        assert_eq!(early.step(now), Step::Go);
    }

    #[test]
    fn the_next_in_order_goes_when_the_first_is_silent_and_nobody_else_does() {
        let (now, order) = (SystemClock.instant(), in_order());
        let mut claims: Vec<Claim> = order.iter().map(|n| claim(*n, now)).collect();
        for claim in &mut claims {
            order.iter().for_each(|n| claim.hear(node(*n), None));
            claim.close(now);
        }
        let (first, second) = (node(order[0]), node(order[1]));
        assert_eq!(claims[0].step(now), Step::Go);
        for claim in &mut claims[1..] {
            assert_eq!(claim.step(now), Step::Ask(first));
            assert_eq!(claim.step(now), Step::Wait(now + AGAIN));
        }
        let later = now + PATIENCE;
        assert_eq!(claims[1].step(later), Step::Go);
        for claim in &mut claims[2..] {
            assert_eq!(claim.step(later), Step::Ask(second));
        }
    }

    #[test]
    fn who_is_lost_is_not_waited_for_again() {
        let (now, order) = (SystemClock.instant(), in_order());
        let mut claim = claim(order[1], now);
        claim.hear(node(order[0]), None);
        claim.lose(node(order[0]));
        claim.hear(node(order[0]), None);
        assert_eq!(claim.step(now + WINDOW), Step::Go);
    }

    #[test]
    fn who_has_something_of_it_goes_before_newcomers_in_the_order_of_the_places() {
        let (now, order) = (SystemClock.instant(), in_order());
        let mut claim = Claim::new((node(order[4]), Some(1)), [7; 32], now, WINDOW, PATIENCE);
        claim.hear(node(order[0]), None);
        claim.hear(node(order[1]), Some(2));
        assert_eq!(claim.step(now + WINDOW), Step::Go);
        claim.hear(node(order[2]), Some(1));
        assert_eq!(claim.step(now + WINDOW), Step::Ask(node(order[2])));
        let mut newcomer = self::claim(order[0], now);
        newcomer.hear(node(order[4]), Some(9));
        assert_eq!(newcomer.step(now + WINDOW), Step::Ask(node(order[4])));
    }

    proptest! {
        /// Whoever hears all others agrees with them, and every wait ends.
        #[test]
        fn exactly_one_goes(nodes in prop::collection::btree_set(any::<u8>(), 1..40), key: [u8; 32]) {
            let now = SystemClock.instant();
            let mut goes = 0;
            for me in &nodes {
                let mut claim = Claim::new((node(*me), None), key, now, WINDOW, PATIENCE);
                nodes.iter().filter(|other| *other != me).for_each(|other| claim.hear(node(*other), None));
                goes += usize::from(claim.step(now + WINDOW) == Step::Go);
                let mut at = now;
                let mut asked = 0;
                loop {
                    match claim.step(at) {
                        Step::Go => break,
                        Step::Wait(until) => { prop_assert!(until > at); at = until; }
                        Step::Ask(_) => asked += 1,
                    }
                }
                prop_assert!(asked <= 8 * nodes.len(), "{asked}");
            }
            prop_assert_eq!(goes, 1);
        }
    }
}
