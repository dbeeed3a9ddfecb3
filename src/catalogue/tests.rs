//! The desk on an engine in memory, the follower on a feed, and a large fleet in a real database.

use std::collections::BTreeMap;
use std::time::Duration;

use super::desk::{Compared, Desk, STEP, holders, key};
use super::held::{Follower, Holdings};
use super::records::SCHEMA;
use super::*;
use crate::clock::{Clock as _, SystemClock, Timestamp};
use crate::digest::Digest;
use crate::orm::{Change, Condition, Engine, Feed, Memory, Postgres, Record as _, Repository};
use crate::seal::BootId;
use crate::tls::NodeId;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const DAY: Duration = Duration::from_secs(86_400);

fn node(number: u16) -> NodeId {
    let [high, low] = number.to_be_bytes();
    let mut bytes = [7; 16];
    (bytes[0], bytes[1]) = (high, low);
    NodeId::from_bytes(bytes)
}

fn me(number: u16) -> Me {
    let address = ([10, 0, 0, 1], 1000 + number).into();
    Me {
        node: node(number),
        boot: BootId { counter: 3, random: u64::MAX },
        site: "site".to_owned(),
        name: format!("node\0{number}"),
        version: "1".to_owned(),
        addresses: Box::new(move || vec![address]),
    }
}

fn blob(number: usize) -> Digest {
    Digest::of(&number.to_be_bytes())
}

fn told(engine: &dyn Engine) -> u64 {
    engine.count(HoldingRecord::table(), &Condition::everything()).unwrap()
}

fn found(engine: &dyn Engine, asker: u16, digest: &Digest, lot: u8, now: Timestamp) -> Vec<NodeId> {
    let known = holders(engine, (node(asker), "site"), digest, [lot; 16], now).unwrap();
    known.into_iter().map(|known| known.node).collect()
}

fn tell(desk: &Desk<'_>, numbers: impl IntoIterator<Item = (usize, Option<u64>)>) {
    let news: BTreeMap<_, _> = numbers.into_iter().map(|(number, size)| (blob(number), size)).collect();
    desk.tell(&news).unwrap();
}

#[test]
fn who_holds_it_and_is_there_is_named() {
    let engine = Memory::new();
    let (one, two, asker) = (me(1), me(2), me(3));
    let (one, two) =
        (Desk::register(&engine, &one, NOW).unwrap(), Desk::register(&engine, &two, NOW).unwrap());
    let asker = Desk::register(&engine, &asker, NOW).unwrap();
    tell(&one, [(1, Some(5)), (2, Some(5))]);
    tell(&two, [(1, Some(5))]);
    tell(&asker, [(1, Some(5))]);
    // it begins where the lot falls, and goes round
    assert_eq!(found(&engine, 3, &blob(1), 0, NOW), [node(1), node(2)]);
    assert_eq!(found(&engine, 3, &blob(1), 255, NOW), [node(1), node(2)]);
    let lot = *node(2).as_bytes();
    let known = holders(&engine, (node(3), "site"), &blob(1), lot, NOW).unwrap();
    assert_eq!(known[0].node, node(2));
    assert_eq!((known[0].boot, known[0].addresses.len()), (BootId { counter: 3, random: u64::MAX }, 1));
    assert_eq!(found(&engine, 3, &blob(2), 0, NOW), [node(1)]);
    assert!(holders(&engine, (node(3), "other"), &blob(1), lot, NOW).unwrap().is_empty());
    // what is gone, and who is silent or has left, is not
    tell(&one, [(2, None)]);
    assert!(found(&engine, 3, &blob(2), 0, NOW).is_empty());
    two.leave(NOW).unwrap();
    assert_eq!(found(&engine, 3, &blob(1), 0, NOW), [node(1)]);
    let later = NOW.plus(LIVE);
    assert!(found(&engine, 3, &blob(1), 0, later).is_empty());
    assert!(one.beat(later).unwrap());
    assert_eq!(found(&engine, 3, &blob(1), 0, later), [node(1)]);
}

