//! The network, the clock and the origin.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use larder::clock::{Clock as _, ManualClock, SharedClock, Timestamp};
use larder::discovery::{Action, Arrival, Asking, Destination, FindingId, Kind, Link, Message, Wanted};
use larder::seal::{BootId, Opened};

use crate::crowd::TICK;
use crate::node::{Node, SIZE};
use crate::trace::Trace;

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// Of a thousand frames for one receiver, how many are lost, and how many come twice.
    pub lost: u64,
    pub doubled: u64,
    /// The longest way of a frame.
    pub delay: Duration,
    /// How many nodes crash and come back while the thing is on its way.
    pub crashes: usize,
    /// For how long the network is parted, and in how many parts.
    pub parted: Duration,
    pub parts: usize,
    /// Wall clocks are set.
    pub clocks: bool,
}

impl Faults {
    pub fn none() -> Self {
        let (delay, parted) = (Duration::from_micros(500), Duration::ZERO);
        Self { lost: 0, doubled: 0, delay, crashes: 0, parted, parts: 2, clocks: false }
    }

    /// Those of a seed.
    pub fn of(seed: u64) -> Self {
        Self {
            lost: [10, 50, 150][seed as usize % 3],
            doubled: 20,
            delay: Duration::from_millis([2, 8, 30][(seed / 3) as usize % 3]),
            crashes: 1 + seed as usize % 3,
            parted: Duration::from_secs(seed % 2 * 5),
            parts: 2 + seed as usize / 2 % 3,
            clocks: true,
        }
    }
}

pub struct Frame {
    from: usize,
    boot: BootId,
    to: usize,
    broadcast: bool,
    body: Arc<[u8]>,
}

pub enum Due {
    Frame(Frame),
    Want(usize),
    /// A node has something to do by itself.
    Alarm(usize, Instant),
    /// A connection did not come about.
    Refused(usize, FindingId),
    /// A node finds that its connection to a reader is dead.
    Free(usize, usize),
    Crash(usize),
    Return(usize),
    Join(bool),
    ClockStep,
    Move,
}

pub struct World {
    pub nodes: Vec<Node>,
    pub clock: Arc<ManualClock>,
    shared: SharedClock,
    pub faults: Faults,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    due: HashMap<u64, Due>,
    sequence: u64,
    random: u64,
    seed: u64,
    findings: u64,
    parted: bool,
    pub from_origin: u64,
    wanted: Instant,
    /// Frames sent that are no hello, and answers that arrived.
    pub questions: u64,
    pub answers: u64,
    pub decided: BTreeMap<FindingId, u32>,
    pub trace: Trace,
    began: Instant,
}

impl World {
    pub fn new(seed: u64, nodes: usize, faults: Faults) -> Self {
        let clock = ManualClock::new(Timestamp(1_796_000_000_000));
        let shared: SharedClock = clock.clone();
        let began = shared.instant();
        let nodes = (0..nodes).map(|who| Node::new(who, 1, seed, &shared)).collect();
        let mut world = Self {
            nodes,
            clock,
            shared,
            faults,
            queue: BinaryHeap::new(),
            due: HashMap::new(),
            sequence: 0,
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            seed,
            findings: 0,
            parted: false,
            from_origin: 0,
            wanted: began,
            questions: 0,
            answers: 0,
            decided: BTreeMap::new(),
            trace: Trace::default(),
            began,
        };
        for who in 0..world.nodes.len() {
            let now = world.now();
            world.act(who, |node| node.engine.start(now));
        }
        world.later(TICK, Due::Move);
        world
    }

    pub fn now(&self) -> Instant {
        self.clock.instant()
    }

