//! What administrators of a site order for all of its nodes, and how two nodes come to agree on it.
//!
//! Each node keeps the whole list. Two lists are merged order by order: of two for one thing the later wins, and what
//! was lifted stays in the list as lifted, so that nobody brings it back. Later is the higher stamp, and a stamp is
//! above every other that its node knew: a clock that is wrong may let stamps run ahead, it takes no order back.
//! However lists meet, and however often, all nodes end with the same one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::BlockRecord;
use crate::clock::Timestamp;
use crate::digest::{Digest, unhex};
use crate::policy::UrlKey;

/// More things are not ordered for a site; beyond that the oldest that were lifted are forgotten.
pub const ORDERS: usize = 1000;
/// Texts are refused beyond these lengths, in bytes.
const SHOWN: usize = 600;
const REASON: usize = 800;
const BY: usize = 160;
/// No stamp is above this: far beyond any clock, and far below where counting ends.
const LAST_STAMP: u64 = 1 << 52;

/// One order: a thing that no node of the site gives to anybody, or may give again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The thing's name among what is blocked.
    pub thing: String,
    /// The digest, or the URL without its query.
    pub shown: String,
    /// Why, for whoever is refused it.
    pub reason: String,
    /// Which of two orders for one thing is later.
    pub stamp: u64,
    /// When it was given, by the clock of that node.
    pub at: Timestamp,
    /// The node where it was given: its name and the beginning of its id.
    pub by: String,
    /// Whether the thing may be had again.
    pub lifted: bool,
}

/// What an order is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordered {
    /// A blob.
    Blob(Digest),
    /// A URL.
    Url(UrlKey),
}

/// All orders that a node knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orders(BTreeMap<String, Order>);

/// The site has as many orders as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the site has {ORDERS} orders already; lift some that need it no longer")]
pub struct TooManyOrders;

impl Order {
    /// What it is about; none where that is no name of a thing.
    pub fn what(&self) -> Option<Ordered> {
        match self.thing.strip_prefix("url:") {
            Some(hex) => {
                let key: [u8; 32] = unhex(hex).ok()?.try_into().ok()?;
                Some(Ordered::Url(UrlKey::from_bytes(key)))
                    .filter(|_| BlockRecord::url(&UrlKey::from_bytes(key)) == self.thing)
            }
            None => {
                let digest = Digest::from_hex(self.thing.strip_prefix("sha256:")?).ok()?;
                Some(Ordered::Blob(digest)).filter(|_| BlockRecord::blob(&digest) == self.thing)
            }
        }
    }

    /// Whether another node may say this.
    fn is_sound(&self) -> bool {
        let is_text = |text: &str, most| text.len() <= most && !text.chars().any(char::is_control);
        self.what().is_some()
            && is_text(&self.shown, SHOWN)
            && is_text(&self.reason, REASON)
            && is_text(&self.by, BY)
            && self.stamp <= LAST_STAMP
    }

    /// The higher is the later; equal ones are one order.
    fn rank(&self) -> (u64, bool, &str, &str, &str) {
        (self.stamp, self.lifted, &self.by, &self.reason, &self.shown)
    }
}

impl Orders {
    /// Reads a list; orders that no node of ours would give are left out.
    pub fn from_json(json: &[u8]) -> Result<Vec<Order>, serde_json::Error> {
        let all: Vec<Order> = serde_json::from_slice(json)?;
        Ok(all.into_iter().filter(Order::is_sound).collect())
    }

