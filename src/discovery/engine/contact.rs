//! Contact: runs and addresses that were nominated by a frame and have not proved themselves.
//!
//! Each gets a nonce by unicast; what it sends back under the same run proves run and address together. What it
//! asked or answered meanwhile waits here. So a recorded frame, sent from anywhere, earns one greeting.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::{Action, Arrival, Engine, Event, SMALL_SITE, Task};
use crate::discovery::Wanted;
use crate::discovery::message::{Beyond, Kind, Message, Nonce, QueryId};
use crate::discovery::table::{Confirmed, Path};
use crate::discovery::transport::Link;
use crate::seal::BootId;
use crate::tls::NodeId;

/// Within this time a newcomer is greeted.
const GREET_SOON: Duration = Duration::from_millis(50);
/// Those who need not greet at once do so within this time.
const GREET_LATER: Duration = Duration::from_secs(30);
/// How long a nonce is good.
const NONCE_LIFE: Duration = Duration::from_secs(5);
/// Within this time no second greeting goes out, unless it carries an echo.
const GREET_PAUSE: Duration = Duration::from_millis(500);
/// How many greetings one nonce is worth: the crossing of two greetings needs two, a loss one more.
const GREETINGS: u8 = 4;
/// How many contacts and how many waiting messages each.
const MOST: usize = 1024;
const PARKED: usize = 4;

/// Who it claims to be, under which run, from where.
pub(super) type ContactKey = (NodeId, BootId, SocketAddr);

/// A question: its name, and what is wanted by number.
type Asked = (QueryId, Vec<(u8, Wanted)>);

/// The nominated.
#[derive(Debug, Default)]
pub(super) struct Contacts(HashMap<ContactKey, Contact>);

#[derive(Debug)]
struct Contact {
    nonce: Nonce,
    /// Where it was heard; none: it was only named.
    link: Option<Link>,
    /// When the nonce was last sent.
    asked: Option<Instant>,
    greetings: u8,
    /// A greeting waits for its time.
    scheduled: bool,
    expires: Instant,
    moved: bool,
    /// A frame of it came by broadcast.
    broadcast: bool,
    parked: Vec<(Message, Arrival)>,
    /// What it asked through a gateway.
    asked_beyond: Vec<Asked>,
    /// What it will be asked.
    to_ask: Vec<Asked>,
    /// It says that a gateway let us meet.
    relayed: bool,
}

impl Contacts {
    pub(super) fn sweep(&mut self, now: Instant) {
        self.0.retain(|_, contact| contact.expires > now);
    }

    /// The live contact, made if there is room.
    fn entry(
        &mut self,
        key: ContactKey,
        link: Option<Link>,
        nonce: Nonce,
        now: Instant,
    ) -> Option<&mut Contact> {
        if self.0.get(&key).is_none_or(|contact| contact.expires <= now) {
            if self.0.len() >= MOST {
                self.sweep(now);
            }
            if self.0.len() >= MOST {
                return None;
            }
            let expires = now + GREET_LATER + NONCE_LIFE;
            self.0.insert(key, Contact::new(nonce, link, expires));
        }
        self.0.get_mut(&key)
    }

    fn proves(&self, key: &ContactKey, echo: Option<Nonce>, now: Instant) -> bool {
        let Some(contact) = self.0.get(key) else { return false };
        contact.asked.is_some() && echo == Some(contact.nonce) && contact.expires > now
    }
}

impl Contact {
    const fn new(nonce: Nonce, link: Option<Link>, expires: Instant) -> Self {
        Self {
            nonce,
            link,
            asked: None,
            greetings: 0,
            scheduled: false,
            expires,
            moved: false,
            broadcast: false,
            parked: Vec::new(),
            asked_beyond: Vec::new(),
            to_ask: Vec::new(),
            relayed: false,
        }
    }

