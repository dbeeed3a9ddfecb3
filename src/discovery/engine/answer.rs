//! Answering: what neighbours ask, and what this node says it has.
//!
//! One answer a question, by unicast to the proved address of the asker. On a large site nothing to say is
//! silence, and holders wait a little, the busy ones longer, until the asker has heard enough.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::{Arrival, Engine, SMALL_SITE, Task};
use crate::digest::Digest;
use crate::discovery::message::{Answer, Kind, QueryId};
use crate::discovery::table::Path;
use crate::discovery::{Asker, Holding, Wanted};
use crate::seal::{MAX_BODY, Thing};
use crate::tls::NodeId;

/// How long an answered question is remembered, and how many.
const REMEMBERED: Duration = Duration::from_secs(120);
const MOST: usize = 8192;
/// The longest delay of an idle holder's answer on a site of any size.
const SPREAD: Duration = Duration::from_millis(40);
/// How often one copy may be doubted, and how many doubts are remembered.
const DOUBT_EVERY: Duration = Duration::from_secs(600);
const DOUBTS: usize = 256;

/// Who asked what.
pub(super) type AskedKey = (NodeId, QueryId);

/// The questions of neighbours.
#[derive(Debug, Default)]
pub(super) struct Answering {
    seen: HashMap<AskedKey, Instant>,
    order: VecDeque<(AskedKey, Instant)>,
    /// Answers that wait for their time.
    waiting: HashMap<AskedKey, (Vec<(u8, Wanted)>, Arrival)>,
    doubts: HashMap<Digest, Instant>,
}

impl Answering {
    /// Whether the question is new.
    fn note(&mut self, key: AskedKey, now: Instant) -> bool {
        if self.seen.contains_key(&key) {
            return false;
        }
        if self.seen.len() >= MOST
            && let Some((oldest, _)) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.seen.insert(key, now);
        self.order.push_back((key, now));
        true
    }

    pub(super) fn enough(&mut self, key: &AskedKey) {
        self.waiting.remove(key);
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some((key, noted)) = self.order.front().copied()
            && now.duration_since(noted) >= REMEMBERED
        {
            self.order.pop_front();
            self.seen.remove(&key);
        }
        self.doubts.retain(|_, noted| now.duration_since(*noted) < DOUBT_EVERY);
    }
}

impl Engine {
    /// A neighbour asks a gateway, which may have passed the question on.
    pub(super) fn asked_of_gateway(
        &mut self,
        passed_on: bool,
        key: AskedKey,
        wants: Vec<(u8, Wanted)>,
        arrival: Arrival,
        now: Instant,
    ) {
        let holds = |(_, wanted): &(u8, Wanted)| self.holdings.lookup(wanted, None).is_some();
        if !passed_on || self.table.live(now) > SMALL_SITE || wants.iter().any(holds) {
            return self.asked(key, wants, arrival, now);
        }
        if self.answering.note(key, now) {
            self.counts.asked += 1;
            self.answering.waiting.insert(key, (wants, arrival));
            self.schedule.at(now + super::relay::PATIENCE, Task::Answer(key));
        }
    }

    /// A neighbour asks.
    pub(super) fn asked(&mut self, key: AskedKey, wants: Vec<(u8, Wanted)>, arrival: Arrival, now: Instant) {
        if !self.answering.note(key, now) {
            self.counts.replayed += 1;
            return;
        }
        self.counts.asked += 1;
        let asker = Asker { node: key.0, direct: !arrival.broadcast };
        let found = self.found(&wants, asker);
        let live = self.table.live(now);
        // who claims waits for ten milliseconds, and who asks one node waits for that one
        let at_once = asker.direct || found.iter().any(|(_, holding)| is_root(holding, self.me.node));
        if live <= SMALL_SITE || at_once {
            self.answer(key, found, arrival);
        } else if !found.is_empty() {
            let busy = found.iter().all(|(_, holding)| holding.busy);
            let delay = self.answer_delay(live, busy);
            self.answering.waiting.insert(key, (wants, arrival));
            self.schedule.at(now + delay, Task::Answer(key));
        }
    }

    /// The time of a delayed answer has come, unless the asker has heard enough or gone.
    pub(super) fn answer_late(&mut self, key: &AskedKey, now: Instant) {
        let Some((wants, mut arrival)) = self.answering.waiting.remove(key) else { return };
        let Some(asker) = self.table.get(&key.0) else { return };
        if !asker.reads(arrival.from) {
            let Some(Path { address, link, .. }) = asker.path(now) else { return };
            arrival = Arrival { from: address, link, ..arrival };
        }
        let asker = Asker { node: key.0, direct: !arrival.broadcast };
        let found = self.found(&wants, asker);
        self.answer(*key, found, arrival);
    }

