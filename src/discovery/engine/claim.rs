//! Claims: who else means to fetch a thing from outside at this moment.
//!
//! A claim is a question like any other, answered like any other. Besides, whoever has a claim of its own open for
//! the same thing is told of it, and one that opens a moment later is told of those heard just before: frames
//! cross on the wire. What follows from it is not decided here.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Action, Engine, FindingId};
use crate::discovery::Wanted;
use crate::tls::NodeId;

/// How long a claim is remembered for those that open after it: several times the wait of the claimant, who has
/// gone or found somebody by then, and answers for himself.
const REMEMBERED: Duration = Duration::from_millis(100);
/// How many are remembered.
const MOST: usize = 4096;
/// How many claims of others one claim is told of.
pub const CLAIMS: usize = 256;

/// Who claims a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimant {
    /// The node.
    pub node: NodeId,
    /// Where it stands among those that receive it; none: it has nothing of it yet.
    pub depth: Option<u8>,
}

/// The claims of others, and the own ones that are open.
#[derive(Debug, Default)]
pub(super) struct Claims {
    heard: VecDeque<(Instant, Claimant, Wanted)>,
    open: Vec<Own>,
}

#[derive(Debug)]
struct Own {
    finding: FindingId,
    wanted: Wanted,
    told: Vec<NodeId>,
}

impl Own {
    fn tell(&mut self, claimant: Claimant, out: &mut Vec<Action>) {
        if self.told.len() < CLAIMS && !self.told.contains(&claimant.node) {
            self.told.push(claimant.node);
            out.push(Action::Claimed(self.finding, claimant));
        }
    }
}

impl Engine {
    /// A neighbour means to fetch these. One that serves nobody fetches for nobody.
    pub(super) fn claimed(&mut self, claimant: Claimant, wants: &[(u8, Wanted)], now: Instant) {
        let serves = self.table.get(&claimant.node).is_some_and(|known| known.view().serves());
        if !serves || self.marks.skips(&claimant.node, now) {
            return;
        }
        for (_, wanted) in wants {
            if self.claims.heard.len() >= MOST {
                self.claims.heard.pop_front();
            }
            self.claims.heard.push_back((now, claimant, *wanted));
            for own in self.claims.open.iter_mut().filter(|own| own.wanted == *wanted) {
                own.tell(claimant, &mut self.out);
            }
        }
    }

    /// A claim of ours begins.
    pub(super) fn open_claim(&mut self, finding: FindingId, wanted: Wanted, now: Instant) {
        let old = |(heard, ..): &(Instant, Claimant, Wanted)| now.duration_since(*heard) > REMEMBERED;
        while self.claims.heard.front().is_some_and(old) {
            self.claims.heard.pop_front();
        }
        let mut own = Own { finding, wanted, told: Vec::new() };
        for (_, claimant, _) in self.claims.heard.iter().filter(|(.., claimed)| *claimed == wanted) {
            own.tell(*claimant, &mut self.out);
        }
        self.claims.open.push(own);
    }

    /// Nobody waits for this find any more.
    pub(super) fn close_claim(&mut self, finding: FindingId) {
        self.claims.open.retain(|own| own.finding != finding);
    }
}