    /// Whether it is met because of a question, and not because broadcasts reach it.
    const fn is_beyond(&self) -> bool {
        !self.asked_beyond.is_empty() || !self.to_ask.is_empty()
    }
}

impl Engine {
    /// A message from an address that its sender has not proved.
    pub(super) fn stranger(&mut self, message: Message, boot: BootId, arrival: Arrival, now: Instant) {
        let key = (message.sender.node, boot, arrival.from);
        if self.contacts.proves(&key, message.echo, now) {
            self.prove(key, message, arrival, now);
            return;
        }
        let Some(delay) = self.worth_greeting(&message, boot, now) else { return };
        let echo = message.ask;
        let nonce = Nonce(self.random.id());
        let Some(contact) = self.contacts.entry(key, Some(arrival.link), nonce, now) else {
            self.counts.limited += 1;
            return;
        };
        contact.link = Some(arrival.link);
        contact.broadcast |= arrival.broadcast;
        match message.kind {
            Kind::Hello { moved, relayed, .. } => {
                contact.moved |= moved;
                contact.relayed |= relayed;
            }
            Kind::Find { .. } | Kind::Claim { .. } | Kind::Have { .. } => {
                if contact.parked.len() < PARKED {
                    contact.parked.push((message, arrival));
                }
            }
            Kind::Bye | Kind::Enough { .. } | Kind::Doubt { .. } | Kind::Relay { .. } | Kind::Unknown(_) => {}
        }
        if delay.is_zero() {
            self.greet(&key, echo, now);
        } else if !contact.scheduled && contact.asked.is_none() {
            contact.scheduled = true;
            self.schedule.at(now + delay, Task::Greet(key));
        }
    }

    /// Meets somebody on another network who asked for what is here.
    pub(super) fn meet(&mut self, asker: Beyond, asked: Asked, link: Link, now: Instant) {
        let key = (asker.node, asker.boot, asker.address);
        let nonce = Nonce(self.random.id());
        let Some(contact) = self.contacts.entry(key, Some(link), nonce, now) else {
            self.counts.limited += 1;
            return;
        };
        let is_new = contact.asked_beyond.iter().all(|(query, _)| *query != asked.0);
        if is_new && contact.asked_beyond.len() < PARKED {
            contact.asked_beyond.push(asked);
        }
        self.greet(&key, None, now);
    }

    /// Meets somebody on another network who is said to hold what is wanted, to ask it; false if there is no room.
    pub(super) fn seek(&mut self, holder: Beyond, to_ask: Asked, now: Instant) -> bool {
        let key = (holder.node, holder.boot, holder.address);
        let nonce = Nonce(self.random.id());
        let Some(contact) = self.contacts.entry(key, None, nonce, now).filter(|c| c.to_ask.len() < PARKED)
        else {
            self.counts.limited += 1;
            return false;
        };
        contact.to_ask.push(to_ask);
        self.greet(&key, None, now);
        true
    }

    /// Sends the nonce, and what the other side asked for.
    pub(super) fn greet(&mut self, key: &ContactKey, echo: Option<Nonce>, now: Instant) {
        let Some(contact) = self.contacts.0.get_mut(key) else { return };
        let just_asked = contact.asked.is_some_and(|asked| now.duration_since(asked) < GREET_PAUSE);
        if contact.greetings >= GREETINGS || (just_asked && echo.is_none()) {
            return;
        }
        if !self.greetings.admits(key.2.ip(), now) {
            self.counts.limited += 1;
            return;
        }
        contact.greetings += 1;
        contact.asked = Some(now);
        contact.expires = now + NONCE_LIFE;
        let (link, nonce, relayed) = (contact.link, contact.nonce, contact.is_beyond());
        let first = self.hellos < 2;
        self.send(key.2, link, Some(nonce), echo, Kind::greeting(first, relayed));
    }

