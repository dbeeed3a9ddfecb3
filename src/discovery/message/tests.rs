//! Tests of `discovery::message`.

use super::*;
use crate::digest::StatedKey;
use crate::discovery::Partial;
use crate::discovery::holding::TOLD;
use crate::policy::{ResourceKey, UrlKey};
use crate::seal::MAX_BODY;
use proptest::prelude::*;

prop_compose! {
    fn senders()(pin: [u8; 32], second: Option<[u8; 32]>, tcp_port: u16, https: bool, http: bool, load: u8,
                 name in "\\PC{0,16}", version in "[0-9.]{0,12}", ip in any::<Option<std::net::IpAddr>>(), port: u16)
                 -> Sender {
        let pins: Vec<Pin> = std::iter::once(pin).chain(second).map(Pin).collect();
        let advertise = ip.map(|ip| SocketAddr::new(ip, port));
        Sender { node: NodeId::of(&pins[0]), pins, tcp_port, https, http, name, version, advertise, load }
    }
}

prop_compose! {
    fn partials()(root: [u8; 16], depth: u8, received: u64, readers in prop::collection::vec(any::<[u8; 16]>(), 0..=4))
                  -> Partial {
        let readers = readers.into_iter().map(NodeId::from_bytes).collect();
        Partial { root: NodeId::from_bytes(root), depth, received, readers }
    }
}

prop_compose! {
    fn answers()(want: u8, digest: Option<[u8; 32]>, size: Option<u64>, resource: Option<[u8; 32]>,
                 etag in prop::option::of("[!-~]{0,200}"), last_modified in prop::option::of("[ -~]{0,40}"),
                 flags in any::<[bool; 4]>(), grant: [u8; 16], partial in prop::option::of(partials())) -> Answer {
        let [first_hand, complete, busy, guarded] = flags;
        let digest = digest.map(Digest::from_bytes);
        let resource = resource.map(ResourceKey::from_bytes);
        let holding = Holding { digest, size, etag, last_modified, first_hand, resource, complete, busy, guarded, partial };
        Answer { want, holding, grant: GrantId(grant) }
    }
}

fn wants() -> impl Strategy<Value = (u8, Wanted)> {
    let kinds = prop_oneof![
        any::<[u8; 32]>().prop_map(|key| Wanted::Blob(Digest::from_bytes(key))),
        any::<[u8; 32]>().prop_map(|key| Wanted::Url(UrlKey::from_bytes(key))),
        any::<[u8; 32]>().prop_map(|key| Wanted::Stated(StatedKey::from_bytes(key))),
    ];
    (any::<u8>(), kinds)
}

fn beyond() -> impl Strategy<Value = Beyond> {
    (any::<[u8; 16]>(), any::<[u64; 2]>(), any::<SocketAddr>()).prop_map(
        |(node, [counter, random], address)| {
            let address = SocketAddr::new(address.ip(), address.port());
            Beyond { node: NodeId::from_bytes(node), boot: BootId { counter, random }, address }
        },
    )
}

fn kinds() -> impl Strategy<Value = Kind> {
    let query = any::<[u8; 16]>().prop_map(QueryId);
    prop_oneof![
        (any::<[bool; 3]>(), prop::option::of(prop::collection::vec(any::<u8>(), 0..=TOLD)))
            .prop_map(|([first, moved, relayed], told)| Kind::Hello { first, moved, relayed, told }),
        Just(Kind::Bye),
        (query.clone(), prop::collection::vec(wants(), 0..=MAX_WANTS))
            .prop_map(|(query, wants)| Kind::Find { query, wants }),
        (query.clone(), beyond(), prop::collection::vec(wants(), 0..=MAX_WANTS))
            .prop_map(|(query, asker, wants)| Kind::Relay { query, asker, wants }),
        (query.clone(), any::<Option<u8>>(), prop::collection::vec(wants(), 0..=MAX_WANTS))
            .prop_map(|(query, depth, wants)| Kind::Claim { query, depth, wants }),
        (query.clone(), prop::collection::vec(answers(), 0..=2), any::<bool>())
            .prop_map(|(query, answers, done)| Kind::Have { query, answers, done }),
        query.prop_map(|query| Kind::Enough { query }),
        any::<[u8; 32]>().prop_map(|bytes| Kind::Doubt { digest: Digest::from_bytes(bytes) }),
        (9..=255_u8).prop_map(Kind::Unknown),
    ]
}