    /// xorshift64*: the same on every machine.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound.max(1)
    }

    pub fn later(&mut self, after: Duration, due: Due) {
        self.sequence += 1;
        self.queue.push(Reverse((self.now() + after, self.sequence)));
        self.due.insert(self.sequence, due);
    }

    /// Everybody wants the thing within this time; what is to go wrong goes wrong meanwhile.
    pub fn everybody_wants(&mut self, within: Duration) {
        let count = self.nodes.len();
        self.wanted = self.now();
        for who in 0..count {
            let after = Duration::from_micros(self.below(within.as_micros() as u64));
            self.later(after, Due::Want(who));
        }
        for _ in 0..self.faults.crashes {
            let who = self.below(count as u64) as usize;
            let after = Duration::from_millis(self.below(20_000));
            self.later(after, Due::Crash(who));
            self.later(after + Duration::from_secs(10), Due::Return(who));
        }
        if !self.faults.parted.is_zero() {
            let after = Duration::from_millis(self.below(15_000));
            self.later(after, Due::Join(false));
            self.later(after + self.faults.parted, Due::Join(true));
        }
        if self.faults.clocks {
            self.later(Duration::from_secs(5), Due::ClockStep);
        }
    }

    /// From now on nothing goes wrong.
    pub fn mend(&mut self) {
        self.parted = false;
        self.faults = Faults::none();
    }

    pub fn run(&mut self, time: Duration) {
        let end = self.now() + time;
        while let Some(Reverse((at, _))) = self.queue.peek()
            && *at <= end
        {
            let ahead = at.saturating_duration_since(self.now());
            self.pass(ahead);
            let Some(Reverse((_, sequence))) = self.queue.pop() else { return };
            let due = self.due.remove(&sequence).unwrap();
            self.happen(due);
        }
        self.pass(end.saturating_duration_since(self.now()));
    }

    /// Time passes in whole milliseconds.
    fn pass(&self, time: Duration) {
        self.clock.advance(Duration::from_millis(time.as_nanos().div_ceil(1_000_000) as u64));
    }

    /// Sees to it that what a node is to do by itself happens.
    fn arrange(&mut self, who: usize) {
        let node = &self.nodes[who];
        let next = node.engine.next_tick().into_iter().chain(node.step).min();
        if let Some(at) = next.filter(|at| node.alarm.is_none_or(|alarm| *at < alarm)) {
            self.nodes[who].alarm = Some(at);
            self.later(at.saturating_duration_since(self.now()), Due::Alarm(who, at));
        }
    }

    /// An alarm that was moved forward rings no second time.
    fn ring(&mut self, who: usize, at: Instant) {
        let now = self.now();
        if self.nodes[who].alarm != Some(at) {
            return;
        }
        self.nodes[who].alarm = None;
        if !self.nodes[who].up {
            return;
        }
        if self.nodes[who].step.is_some_and(|at| at <= now) {
            self.step(who);
        }
        if self.nodes[who].engine.next_tick().is_some_and(|at| at <= now) {
            self.act(who, |node| node.engine.tick(now));
        }
        self.arrange(who);
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Frame(frame) => self.deliver(&frame),
            Due::Want(who) => self.want(who),
            Due::Refused(who, finding) => {
                self.refused(who, finding);
                self.arrange(who);
            }
            Due::Free(source, who) => self.free(source, who),
            Due::Alarm(who, at) => self.ring(who, at),
            Due::Crash(who) => {
                self.nodes[who].up = false;
                self.leave_source(who);
            }
            Due::Return(who) => self.come_back(who),
            Due::Join(together) => self.parted = !together,
            Due::ClockStep => self.clock.set_wall(Timestamp(86_400_000)),
            Due::Move => {
                self.move_on();
                self.later(TICK, Due::Move);
            }
        }
    }

    /// It has lost what it was receiving, and wants it still.
    fn come_back(&mut self, who: usize) {
        if self.nodes[who].up {
            return;
        }
        let counter = self.nodes[who].boot.counter + 1;
        self.nodes[who] = Node::new(who, counter, self.seed, &self.shared);
        let now = self.now();
        self.act(who, |node| node.engine.start(now));
        self.later(Duration::from_secs(1), Due::Want(who));
    }

    pub fn reaches(&self, from: usize, to: usize) -> bool {
        let is_apart = self.parted && from % self.faults.parts != to % self.faults.parts;
        from != to && self.nodes[to].up && self.nodes[from].up && !is_apart
    }

    fn deliver(&mut self, frame: &Frame) {
        if !self.reaches(frame.from, frame.to) {
            return;
        }
        let (now, from) = (self.now(), self.nodes[frame.from].address);
        let opened = Opened { boot: frame.boot, body: frame.body.to_vec(), key: 0 };
        let arrival = Arrival { from, link: Link(0), broadcast: frame.broadcast };
        let to = frame.to;
        self.act(to, |node| node.engine.handle(&opened, arrival, now));
    }

    pub fn act(&mut self, who: usize, what: impl FnOnce(&mut Node) -> Vec<Action>) {
        let now = self.now();
        self.nodes[who].show(now);
        let actions = what(&mut self.nodes[who]);
        for action in actions {
            match action {
                Action::Send { to, body } => self.send(who, &to, body.into()),
                Action::Offer(finding, offer) => self.offered(who, finding, *offer),
                Action::Claimed(finding, claimant) => {
                    let node = &mut self.nodes[who];
                    if node.finding == Some(finding) && node.looks() {
                        node.search.hear(claimant, now);
                        node.step = Some(now);
                    }
                }
                Action::Decided(finding) => {
                    let times = self.decided.entry(finding).or_default();
                    *times += 1;
                    assert_eq!(*times, 1, "a find is decided once");
                    self.was_decided(who, finding);
                }
                Action::Closed(_) | Action::Renew | Action::Event(_) => {}
            }
        }
        self.arrange(who);
    }

    fn send(&mut self, from: usize, to: &Destination, body: Arc<[u8]>) {
        assert!(body.len() <= larder::seal::MAX_BODY, "a frame is bounded");
        let kind = Message::decode(&body).unwrap().kind;
        self.questions += u64::from(!matches!(kind, Kind::Hello { .. } | Kind::Have { .. }));
        let is_answer = matches!(kind, Kind::Have { .. });
        self.trace.note(self.now().duration_since(self.began), from, &kind);
        let at = |address: &std::net::SocketAddr| {
            let std::net::IpAddr::V4(ip) = address.ip() else { return None };
            let [_, _, high, low] = ip.octets();
            usize::from(u16::from_be_bytes([high, low])).checked_sub(1)
        };
        let targets: Vec<(usize, bool)> = match to {
            Destination::One(address, _) => at(address).map(|to| (to, false)).into_iter().collect(),
            Destination::Everyone(also) => {
                let also = also.iter().filter_map(|(address, _)| at(address)).map(|to| (to, false));
                (0..self.nodes.len()).map(|to| (to, true)).chain(also).collect()
            }
            Destination::Beyond(_) => Vec::new(),
        };
        let (boot, count) = (self.nodes[from].boot, self.nodes.len());
        for (to, broadcast) in targets.into_iter().filter(|(to, _)| *to < count) {
            if !self.reaches(from, to) || self.below(1000) < self.faults.lost {
                continue;
            }
            self.answers += u64::from(is_answer);
            let copies = 1 + u64::from(self.below(1000) < self.faults.doubled);
            for _ in 0..copies {
                let after = Duration::from_micros(100 + self.below(self.faults.delay.as_micros() as u64));
                self.later(after, Due::Frame(Frame { from, boot, to, broadcast, body: Arc::clone(&body) }));
            }
        }
    }

    pub fn finding(&mut self) -> FindingId {
        self.findings += 1;
        FindingId(self.findings)
    }

    /// From when somebody wanted it until everybody had it.
    pub fn took(&self) -> Duration {
        let last = self.nodes.iter().filter_map(|node| node.done).max();
        last.map_or(Duration::ZERO, |last| last.duration_since(self.wanted))
    }

    /// How many copies of the thing the origin sent.
    pub fn copies(&self) -> f64 {
        self.from_origin as f64 / SIZE as f64
    }

    /// Frames sent and answers received for one find, of so many.
    pub fn cost_of_finds(&mut self, finds: u64, holders: usize) -> f64 {
        let (questions, answers) = (self.questions, self.answers);
        for n in 0..finds {
            let wanted = Wanted::Blob(larder::digest::Digest::of(&n.to_be_bytes()));
            for _ in 0..holders {
                let who = 1 + self.below(self.nodes.len() as u64 - 1) as usize;
                self.nodes[who].held.0.lock().unwrap().others.push(wanted);
            }
            let (now, finding) = (self.now(), self.finding());
            self.act(0, |node| node.engine.find(Asking::Everybody, &[(finding, wanted)], now));
            self.run(Duration::from_secs(1));
            assert!(self.decided.contains_key(&finding));
            let now = self.now();
            self.nodes[0].engine.forget(finding, now);
        }
        ((self.questions - questions) + (self.answers - answers)) as f64 / finds as f64
    }
}