    /// Our copy gave a neighbour wrong bytes.
    pub(super) fn doubted(&mut self, digest: &Digest, now: Instant) {
        let doubts = &mut self.answering.doubts;
        let recent = doubts.get(digest).is_some_and(|noted| now.duration_since(*noted) < DOUBT_EVERY);
        if recent || doubts.len() >= DOUBTS {
            return;
        }
        doubts.insert(*digest, now);
        self.holdings.doubted(digest);
    }

    fn found(&self, wants: &[(u8, Wanted)], asker: Asker) -> Vec<((u8, Wanted), Holding)> {
        let held = |want: &(u8, Wanted)| Some((*want, self.holdings.lookup(&want.1, Some(asker))?));
        wants.iter().filter_map(held).collect()
    }

    /// Longer on larger sites and for busier holders, so that three idle ones come first.
    fn answer_delay(&mut self, live: usize, busy: bool) -> Duration {
        let site = u32::try_from(live / SMALL_SITE).unwrap_or(u32::MAX);
        let spread = Duration::from_millis(1).saturating_mul(site).min(SPREAD);
        let load = spread * u32::from(self.holdings.load()) / 255;
        self.random.within(spread) + load + if busy { spread } else { Duration::ZERO }
    }

    fn answer(&mut self, key: AskedKey, found: Vec<((u8, Wanted), Holding)>, arrival: Arrival) {
        let (asker, query) = key;
        let answers: Vec<Answer> = found
            .into_iter()
            .filter_map(|((want, wanted), holding)| {
                let (thing, alias) = things(&wanted, &holding)?;
                match self.grants.issue_named(asker, thing, alias) {
                    Ok(grant) => Some(Answer { want, holding, grant }),
                    Err(error) => {
                        tracing::debug!(%error, "no grant could be given");
                        None
                    }
                }
            })
            .collect();
        let room = MAX_BODY.saturating_sub(self.empty_answer_len(query));
        let frames = split(answers, room);
        let last = frames.len() - 1;
        for (number, answers) in frames.into_iter().enumerate() {
            let kind = Kind::Have { query, answers, done: number == last };
            self.send(arrival.from, arrival.link, None, None, kind);
        }
    }

    /// The length of an answer that says nothing, with the longest numbers.
    fn empty_answer_len(&self, query: QueryId) -> usize {
        let kind = Kind::Have { query, answers: Vec::new(), done: true };
        let sender = self.me.clone();
        crate::discovery::Message { sender, seq: u64::MAX, ask: None, echo: None, kind }.encode().len()
    }
}

/// Whether this node is where a thing that is still arriving enters the site.
fn is_root(holding: &Holding, me: NodeId) -> bool {
    holding.partial.as_ref().is_some_and(|partial| partial.root == me)
}

/// What the grant for an answer covers; none if the neighbour could not ask for it by any name.
fn things(wanted: &Wanted, holding: &Holding) -> Option<(Thing, Option<Thing>)> {
    let resource = holding.resource.map(|key| Thing::Resource(*key.as_bytes()));
    match (wanted, holding.digest) {
        // what arrives is asked for under the name that is known from the beginning
        (Wanted::Url(url), _) if holding.partial.is_some() => {
            Some((Thing::Resource(*url.as_bytes()), resource))
        }
        (Wanted::Stated(key), _) if holding.partial.is_some() => {
            Some((Thing::Resource(*key.as_bytes()), resource))
        }
        (Wanted::Blob(digest), _) if holding.partial.is_some() => {
            Some((Thing::Blob(*digest), Some(Thing::Resource(*digest.as_bytes()))))
        }
        (Wanted::Blob(digest), _) => Some((Thing::Blob(*digest), resource)),
        (Wanted::Url(_) | Wanted::Stated(_), Some(digest)) => Some((Thing::Blob(digest), resource)),
        (Wanted::Url(_), None) => Some((resource?, None)),
        (Wanted::Stated(_), None) => None,
    }
}

/// At least one list; each within `room` bytes.
fn split(answers: Vec<Answer>, room: usize) -> Vec<Vec<Answer>> {
    let mut frames = vec![Vec::new()];
    let mut left = room;
    for answer in answers {
        let length = answer.encoded_len();
        if length > left {
            frames.push(Vec::new());
            left = room;
        }
        left = left.saturating_sub(length);
        if let Some(frame) = frames.last_mut() {
            frame.push(answer);
        }
    }
    frames.retain(|frame| !frame.is_empty());
    if frames.is_empty() {
        frames.push(Vec::new());
    }
    frames
}