    /// All orders.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&self.0.values().collect::<Vec<_>>())
    }

    /// A name of the whole list, equal where the lists are; none of an empty one.
    pub fn name(&self) -> Option<[u8; 16]> {
        if self.0.is_empty() {
            return None;
        }
        let mut hasher = Sha256::new_with_prefix(b"larder orders v1");
        for order in self.0.values() {
            for part in [&order.thing, &order.by, &order.reason, &order.shown] {
                hasher.update((part.len() as u64).to_be_bytes());
                hasher.update(part.as_bytes());
            }
            hasher.update(order.stamp.to_be_bytes());
            hasher.update([u8::from(order.lifted)]);
        }
        let hash: [u8; 32] = hasher.finalize().into();
        hash.first_chunk().copied()
    }

    /// The order in force for a thing.
    pub fn of(&self, thing: &str) -> Option<&Order> {
        self.0.get(thing).filter(|order| !order.lifted)
    }

    /// Gives an order that is later than all that are known; its stamp is found here.
    pub fn give(&mut self, order: Order) -> Result<Order, TooManyOrders> {
        let in_force = self.0.values().filter(|order| !order.lifted).count();
        if !order.lifted && in_force >= ORDERS && self.of(&order.thing).is_none() {
            return Err(TooManyOrders);
        }
        let last = self.0.values().map(|order| order.stamp).max().unwrap_or(0);
        let stamp = order.at.0.max(last.saturating_add(1)).min(LAST_STAMP);
        let order = Order { stamp, ..order };
        self.0.insert(order.thing.clone(), order.clone());
        self.bound();
        Ok(order)
    }

    /// Takes over what is later in another list, and says what that was.
    pub fn merge(&mut self, theirs: Vec<Order>) -> Vec<Order> {
        let mut news = BTreeMap::new();
        for order in theirs {
            let is_news = self.0.get(&order.thing).is_none_or(|ours| ours.rank() < order.rank());
            if is_news && order.is_sound() {
                news.insert(order.thing.clone(), order.clone());
                self.0.insert(order.thing.clone(), order);
            }
        }
        self.bound();
        news.into_values().collect()
    }

    /// Everybody forgets the same ones: those that were lifted before others, the oldest first.
    fn bound(&mut self) {
        while self.0.len() > ORDERS {
            let least = self.0.values().min_by_key(|order| (!order.lifted, order.stamp, order.thing.clone()));
            let Some(least) = least.map(|order| order.thing.clone()) else { return };
            self.0.remove(&least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(n: u8, by: &str, at: u64, lifted: bool) -> Order {
        let thing = BlockRecord::blob(&Digest::of(&[n]));
        Order {
            shown: thing.clone(),
            thing,
            reason: "bad".into(),
            stamp: 0,
            at: Timestamp(at),
            by: by.into(),
            lifted,
        }
    }

    #[test]
    fn a_later_order_wins_whatever_the_clocks_say() {
        let (mut a, mut b) = (Orders::default(), Orders::default());
        assert_eq!(a.name(), None);
        // the clock of a is years ahead
        let given = a.give(order(1, "a", 1 << 50, false)).unwrap();
        assert_eq!(b.merge(vec![given.clone()]), [given]);
        assert_eq!((b.name(), b.of(&order(1, "", 0, false).thing).is_some()), (a.name(), true));
        let lifted = b.give(order(1, "b", 5, true)).unwrap();
        assert_ne!(b.name(), a.name());
        assert_eq!(a.merge(vec![lifted.clone()]), [lifted]);
        assert!(a == b && a.of(&order(1, "", 0, false).thing).is_none());
        // what comes again, or from before, changes nothing
        assert_eq!(a.merge(vec![order(1, "c", 9, false)]), []);
    }

    #[test]
    fn what_no_node_would_say_is_not_taken() {
        let good = Order { stamp: 1, ..order(1, "a", 1, false) };
        let mut all = Orders::default();
        let url = format!("url:{}", "ab".repeat(32));
        for bad in [
            Order { thing: "sha256:12".into(), ..good.clone() },
            Order { thing: url.to_uppercase(), ..good.clone() },
            Order { thing: good.thing.to_uppercase(), ..good.clone() },
            Order { thing: "../etc".into(), ..good.clone() },
            Order { reason: "x".repeat(REASON + 1), ..good.clone() },
            Order { shown: "a\nb".into(), ..good.clone() },
            Order { stamp: LAST_STAMP + 1, ..good.clone() },
        ] {
            assert_eq!(all.merge(vec![bad.clone()]), [], "{bad:?}");
            assert!(Orders::from_json(&serde_json::to_vec(&[bad]).unwrap()).unwrap().is_empty());
        }
        let of_url = Order { thing: url, ..good.clone() };
        assert_eq!(all.merge(vec![good, of_url]).len(), 2);
        let again = Orders::from_json(&all.to_json().unwrap()).unwrap();
        let mut other = Orders::default();
        other.merge(again);
        assert!(other == all && Orders::from_json(b"{}").is_err());
    }

    #[test]
    fn the_list_is_bounded_and_what_was_lifted_goes_first() {
        let mut all = Orders::default();
        let thing = |n: usize| BlockRecord::blob(&Digest::of(&n.to_be_bytes()));
        let of = |n: usize, lifted| Order { thing: thing(n), ..order(0, "a", 0, lifted) };
        for n in 0..ORDERS {
            all.give(of(n, false)).unwrap();
        }
        assert_eq!(all.give(of(ORDERS, false)), Err(TooManyOrders));
        assert!(all.give(of(7, false)).is_ok(), "one that stands already may be given anew");
        all.give(of(7, true)).unwrap();
        all.give(of(ORDERS, false)).unwrap();
        assert_eq!(all.0.len(), ORDERS);
        assert!(!all.0.contains_key(&thing(7)) && all.of(&thing(0)).is_some());
    }

    proptest! {
        /// Lists that meet in any order, in part and again, end equal.
        #[test]
        fn nodes_agree_however_they_meet(
            given in prop::collection::vec((0..3usize, 0..5u8, 0..20u64, any::<bool>()), 1..30),
            meetings in prop::collection::vec((0..3usize, 0..3usize), 0..30),
        ) {
            let mut nodes = vec![Orders::default(); 3];
            let mut meetings = meetings.into_iter();
            let told = |nodes: &[Orders], from: usize| nodes[from].0.values().cloned().collect::<Vec<_>>();
            for (node, thing, at, lifted) in given {
                nodes[node].give(order(thing, ["a", "b", "c"][node], at, lifted)).unwrap();
                if let Some((from, to)) = meetings.next() {
                    let theirs = told(&nodes, from);
                    nodes[to].merge(theirs);
                }
            }
            for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 1)] {
                let theirs = told(&nodes, from);
                nodes[to].merge(theirs);
            }
            prop_assert_eq!(nodes[0].name(), nodes[1].name());
            prop_assert!(nodes[0] == nodes[1] && nodes[1] == nodes[2]);
        }
    }
}
