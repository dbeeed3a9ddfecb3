//! Asking: this node's own questions, from the first frame to the last late answer.
//!
//! A find is decided by the first complete and idle holder, or when all known nodes have answered, or at a
//! deadline learned from the site; with nobody there it is decided at once. Offers go on coming until the
//! caller forgets the find. A claim is a find that is heard as more than a question: crossing claims get at least
//! ten milliseconds to arrive, unless everybody has answered before.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::{Action, Engine, FindingId, SMALL_SITE, Task};
use crate::discovery::message::{Answer, Beyond, Kind, MAX_WANTS, QueryId};
use crate::discovery::{HEARD_LATELY, Holding, Offer, Wanted};
use crate::tls::NodeId;

/// Who has not answered by now is silent; until then a question is kept to learn from late answers.
const JUDGE_AFTER: Duration = Duration::from_secs(1);
/// How many questions are open at once.
const MOST: usize = 1024;
/// How many offers one find takes.
pub const OFFERS: usize = 64;
/// How long a claim waits for claims that cross it.
const CLAIM_WINDOW: Duration = Duration::from_millis(10);
/// How long it waits for those that are expected to answer and have not: one that is held up may be on its way to
/// the origin already.
const CLAIM_PATIENCE: Duration = Duration::from_millis(50);
/// How many complete holders are enough on a large site.
const ENOUGH: usize = 3;

/// This node's open questions.
#[derive(Debug, Default)]
pub(super) struct Queries {
    open: HashMap<QueryId, Query>,
    order: VecDeque<QueryId>,
    by_finding: HashMap<FindingId, QueryId>,
}

#[derive(Debug)]
struct Query {
    sent: Instant,
    how: Asking,
    wants: Vec<Want>,
    /// Who is expected to answer: everybody on a small site, nobody by name on a large one.
    awaited: BTreeSet<NodeId>,
    /// Whether all awaited answers together decide.
    all_decide: bool,
    answered: bool,
    enough: bool,
}

#[derive(Debug)]
struct Want {
    finding: FindingId,
    wanted: Wanted,
    offered: HashSet<NodeId>,
    complete: usize,
    decided: bool,
    forgotten: bool,
}

/// Whom a question goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Everybody.
    Everybody,
    /// Everybody, as a claim of one that stands at this depth; none: it has nothing yet.
    Claim(Option<u8>),
    /// One neighbour, who answers for itself.
    One(NodeId),
    /// One node that broadcast does not reach; where it is not known, it is met first.
    Beyond(Beyond),
}

impl Asking {
    const fn is_of_one(self) -> bool {
        matches!(self, Self::One(_) | Self::Beyond(_))
    }

    const fn is_claim(self) -> bool {
        matches!(self, Self::Claim(_))
    }
}

impl Queries {
    pub(super) fn is_open(&self, query: &QueryId) -> bool {
        self.open.contains_key(query)
    }

    /// Returns the finds that end with it.
    fn remove(&mut self, query: &QueryId) -> Vec<Want> {
        let Some(mut gone) = self.open.remove(query) else { return Vec::new() };
        gone.wants.retain(|want| !want.forgotten);
        for want in &gone.wants {
            self.by_finding.remove(&want.finding);
        }
        gone.wants
    }

    /// Makes room for one more; returns the finds that end for it.
    fn make_room(&mut self) -> Vec<Want> {
        let mut ended = Vec::new();
        while self.open.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            ended.extend(self.remove(&oldest));
        }
        if self.order.len() > 2 * MOST {
            let open = &self.open;
            self.order.retain(|query| open.contains_key(query));
        }
        ended
    }
}

impl Engine {
    /// Asks the site, or one neighbour of it; several wants share frames.
    pub fn find(&mut self, how: Asking, wants: &[(FindingId, Wanted)], now: Instant) -> Vec<Action> {
        for wants in wants.chunks(MAX_WANTS) {
            self.ask(how, wants, now);
        }
        self.take()
    }

    /// Nobody waits for this find any more.
    pub fn forget(&mut self, finding: FindingId, now: Instant) {
        self.close_claim(finding);
        let Some(query) = self.queries.by_finding.remove(&finding) else { return };
        let Some(open) = self.queries.open.get_mut(&query) else { return };
        for want in open.wants.iter_mut().filter(|want| want.finding == finding) {
            want.forgotten = true;
        }
        if open.wants.iter().all(|want| want.forgotten) && now.duration_since(open.sent) >= JUDGE_AFTER {
            self.queries.remove(&query);
        }
    }

