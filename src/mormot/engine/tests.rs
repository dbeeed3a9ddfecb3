//! Questions, answers, silence and lies, without a network.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::clock::{Clock as _, SystemClock};
use crate::digest::Digest;
use crate::mormot::{Hardware, Secret};
use crate::tls::NodeId;

const SECONDS: u64 = 1_800_000_000;
const MOST: Duration = Duration::from_millis(250);

/// What a node holds: one thing of a thousand bytes, and one that is arriving.
#[derive(Debug, Default)]
struct Shelf {
    busy: AtomicBool,
}

fn named(text: &[u8]) -> Hash {
    Hash::of_stated(&Digest::of(text).into()).unwrap()
}

fn thing() -> Hash {
    named(b"whole")
}

fn arriving() -> Hash {
    named(b"arriving")
}

impl Holdings for Shelf {
    fn lookup(&self, hash: &Hash) -> Held {
        match hash {
            hash if *hash == thing() => Held::Whole(1000),
            hash if *hash == arriving() => Held::Part(2000),
            _ => Held::Nothing,
        }
    }

    fn connections(&self) -> u16 {
        7
    }

    fn is_busy(&self) -> bool {
        self.busy.load(Ordering::SeqCst)
    }
}

fn keys(secret: &str) -> Arc<Keys> {
    Arc::new(Keys::derive(&Secret::parse(secret.as_bytes()).unwrap()).unwrap())
}

fn address(last: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 8099)
}

fn engine(last: u8, now: Instant) -> Engine {
    with(last, Arc::default(), false, now)
}

fn with(last: u8, shelf: Arc<Shelf>, is_guest: bool, now: Instant) -> Engine {
    let seat = Seat {
        address: *address(last).ip(),
        mask: Ipv4Addr::new(255, 255, 255, 0),
        broadcast: Ipv4Addr::new(10, 0, 0, 255),
        port: 8099,
        index: 1,
        speed: 1000,
        hardware: Hardware::Ethernet,
    };
    let marker = Marker { node: NodeId::from_bytes([last; 16]), port: 8096 };
    let me = Me { marker, os: [8, 0, 1, 6], is_guest };
    Engine::new(keys("shared"), me, seat, shelf, MOST, [last; 20], now)
}

/// A message of somebody at 10.0.0.9 who is no Larder node.
pub(in crate::mormot) fn message(kind: Kind) -> Message {
    Message {
        kind,
        seq: 5,
        uuid: [9; 16],
        os: [2, 0, 0, 5],
        address: Ipv4Addr::new(10, 0, 0, 9),
        to: Ipv4Addr::new(10, 0, 0, 255),
        mask: Ipv4Addr::new(255, 255, 255, 0),
        broadcast: Ipv4Addr::new(10, 0, 0, 255),
        speed: 100,
        hardware: Hardware::Ethernet,
        timestamp: 1,
        connections: 0,
        hash: Hash::NONE,
        size: 0,
        start: 0,
        end: 0,
        opaque: 0,
        padding: (0, [3; 42]),
    }
}

fn frame(message: &Message) -> Frame {
    keys("shared").seal(message).unwrap()
}

fn open(frame: &Frame) -> Message {
    keys("shared").open(frame).unwrap()
}

/// What an engine says when it hears a message of 10.0.0.9.
fn hear(engine: &mut Engine, message: &Message, now: Instant) -> Vec<Action> {
    engine.handle(&frame(message), address(9), SECONDS, now)
}