prop_compose! {
    fn messages()(sender in senders(), seq: u64, ask: Option<[u8; 16]>, echo: Option<[u8; 16]>, kind in kinds())
                  -> Message {
        Message { sender, seq, ask: ask.map(Nonce), echo: echo.map(Nonce), kind }
    }
}

fn hello() -> Message {
    let pin = Pin([5; 32]);
    let (name, version) = ("box1".to_owned(), "0.1.0".to_owned());
    let sender = Sender {
        node: NodeId::of(&pin),
        pins: vec![pin],
        tcp_port: 8096,
        https: true,
        http: false,
        name,
        version,
        advertise: None,
        load: 0,
    };
    Message { sender, seq: 1, ask: None, echo: None, kind: Kind::greeting(true, false) }
}

#[test]
fn an_id_that_no_pin_gives_is_malformed() {
    let mut message = hello();
    message.sender.pins = vec![Pin([6; 32])];
    assert_eq!(Message::decode(&message.encode()), Err(Malformed));
    message.sender.pins.push(Pin([5; 32]));
    assert!(Message::decode(&message.encode()).is_ok());
}

#[test]
fn control_characters_and_overlong_names_do_not_arrive() {
    let mut message = hello();
    message.sender.name = "a\u{1b}[31mred".into();
    assert_eq!(Message::decode(&message.encode()), Err(Malformed));
    message.sender.name = "ä".repeat(100);
    assert_eq!(Message::decode(&message.encode()).unwrap().sender.name, "ä".repeat(32));
}

#[test]
fn a_validator_is_sent_whole_or_not_at_all() {
    let holding = Holding { etag: Some("x".repeat(201)), ..Holding::default() };
    let answer = Answer { want: 0, holding, grant: GrantId([0; 16]) };
    let query = QueryId([0; 16]);
    let message = Message { kind: Kind::Have { query, answers: vec![answer], done: true }, ..hello() };
    let Kind::Have { answers, .. } = Message::decode(&message.encode()).unwrap().kind else { panic!() };
    assert_eq!(answers[0].holding.etag, None);
}