#[test]
fn addresses_that_are_none_are_not_believed() {
    let engine = Memory::new();
    let liar = me(1);
    let desk = Desk::register(&engine, &liar, NOW).unwrap();
    tell(&desk, [(1, Some(5))]);
    let nodes = Repository::<NodeRecord, _>::new(&engine);
    let row = nodes.get(&key(node(1))).unwrap().unwrap();
    let bad = ["255.255.255.255:1", "224.0.0.1:9", "0.0.0.0:9", "[ff02::1]:9", "10.0.0.1:0", "host:1", ""];
    let addresses = bad.into_iter().chain(["10.0.0.1:5"]).map(str::to_owned).collect();
    nodes.upsert(&NodeRecord { addresses, ..row.clone() }).unwrap();
    let known = holders(&engine, (node(3), "site"), &blob(1), [0; 16], NOW).unwrap();
    assert_eq!(known[0].addresses, [([10, 0, 0, 1], 5).into()]);
    nodes.upsert(&NodeRecord { addresses: bad.map(str::to_owned).into(), ..row }).unwrap();
    assert!(found(&engine, 3, &blob(1), 0, NOW).is_empty());
}

#[test]
fn comparing_mends_what_is_wrong_and_nothing_else() {
    let engine = Memory::new();
    let me = me(1);
    let desk = Desk::register(&engine, &me, NOW).unwrap();
    let mut held: Vec<_> = (0..3 * STEP).map(blob).collect();
    held.sort_unstable();
    let secret = blob(7);
    let size = move |digest: &Digest| (*digest != secret).then_some(9);
    let compare = |held: &[Digest]| {
        let (mut mended, mut after) = (0, None);
        loop {
            let Compared { next, mended: more } = desk.compare(held, after, &size).unwrap();
            mended += more;
            after = next;
            if after.is_none() {
                return mended;
            }
        }
    };
    assert_eq!(compare(&held), 3 * STEP - 1);
    assert_eq!((told(&engine), compare(&held)), (3 * STEP as u64 - 1, 0));
    // some gone, some new, one lost there, one of another length, one told that must not be
    let gone = held.split_off(2 * STEP + 1).len();
    let more = (9000..9000 + STEP).map(blob);
    held.extend(more);
    held.sort_unstable();
    tell(&desk, [(0, None), (1, Some(1)), (7, Some(9))]);
    let wrong = usize::from(held.contains(&blob(0))) + usize::from(held.contains(&blob(1))) + 1;
    let mended = compare(&held);
    assert!((gone + STEP - 1..=gone + STEP + wrong).contains(&mended), "{mended}");
    let secret_held = u64::from(held.contains(&blob(7)));
    assert_eq!((told(&engine), compare(&held)), (held.len() as u64 - secret_held, 0));
    assert_eq!(compare(&[]), held.len() - usize::try_from(secret_held).unwrap());
    assert_eq!(told(&engine), 0);
}

#[test]
fn the_dead_are_swept_up_and_who_comes_back_tells_anew() {
    let engine = Memory::new();
    let (dead, back, sweeper) = (me(1), me(2), me(3));
    let dead = Desk::register(&engine, &dead, NOW).unwrap();
    tell(&dead, (0..7000).map(|number| (number, Some(1))));
    let then = Desk::register(&engine, &back, NOW).unwrap();
    tell(&then, [(1, Some(1))]);
    // soon back: what was told stays good
    let again = Desk::register(&engine, &back, NOW.plus(DAY / 3)).unwrap();
    assert_eq!(again.registration, then.registration);
    let late = NOW.plus(DAY * 2);
    let sweeper = Desk::register(&engine, &sweeper, late).unwrap();
    assert!(sweeper.sweep(late).unwrap());
    assert!(told(&engine) > 0, "in steps");
    // one that was away for long comes back while it is swept up: its new rows stay
    let again = Desk::register(&engine, &back, late).unwrap();
    assert_ne!(again.registration, then.registration);
    tell(&again, [(1, Some(1))]);
    while sweeper.sweep(late).unwrap() {}
    assert_eq!(told(&engine), 1);
    assert_eq!(found(&engine, 3, &blob(1), 0, late), [node(2)]);
    assert!(!dead.beat(late).unwrap(), "it has to register again");
}