    /// How soon a stranger's frame deserves a greeting; none: not at all.
    fn worth_greeting(&mut self, message: &Message, boot: BootId, now: Instant) -> Option<Duration> {
        let node = message.sender.node;
        let known_run = self.table.get(&node).is_some_and(|known| known.boot == boot);
        if message.ask.is_some() || known_run || node == self.me.node {
            return Some(Duration::ZERO);
        }
        match &message.kind {
            Kind::Hello { .. } => Some(self.greet_delay(now)),
            Kind::Find { wants, .. } | Kind::Claim { wants, .. } => {
                let few = self.table.live(now) <= SMALL_SITE;
                let holds = || wants.iter().any(|(_, wanted)| self.holdings.lookup(wanted, None).is_some());
                (few || holds()).then_some(Duration::ZERO)
            }
            Kind::Have { query, .. } => self.queries.is_open(query).then_some(Duration::ZERO),
            // a gateway is met like anybody else, when it says hello
            Kind::Bye | Kind::Enough { .. } | Kind::Doubt { .. } | Kind::Relay { .. } | Kind::Unknown(_) => {
                None
            }
        }
    }

    /// About eight nodes greet a newcomer at once, the others little by little.
    fn greet_delay(&mut self, now: Instant) -> Duration {
        let live = u64::try_from(self.table.live(now)).unwrap_or(u64::MAX);
        let small = u64::try_from(SMALL_SITE).unwrap_or(8);
        let drawn = live <= small || self.random.below(live) < small;
        let soon = Duration::from_micros(1) + self.random.within(GREET_SOON);
        if drawn { soon } else { soon + self.random.within(GREET_LATER - GREET_SOON) }
    }

    /// The nonce came back: run and address are believed.
    fn prove(&mut self, key: ContactKey, message: Message, arrival: Arrival, now: Instant) {
        let (node, boot, from) = key;
        let Some(contact) = self.contacts.0.remove(&key) else { return };
        if node == self.me.node {
            self.cloned(boot, &message, arrival);
            return;
        }
        let moved = contact.moved || matches!(message.kind, Kind::Hello { moved: true, .. });
        let path = Path::new(from, arrival.link, now);
        let name = message.sender.name.clone();
        match self.table.confirm(message.sender.clone(), boot, path, moved) {
            Confirmed::Conflict => {
                self.out.push(Action::Event(Event::Clone(node)));
                return;
            }
            Confirmed::Full => return,
            Confirmed::Joined => self.out.push(Action::Event(Event::Joined(node, name))),
            Confirmed::Restarted => self.out.push(Action::Event(Event::Restarted(node, name))),
            Confirmed::NewPath => {}
        }
        self.marks.fresh_start(&node);
        self.wait.hope();
        if let Some(known) = self.table.get_mut(&node) {
            known.window.admit(message.seq);
            for (parked, _) in &contact.parked {
                known.window.admit(parked.seq);
            }
        }
        let broadcast = arrival.broadcast || contact.broadcast;
        self.accept(message, Arrival { broadcast, ..arrival }, now);
        self.table.note_relayed(&node, contact.relayed || contact.is_beyond());
        for (parked, arrival) in contact.parked {
            self.accept(parked, arrival, now);
        }
        for (query, wants) in contact.to_ask {
            self.send(from, arrival.link, None, None, Kind::Find { query, wants });
        }
        for (query, wants) in contact.asked_beyond {
            self.asked((node, query), wants, Arrival { broadcast: true, ..arrival }, now);
        }
    }

    /// Another live node has our id: the one with the higher random part takes a new one.
    fn cloned(&mut self, other: BootId, message: &Message, arrival: Arrival) {
        if let Some(nonce) = message.ask {
            let kind = Kind::greeting(false, false);
            self.send(arrival.from, arrival.link, None, Some(nonce), kind);
        }
        if self.boot.random <= other.random {
            self.out.push(Action::Event(Event::CloneOfUs));
        } else if !self.renewing {
            self.renewing = true;
            self.out.push(Action::Renew);
        }
    }
}