    /// Tells a neighbour that its copy is wrong.
    pub fn doubt(&mut self, node: &NodeId, digest: crate::digest::Digest, now: Instant) -> Vec<Action> {
        if let Some(path) = self.table.get(node).and_then(|known| known.path(now)) {
            self.send(path.address, path.link, None, None, Kind::Doubt { digest });
        }
        self.take()
    }

    /// A neighbour answers.
    pub(super) fn told(
        &mut self,
        node: NodeId,
        query: QueryId,
        answers: Vec<Answer>,
        done: bool,
        now: Instant,
    ) {
        let Some(open) = self.queries.open.get_mut(&query) else { return };
        self.counts.answers += 1;
        open.answered = true;
        self.wait.answered(now.duration_since(open.sent));
        let Some(known) = self.table.get_mut(&node) else { return };
        known.answered();
        let peer = known.view();
        if peer.serves() && !self.marks.skips(&node, now) {
            for answer in answers {
                let (grant, number) = (answer.grant, answer.want);
                let Some(want) = open.wants.get_mut(usize::from(number)) else { continue };
                if !want.takes(node, &answer.holding) {
                    continue;
                }
                let offer = Offer { peer: peer.clone(), holding: answer.holding, grant };
                let decides = offer.holding.complete && !offer.holding.busy;
                self.out.push(Action::Offer(want.finding, Box::new(offer)));
                if decides {
                    want.decide(&mut self.out);
                }
            }
        }
        if done {
            open.awaited.remove(&node);
            if open.all_decide && open.awaited.is_empty() {
                open.decide(&mut self.out);
            }
        }
        self.enough(query, now);
    }

    /// The find has waited long enough.
    pub(super) fn deadline(&mut self, query: QueryId, now: Instant) {
        let Some(open) = self.queries.open.get_mut(&query) else { return };
        // one silent neighbour says nothing of the site
        if !open.how.is_of_one() && !open.answered && self.table.live(now) > 0 {
            self.wait.empty();
        }
        open.decide(&mut self.out);
    }

    /// Whoever was expected and has not answered counts as silent.
    pub(super) fn judge(&mut self, query: QueryId) {
        let Some(open) = self.queries.open.get(&query) else { return };
        for node in &open.awaited {
            if let Some(known) = self.table.get_mut(node) {
                known.fell_silent();
            }
        }
        if open.wants.iter().all(|want| want.forgotten) {
            self.queries.remove(&query);
        }
    }

    fn ask(&mut self, how: Asking, wants: &[(FindingId, Wanted)], now: Instant) {
        for mut ended in self.queries.make_room() {
            self.close_claim(ended.finding);
            ended.decide(&mut self.out);
            self.out.push(Action::Closed(ended.finding));
        }
        let query = QueryId(self.random.id());
        let starting = self.started + self.wait_max > now;
        let (awaited, all_decide) = self.expected(how, starting, now);
        let nobody = all_decide && awaited.is_empty();
        let mut open = Query {
            sent: now,
            how,
            wants: wants.iter().map(|(finding, wanted)| Want::new(*finding, *wanted)).collect(),
            awaited,
            all_decide,
            answered: false,
            enough: false,
        };
        self.counts.finds += 1;
        let asked = self.put_question(how, query, wants, now);
        let wait = self.patience(how, starting, now);
        let wait = if how.is_claim() && !open.awaited.is_empty() { wait.max(CLAIM_PATIENCE) } else { wait };
        if nobody || !asked || wait.is_zero() {
            open.decide(&mut self.out);
        } else {
            self.schedule.at(now + wait, Task::Deadline(query));
        }
        self.schedule.at(now + JUDGE_AFTER, Task::Judge(query));
        for (finding, _) in wants {
            self.queries.by_finding.insert(*finding, query);
        }
        self.queries.open.insert(query, open);
        self.queries.order.push_back(query);
    }