#[test]
fn changes_are_followed_and_a_gap_is_noticed() {
    let feed = Feed::new();
    let holdings = Holdings {
        size: Box::new(|digest| (*digest != blob(2)).then_some(4)),
        all: Box::new(Vec::new),
        feed: feed.clone(),
    };
    let mut follower = Follower::new(&holdings);
    let change = |number| {
        let row = HoldingRecord {
            node: [0; 16],
            digest: blob(number),
            site: String::new(),
            size: 1,
            registration: 1,
        };
        let row = row.encode().into_iter().map(crate::orm::Cell::into_owned).collect::<Vec<_>>();
        Change { table: HoldingRecord::table(), key: row[..2].to_vec(), row: Some(row) }
    };
    feed.publish(vec![change(1), change(2), change(1)]);
    let news = follower.news(&holdings).unwrap();
    assert_eq!(news, BTreeMap::from([(blob(1), Some(4)), (blob(2), None)]));
    follower.told(news);
    feed.publish(vec![change(1)]);
    assert!(follower.news(&holdings).unwrap().is_empty(), "read again is no news");
    feed.publish((0..40_000).map(change).collect());
    assert!(follower.news(&holdings).is_none());
    assert!(follower.news(&holdings).unwrap().is_empty());
}

/// A large fleet in a real database: asking stays quick, and its indexes are used.
#[test]
fn a_thousand_nodes_are_no_burden() {
    use crate::orm::postgres_tests::{Server as TestServer, runtime, server_of};
    let Some(postgres) = TestServer::start([127, 0, 0, 1].into()) else { return };
    let runtime = runtime();
    let server = server_of(&postgres, "postgres");
    let engine = Postgres::open(&server, &SCHEMA, runtime.handle(), Duration::from_secs(60)).unwrap();
    let start = SystemClock.instant();
    // everybody has the first one, and thirty that hardly anybody else has
    let node = "decode(lpad(to_hex(n), 4, '0') || repeat('07', 14), 'hex')";
    let now = NOW.0;
    postgres.sql(&format!(
        "INSERT INTO larder_nodes SELECT {node}, 'site', 'n' || n, '1', 1, 1, '[\"10.0.0.1:9\"]', 1, {now}, 1 \
         FROM generate_series(0, 999) n;
         INSERT INTO larder_holdings SELECT {node}, sha256(int8send(0)), 'site', 1, 1 FROM generate_series(0, 999) n;
         INSERT INTO larder_holdings SELECT {node}, sha256(int8send(n * 30 + k)), 'site', 1, 1 \
         FROM generate_series(0, 999) n, generate_series(1, 30) k"
    ));
    println!("1000 nodes and 31 000 rows: {:?}", start.elapsed());
    postgres.sql("ANALYZE");
    let start = SystemClock.instant();
    for number in 0..200_u16 {
        let lot = u8::try_from(number).unwrap();
        assert_eq!(found(&engine, 1, &blob(0), lot, NOW).len(), 4);
        let rare = usize::from(number) * 30 + 65;
        assert_eq!(found(&engine, 1, &blob(rare), lot, NOW).len(), 1);
    }
    println!("one look-up of 400: {:?}", start.elapsed() / 400);
    assert!(start.elapsed() < Duration::from_secs(40));
    let digest = blob(25).to_string();
    let digest = digest.trim_start_matches("sha256:");
    let plan = postgres.sql(&format!(
        "EXPLAIN SELECT * FROM larder_holdings WHERE digest = '\\x{digest}' AND site = 'site' AND node >= '\\x00' \
         ORDER BY node ASC LIMIT 64"
    ));
    assert!(plan.contains("larder_holdings_digest"), "{plan}");
}