/// `tests/fixtures/frames/find-v1.json` holds questions as released versions send them; lines are only added.
#[test]
fn questions_of_every_version_are_read() {
    let text = include_str!("../../../tests/fixtures/frames/find-v1.json");
    let vectors: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
    for vector in &vectors {
        let bytes = crate::digest::unhex(vector["body"].as_str().unwrap()).unwrap();
        let message = Message::decode(&bytes).unwrap();
        let Kind::Find { query, wants } = &message.kind else { panic!("{vector}") };
        assert_eq!(crate::digest::hex(&query.0), vector["query"].as_str().unwrap());
        let told: Vec<String> = wants.iter().map(|(number, wanted)| format!("{number} {wanted:?}")).collect();
        let want: Vec<&str> =
            vector["wants"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
        assert_eq!(told, want, "{vector}");
    }
    assert_eq!(vectors.len(), 3);
}

/// `tests/fixtures/frames/relay-v1.json` holds questions as gateways of released versions pass them on.
#[test]
fn relayed_questions_of_every_version_are_read() {
    let text = include_str!("../../../tests/fixtures/frames/relay-v1.json");
    let vectors: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
    for vector in &vectors {
        let bytes = crate::digest::unhex(vector["body"].as_str().unwrap()).unwrap();
        let Kind::Relay { asker, wants, .. } = Message::decode(&bytes).unwrap().kind else {
            panic!("{vector}")
        };
        assert_eq!(asker.address.to_string(), vector["address"].as_str().unwrap());
        assert_eq!((asker.boot.counter, asker.boot.random), (1, 2));
        assert_eq!(wants.len(), 1);
    }
    assert_eq!(vectors.len(), 2);
}

/// What a version that does not know a kind of want makes of it, in any place.
#[test]
fn a_want_of_a_later_kind_is_passed_over_and_the_others_keep_their_numbers() {
    let (blob, url) = (Wanted::Blob(Digest::of(b"a")), Wanted::Url(UrlKey::from_bytes([2; 32])));
    let later = Wanted::Stated(StatedKey::from_bytes([3; 32]));
    let kind = Kind::Find { query: QueryId([7; 16]), wants: vec![(0, blob), (1, later), (2, url)] };
    let mut bytes = Message { kind, ..hello() }.encode();
    let place = bytes.windows(3).position(|window| window == [1, 3, 3]).unwrap();
    bytes[place + 1] = 200;
    let Kind::Find { wants, .. } = Message::decode(&bytes).unwrap().kind else { panic!() };
    assert_eq!(wants, [(0, blob), (2, url)]);
}

#[test]
fn the_largest_question_and_the_largest_answer_fit_into_a_frame() {
    let mut message = hello();
    message.sender.pins.push(Pin([6; 32]));
    message.sender.name = "n".repeat(64);
    message.sender.version = "v".repeat(32);
    message.sender.advertise = Some("[2001:db8::1]:8096".parse().unwrap());
    message.seq = u64::MAX;
    message.ask = Some(Nonce([1; 16]));
    message.echo = message.ask;
    let query = QueryId([7; 16]);
    let wants = (0..16).map(|n| (n, Wanted::Blob(Digest::of(&[n])))).collect();
    message.kind = Kind::Find { query, wants };
    assert!(message.encode().len() <= MAX_BODY);
    let Kind::Find { wants, .. } = message.kind.clone() else { panic!() };
    let address = "[2001:db8::1]:8096".parse().unwrap();
    let boot = BootId { counter: u64::MAX, random: u64::MAX };
    let asker = Beyond { node: message.sender.node, boot, address };
    message.kind = Kind::Relay { query, asker, wants };
    assert!(message.encode().len() <= MAX_BODY);
    let holding = Holding {
        digest: Some(Digest::of(b"x")),
        size: Some(u64::MAX),
        etag: Some("e".repeat(200)),
        last_modified: Some("l".repeat(200)),
        resource: Some(ResourceKey::from_bytes([1; 32])),
        partial: Some(Partial {
            root: NodeId::from_bytes([1; 16]),
            depth: 255,
            received: u64::MAX,
            readers: vec![NodeId::from_bytes([2; 16]); 4],
        }),
        ..Holding::default()
    };
    let answer = Answer { want: 15, holding, grant: GrantId([1; 16]) };
    message.kind = Kind::Have { query, answers: vec![answer], done: true };
    assert!(message.encode().len() <= MAX_BODY);
    message.sender.pins.extend([Pin([7; 32]), Pin([8; 32])]);
    message.kind = Kind::Hello { first: true, moved: true, relayed: true, told: Some(vec![1; TOLD]) };
    let mut greeting = message.encode();
    let full = Stamp { clock: Some(crate::clock::Timestamp(u64::MAX)), orders: Some([255; 16]) };
    stamp(&mut greeting, &full);
    assert!(greeting.len() <= MAX_BODY, "{}", greeting.len());
}

/// `tests/fixtures/frames/told-v1.json`: what a node tells of its holdings, as the first release wrote it.
#[test]
fn what_a_node_tells_of_its_holdings_is_read_and_written_as_ever() {
    let text = include_str!("../../../tests/fixtures/frames/told-v1.json");
    let vector: serde_json::Value = serde_json::from_str(text).unwrap();
    let told = crate::digest::unhex(vector["told"].as_str().unwrap()).unwrap();
    let kind = Kind::Hello { first: true, moved: false, relayed: false, told: Some(told) };
    let message = Message { kind, ..hello() };
    assert_eq!(crate::digest::hex(&message.encode()), vector["body"].as_str().unwrap());
    assert_eq!(Message::decode(&message.encode()), Ok(message));
    // more than a frame holds is not sent, and a `Hello` without it is one of before
    let kind = Kind::Hello { first: true, moved: false, relayed: false, told: Some(vec![1; TOLD + 1]) };
    assert_eq!(Message { kind, ..hello() }.encode(), hello().encode());
}

proptest! {
    #[test]
    fn messages_round_trip(message in messages()) {
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn fields_of_a_later_version_are_skipped(message in messages(), tag in codec::LAST_FIELD + 1..=u8::MAX, value in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = vec![tag];
        if value.len() < 128 {
            bytes.push(u8::try_from(value.len()).unwrap());
        } else {
            bytes.extend((u16::try_from(value.len()).unwrap() | 0x8000).to_be_bytes());
        }
        bytes.extend(value);
        bytes.extend(message.encode());
        prop_assert_eq!(Message::decode(&bytes), Ok(message));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..1200)) {
        let _unused = Message::decode(&bytes);
    }

    #[test]
    fn damaged_messages_do_not_panic(message in messages(), place: prop::sample::Index, to: u8, cut: prop::sample::Index) {
        let mut bytes = message.encode();
        let place = place.index(bytes.len());
        bytes[place] = to;
        bytes.truncate(cut.index(bytes.len() + 1));
        let _unused = Message::decode(&bytes);
    }
}

/// `tests/fixtures/frames/claim-v1.json`: bodies of the messages of a crowd as the first release wrote them.
#[test]
fn the_messages_of_a_crowd_are_read_and_written_as_ever() {
    let text = include_str!("../../../tests/fixtures/frames/claim-v1.json");
    let bodies: std::collections::BTreeMap<String, String> = serde_json::from_str(text).unwrap();
    let query = QueryId([7; 16]);
    let wants = vec![(0, Wanted::Url(UrlKey::from_bytes([8; 32]))), (1, Wanted::Blob(Digest::of(b"thing")))];
    let claim = Kind::Claim { query, depth: None, wants };
    let partial = Partial {
        root: NodeId::from_bytes([1; 16]),
        depth: 2,
        received: 1_048_577,
        readers: vec![NodeId::from_bytes([2; 16]), NodeId::from_bytes([3; 16])],
    };
    let holding = Holding {
        size: Some(300_000_000),
        etag: Some("\"v1\"".into()),
        resource: Some(ResourceKey::from_bytes([9; 32])),
        busy: true,
        partial: Some(partial),
        ..Holding::default()
    };
    let answers = vec![Answer { want: 0, holding, grant: GrantId([4; 16]) }];
    let have = Kind::Have { query, answers, done: true };
    for (name, kind) in [("claim", claim), ("partial have", have)] {
        let message = Message { kind, ..hello() };
        assert_eq!(crate::digest::hex(&message.encode()), bodies[name], "{name}");
        let body = crate::digest::unhex(&bodies[name]).unwrap();
        assert_eq!(Message::decode(&body), Ok(message));
    }
}

/// `tests/fixtures/frames/stamp-v1.json`: a `Hello` with its stamp, as the first release wrote it.
#[test]
fn a_hello_is_stamped_and_nothing_else_is() {
    let text = include_str!("../../../tests/fixtures/frames/stamp-v1.json");
    let vector: serde_json::Value = serde_json::from_str(text).unwrap();
    let clock = crate::clock::Timestamp(vector["clock"].as_u64().unwrap());
    let orders = crate::digest::unhex(vector["orders"].as_str().unwrap()).unwrap();
    let full = Stamp { clock: Some(clock), orders: Some(orders.try_into().unwrap()) };
    let (mut greeting, node) = (hello().encode(), hello().sender.node);
    assert_eq!(stamped(&greeting), Some((node, Stamp::default())));
    stamp(&mut greeting, &full);
    assert_eq!(crate::digest::hex(&greeting), vector["body"].as_str().unwrap());
    assert_eq!(stamped(&greeting), Some((node, full)));
    assert_eq!(Message::decode(&greeting), Ok(hello()), "a version that does not know it passes over it");
    let mut bye = Message { kind: Kind::Bye, ..hello() }.encode();
    let before = bye.clone();
    stamp(&mut bye, &full);
    assert_eq!((bye, stamped(&before)), (before.clone(), None));
    for length in 0..greeting.len() {
        let _whatever = stamped(&greeting[..length]);
    }
}