#[track_caller]
fn only_broadcast(actions: &[Action]) -> Message {
    match actions {
        [Action::Everybody(frame)] => open(frame),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_question_is_answered_where_the_asker_hears() {
    let now = SystemClock.instant();
    let shelf = Arc::new(Shelf::default());
    let mut node = with(1, Arc::clone(&shelf), false, now);
    let ask = |hash, size| Message { hash, size, ..message(Kind::Request) };
    let table = [
        (ask(thing(), 0), Kind::ResponseFull, 1000),
        (ask(thing(), 1000), Kind::ResponseFull, 1000),
        (ask(thing(), 1001), Kind::ResponseNone, 0),
        (ask(arriving(), 0), Kind::ResponsePartial, 2000),
        (ask(arriving(), 1), Kind::ResponseNone, 0),
        (ask(named(b"other"), 0), Kind::ResponseNone, 0),
    ];
    for (question, kind, size) in table {
        let answer = only_broadcast(&hear(&mut node, &question, now));
        assert_eq!((answer.kind, answer.size, answer.seq), (kind, size, 5));
        assert_eq!((answer.hash, answer.to), (question.hash, *address(9).ip()));
        assert_eq!((answer.address, answer.connections, answer.speed), (*address(1).ip(), 7, 1000));
        assert_eq!(answer.timestamp, timestamp(SECONDS));
    }
    let windows = Message { os: [1, 22, 0, 0], ..ask(thing(), 0) };
    match &hear(&mut node, &windows, now)[..] {
        [Action::One(to, frame)] => assert_eq!((*to, open(frame).kind), (address(9), Kind::ResponseFull)),
        other => panic!("{other:?}"),
    }
    shelf.busy.store(true, Ordering::SeqCst);
    assert_eq!(only_broadcast(&hear(&mut node, &ask(thing(), 0), now)).kind, Kind::ResponseOverloaded);
    let pong = only_broadcast(&hear(&mut node, &message(Kind::Ping), now));
    assert_eq!((pong.kind, pong.seq, pong.to), (Kind::Pong, 5, *address(9).ip()));
    // a GUID stands in the order of Windows
    assert_eq!(guid(&std::array::from_fn(|at| u8::try_from(at).unwrap()))[..8], [3, 2, 1, 0, 5, 4, 7, 6]);
}

#[test]
fn who_only_asks_says_nothing_else() {
    let now = SystemClock.instant();
    let mut guest = with(1, Arc::default(), true, now);
    assert!(hear(&mut guest, &message(Kind::Ping), now).is_empty());
    assert!(hear(&mut guest, &Message { hash: thing(), ..message(Kind::Request) }, now).is_empty());
    assert_eq!(guest.next_tick(), None);
    assert_eq!(guest.find(thing(), None, SECONDS, now).1.len(), 1);
}

/// A find of node 1, and what it asked.
fn asking(node: &mut Engine, now: Instant) -> (u32, Message) {
    let (seq, actions) = node.find(thing(), Some(1000), SECONDS, now);
    let question = only_broadcast(&actions);
    assert_eq!((question.kind, question.seq, question.size), (Kind::Request, seq, 1000));
    assert_eq!((question.hash, question.to), (thing(), Ipv4Addr::new(10, 0, 0, 255)));
    (seq, question)
}

/// An answer of the peer with this last byte.
fn reply(seq: u32, last: u8, kind: Kind) -> Message {
    let (address, to) = (*address(last).ip(), *address(1).ip());
    Message { kind, seq, address, to, hash: thing(), size: 1000, ..message(kind) }
}

fn told(node: &mut Engine, reply: &Message, now: Instant) -> Vec<Action> {
    node.handle(&frame(reply), SocketAddrV4::new(reply.address, 50_000), SECONDS, now)
}

#[track_caller]
fn decided(actions: &[Action], seq: u32) -> Vec<u8> {
    match actions {
        [Action::Decided(of, offers)] if *of == seq => {
            offers.iter().map(|offer| offer.told.address.octets()[3]).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn where_nobody_is_known_the_first_full_answer_decides() {
    let now = SystemClock.instant();
    let mut node = engine(1, now);
    let (seq, _) = asking(&mut node, now);
    assert!(told(&mut node, &reply(seq, 5, Kind::ResponsePartial), now).is_empty());
    assert_eq!(decided(&told(&mut node, &reply(seq, 6, Kind::ResponseFull), now), seq), [6, 5]);
    assert!(told(&mut node, &reply(seq, 7, Kind::ResponseFull), now).is_empty(), "late");
    assert_eq!((node.counts().answers, node.counts().late, node.peers(now)), (2, 1, 3));
}

#[test]
fn all_known_peers_are_waited_for_and_no_longer_than_the_deadline() {
    let now = SystemClock.instant();
    let mut node = engine(1, now);
    for last in [5, 6, 7] {
        told(&mut node, &reply(1, last, Kind::Pong), now);
    }
    let (seq, _) = asking(&mut node, now);
    assert!(told(&mut node, &reply(seq, 5, Kind::ResponseNone), now).is_empty());
    assert!(told(&mut node, &reply(seq, 5, Kind::ResponseFull), now).is_empty(), "one answer a peer");
    assert!(told(&mut node, &reply(seq, 8, Kind::ResponseFull), now).is_empty(), "not awaited, but welcome");
    assert!(told(&mut node, &reply(seq, 6, Kind::ResponseFull), now).is_empty());
    let offers = decided(&told(&mut node, &reply(seq, 7, Kind::ResponseOverloaded), now), seq);
    assert_eq!(offers, [5, 8, 6]);
    let (seq, _) = asking(&mut node, now);
    assert!(node.tick(SECONDS, now).iter().all(|action| !matches!(action, Action::Decided(..))));
    let late = now + MOST;
    let done: Vec<_> =
        node.tick(SECONDS, late).into_iter().filter(|a| matches!(a, Action::Decided(..))).collect();
    assert!(decided(&done, seq).is_empty());
}

#[test]
fn silence_is_not_waited_for_for_ever() {
    let mut now = SystemClock.instant();
    let mut node = engine(1, now);
    let mut waits = Vec::new();
    for _ in 0..8 {
        asking(&mut node, now);
        let wait = node.finds.values().filter(|f| !f.decided).map(|f| f.deadline - now).max().unwrap();
        waits.push(wait.as_millis());
        now += MOST;
        node.tick(SECONDS, now);
    }
    assert_eq!(waits, [50, 50, 50, 2, 2, 2, 0, 0]);
    now += HOPE * 2;
    asking(&mut node, now);
    assert!(
        node.finds.values().any(|find| find.deadline > now + MOST / LONELY / 2),
        "another try, some time later"
    );
    // a peer that fell silent is left out after three finds
    told(&mut node, &reply(1, 5, Kind::Pong), now);
    for _ in 0..3 {
        assert_eq!(node.known.awaited(now).len(), 1);
        asking(&mut node, now);
        node.tick(SECONDS, now + MOST);
    }
    assert!(node.known.awaited(now).is_empty());
}

#[test]
fn answers_that_are_not_for_an_open_find_of_this_node_count_for_nothing() {
    let now = SystemClock.instant();
    let mut node = engine(1, now);
    let (seq, question) = asking(&mut node, now);
    let good = reply(seq, 5, Kind::ResponseFull);
    let wrong = [
        Message { seq: seq.wrapping_add(1), ..good },
        Message { seq: seq.wrapping_sub(1), ..good },
        Message { to: Ipv4Addr::new(10, 0, 0, 2), ..good },
        Message { hash: arriving(), ..good },
        Message { kind: Kind::Bearer, ..good },
    ];
    for lie in wrong {
        assert!(told(&mut node, &lie, now).is_empty(), "{lie:?}");
    }
    // a recording of a good answer from elsewhere, and this node's own frames
    assert!(node.handle(&frame(&good), address(66), SECONDS, now).is_empty());
    assert!(node.handle(&frame(&question), address(1), SECONDS, now).is_empty());
    assert_eq!(decided(&told(&mut node, &good, now), seq), [5]);
}

#[test]
fn garbage_is_counted_and_nothing_else() {
    let now = SystemClock.instant();
    let mut node = engine(1, now);
    let foreign = keys("another").seal(&message(Kind::Ping)).unwrap();
    let mut forged = frame(&message(Kind::Ping));
    forged[100] ^= 1;
    for datagram in [&b"x"[..], &[0; 1500], &foreign, &forged] {
        assert!(node.handle(datagram, address(9), SECONDS, now).is_empty());
    }
    let counts = *node.counts();
    assert_eq!((counts.received, counts.length, counts.checksum, counts.pings), (4, 2, 2, 0));
    assert_eq!(only_broadcast(&hear(&mut node, &message(Kind::Ping), now)).kind, Kind::Pong, "no grudge");
}

#[test]
fn a_flood_of_recorded_questions_is_answered_a_while_and_others_still_are() {
    let now = SystemClock.instant();
    let mut node = engine(1, now);
    let recorded = frame(&message(Kind::Ping));
    let answered = (0..5000).filter(|_| !node.handle(&recorded, address(9), SECONDS, now).is_empty()).count();
    assert_eq!((answered, node.counts().limited), (512, 4488));
    assert!(!node.handle(&recorded, address(10), SECONDS, now).is_empty());
}

#[test]
fn one_ping_serves_all() {
    let mut now = SystemClock.instant();
    let mut node = engine(1, now);
    assert_eq!(only_broadcast(&node.tick(SECONDS, now)).kind, Kind::Ping);
    let next = node.next_tick().unwrap();
    assert!(next > now + PING && next < now + PING * 2);
    now += PING / 2;
    hear(&mut node, &message(Kind::Ping), now);
    assert!(node.next_tick().unwrap() >= now + PING);
}

#[test]
fn larder_nodes_know_each_other_by_their_mark_and_no_recording_makes_one() {
    let now = SystemClock.instant();
    let (mut node, mut other) = (engine(1, now), engine(2, now));
    let question = only_broadcast(&other.find(thing(), None, SECONDS, now).1);
    let heard = node.handle(&frame(&question), address(2), SECONDS, now);
    let met = heard.iter().find_map(|action| match action {
        Action::Met(marker, at) => Some((*marker, *at)),
        Action::Everybody(_) | Action::One(..) | Action::Decided(..) => None,
    });
    let marker = Marker { node: NodeId::from_bytes([2; 16]), port: 8096 };
    assert_eq!(met, Some((marker, SocketAddrV4::new(*address(2).ip(), 8096))));
    let again = node.handle(&frame(&question), address(2), SECONDS, now);
    assert!(!again.iter().any(|action| matches!(action, Action::Met(..))), "once a minute");
    let later = now + Duration::from_secs(7200);
    let replayed = node.handle(&frame(&question), address(3), SECONDS + 7200, later);
    assert!(!replayed.iter().any(|action| matches!(action, Action::Met(..))));
    let (seq, _) = asking(&mut node, later);
    let padding = (0, marker.encode([0; 16]));
    let full = Message { padding, ..reply(seq, 2, Kind::ResponseFull) };
    let actions = told(&mut node, &full, later);
    match actions.last() {
        Some(Action::Decided(_, offers)) => assert_eq!(offers[0].larder, Some(marker)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn strangers_fill_no_memory() {
    let now = SystemClock.instant();
    let mut node = engine(1, now);
    for n in 0..10_000_u32 {
        let pong = Message { address: Ipv4Addr::from_bits(0x0b00_0000 + n), ..reply(1, 5, Kind::Pong) };
        told(&mut node, &pong, now);
        let marker = Marker { node: NodeId::from_bytes([4; 16]), port: 8096 };
        node.meet(marker, SocketAddrV4::new(Ipv4Addr::from_bits(n), 1), 0, now);
    }
    assert!(node.peers(now) <= 4096 && node.met.len() <= MEET.1);
    for _ in 0..FINDS + 10 {
        node.find(thing(), None, SECONDS, now);
    }
    assert!(node.finds.len() <= FINDS);
}