    /// Sends the question; false if it cannot reach whom it is for. One that serves nobody cannot fetch for others.
    fn put_question(
        &mut self,
        how: Asking,
        query: QueryId,
        wants: &[(FindingId, Wanted)],
        now: Instant,
    ) -> bool {
        let numbered: Vec<(u8, Wanted)> = (0..).zip(wants.iter().map(|(_, wanted)| *wanted)).collect();
        match how {
            Asking::Claim(depth) if self.me.tcp_port != 0 => {
                self.broadcast(Kind::Claim { query, depth, wants: numbered }, now);
                for (finding, wanted) in wants {
                    self.open_claim(*finding, *wanted, now);
                }
            }
            Asking::Everybody | Asking::Claim(_) => {
                self.broadcast(Kind::Find { query, wants: numbered }, now)
            }
            Asking::Beyond(holder) => {
                let known = self.table.get(&holder.node);
                let known = known.filter(|known| known.boot == holder.boot && known.is_live(now));
                match known.and_then(|known| known.path(now)) {
                    Some(path) => {
                        let kind = Kind::Find { query, wants: numbered };
                        self.send(path.address, path.link, None, None, kind);
                    }
                    None => return self.seek(holder, (query, numbered), now),
                }
            }
            Asking::One(node) => {
                let Some(path) = self.table.get(&node).and_then(|known| known.path(now)) else {
                    return false;
                };
                self.send(path.address, path.link, None, None, Kind::Find { query, wants: numbered });
            }
        }
        true
    }

    /// Who is expected to answer, and whether all their answers together decide.
    fn expected(&self, how: Asking, starting: bool, now: Instant) -> (BTreeSet<NodeId>, bool) {
        match how {
            Asking::One(node) | Asking::Beyond(Beyond { node, .. }) => (BTreeSet::from([node]), true),
            Asking::Everybody | Asking::Claim(_) if self.table.live(now) <= SMALL_SITE => {
                (self.awaited(now), !starting)
            }
            Asking::Everybody | Asking::Claim(_) => (BTreeSet::new(), false),
        }
    }

    /// How long a find that begins now may wait.
    fn patience(&self, how: Asking, starting: bool, now: Instant) -> Duration {
        if how.is_of_one() {
            return self.wait_max;
        }
        let learned = match self.table.last_heard() {
            Some(heard) if now.duration_since(heard) < HEARD_LATELY => self.wait.deadline(),
            _ => Duration::ZERO,
        };
        let first_round = (self.started + self.wait_max).saturating_duration_since(now);
        let wait = if starting { first_round.max(learned) } else { learned };
        if how.is_claim() { wait.max(CLAIM_WINDOW) } else { wait }
    }

    fn awaited(&self, now: Instant) -> BTreeSet<NodeId> {
        let live = self.table.iter().filter(|known| known.is_live(now) && known.is_awaited());
        live.filter(|known| known.view().serves()).map(|known| known.sender.node).collect()
    }

    /// Stops the answers of a large site once each want has its holders.
    fn enough(&mut self, query: QueryId, now: Instant) {
        let large = self.table.live(now) > SMALL_SITE;
        let Some(open) = self.queries.open.get_mut(&query) else { return };
        if large && !open.enough && open.wants.iter().all(|want| want.complete >= ENOUGH) {
            open.enough = true;
            self.broadcast(Kind::Enough { query }, now);
        }
    }
}

impl Query {
    fn decide(&mut self, out: &mut Vec<Action>) {
        for want in &mut self.wants {
            want.decide(out);
        }
    }
}

impl Want {
    fn new(finding: FindingId, wanted: Wanted) -> Self {
        Self { finding, wanted, offered: HashSet::new(), complete: 0, decided: false, forgotten: false }
    }

    fn decide(&mut self, out: &mut Vec<Action>) {
        if !self.decided {
            self.decided = true;
            out.push(Action::Decided(self.finding));
        }
    }

    /// Whether an answer of this node counts: the first one, and of what was asked for.
    fn takes(&mut self, node: NodeId, holding: &Holding) -> bool {
        let other = |digest| holding.digest.is_some_and(|held| held != digest);
        let wrong = match self.wanted {
            Wanted::Blob(digest) => other(digest),
            // under another algorithm's name nothing can be read
            Wanted::Stated(_) => holding.digest.is_none(),
            Wanted::Url(_) => false,
        };
        if self.forgotten || wrong || self.offered.len() >= OFFERS || !self.offered.insert(node) {
            return false;
        }
        // the root of a running transfer tells all there is to know
        let is_root = holding.partial.as_ref().is_some_and(|partial| partial.root == node);
        self.complete += if is_root { ENOUGH } else { usize::from(holding.complete) };
        true
    }
}
