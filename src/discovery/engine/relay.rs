//! Relaying: a gateway, a node on several networks, passes questions on, so that holders beyond the asker's own
//! network answer it themselves, by unicast.
//!
//! *Invariant:* what was relayed is never relayed again, so that no ring of gateways can close; one question is at
//! most one frame on each other network, under a limit for each asker; nobody is answered at an address that it
//! did not prove. Bytes never pass the gateway: both sides must be able to reach each other.

use std::time::{Duration, Instant};

use super::{Action, Arrival, Destination, Engine};
use crate::discovery::Wanted;
use crate::discovery::limit::Rate;
use crate::discovery::message::{Beyond, Kind, QueryId};
use crate::seal::MAX_BODY;
use crate::tls::NodeId;

/// How many questions of one asker are passed on, and of all of them.
pub(super) const EACH: Rate = Rate { burst: 64, a_minute: 1200 };
pub(super) const ALL: Rate = Rate { burst: 512, a_minute: 12_000 };
/// A gateway that has nothing itself says so only after this time: holders beyond it need it to answer.
pub(super) const PATIENCE: Duration = Duration::from_millis(30);

impl Engine {
    /// Passes a neighbour's question on, if that is this node's task; whether it did.
    pub(super) fn relay(
        &mut self,
        (asker, query): (NodeId, QueryId),
        wants: &[(u8, Wanted)],
        arrival: Arrival,
        now: Instant,
    ) -> bool {
        // what came by unicast was sent to us alone
        if !self.gateway || !arrival.broadcast || wants.is_empty() {
            return false;
        }
        let Some(known) = self.table.get(&asker) else { return false };
        let Some(address) = known.routable(arrival.from) else { return false };
        let asker = Beyond { node: asker, boot: known.boot, address };
        if !self.relays.admits(arrival.from.ip(), now) {
            self.counts.limited += 1;
            return false;
        }
        let body = self.body(None, None, Kind::Relay { query, asker, wants: wants.to_vec() });
        if body.len() > MAX_BODY {
            return false;
        }
        self.counts.relayed += 1;
        self.out.push(Action::Send { to: Destination::Beyond(arrival.link), body });
        true
    }

    /// A gateway passes on what somebody on another network asks. Only who has something to say meets the asker.
    pub(super) fn relayed(
        &mut self,
        asker: Beyond,
        query: QueryId,
        wants: Vec<(u8, Wanted)>,
        arrival: Arrival,
        now: Instant,
    ) {
        let holds = |(_, wanted): &(u8, Wanted)| self.holdings.lookup(wanted, None).is_some();
        if asker.node == self.me.node || !wants.iter().any(holds) {
            return;
        }
        let known =
            self.table.get(&asker.node).filter(|known| known.boot == asker.boot && known.is_live(now));
        match known.and_then(|known| known.path(now)) {
            Some(path) => {
                let arrival = Arrival { from: path.address, link: path.link, broadcast: true };
                self.asked((asker.node, query), wants, arrival, now);
            }
            None => self.meet(asker, (query, wants), arrival.link, now),
        }
    }
}
