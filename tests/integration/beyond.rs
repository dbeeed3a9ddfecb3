//! Beyond one broadcast domain: other networks, NAT, access points that isolate, names that lead to neighbours.

use std::net::UdpSocket;
use std::time::Instant;

use crate::support::lan::{Lan, SWITCH};
use crate::support::{Answer, Larder, MIB, Origin, Script, Site, tools};

/// Puts a file into one node and lets another ask for it.
fn share(origin: &Origin, path: &str, from: &Larder, to: &Larder) -> (Script, Answer) {
    let script =
        Script::new(3 * MIB).seed(path.bytes().map(u64::from).fold(7, |seed, byte| seed * 31 + byte));
    let url = origin.serve(path, script.clone());
    from.get(&url).assert_whole(&script);
    from.wait_for_blob(&script.digest());
    let start = Instant::now();
    let answer = to.ask(&url).field("Larder-Digest", &script.digest()).send();
    println!("{path}: {:?}, {}", start.elapsed(), answer.cache_status());
    answer.assert_whole(&script);
    (script, answer)
}

/// The same until a neighbour gives it: on a machine that does much else an answer may come too late now and then.
#[track_caller]
fn share_between(origin: &Origin, name: &str, from: &Larder, to: &Larder) -> Answer {
    for n in 0..6 {
        let path = format!("/{name}{n}.bin");
        let (script, answer) = share(origin, &path, from, to);
        if answer.is_from_peer() {
            assert_eq!(origin.bytes_sent(&path), script.size);
            return answer;
        }
    }
    panic!("six files, none from the neighbour");
}

#[test]
fn a_gateway_joins_two_networks() {
    let Some(lan) = Lan::enter("beyond::a_gateway_joins_two_networks", 3) else { return };
    lan.add_second_network();
    lan.join_second(2);
    let there = lan.move_to_second(3);
    let (site, origin) = (Site::new(), Origin::start_at((SWITCH, 0).into()));
    let a = lan.node(1, "a", &site).start();
    let c = lan.node_at(3, there, "c", &site).start();
    // without a gateway the two do not find each other
    let (_, answer) = share(&origin, "/0.bin", &c, &a);
    assert!(!answer.is_from_peer(), "{}", answer.cache_status());
    let gateway = lan.node(2, "gateway", &site).set("peers.gateway", true).start();
    a.meets(&gateway);
    c.meets(&gateway);
    assert!(!a.peers().contains(&"c".to_owned()));
    for (name, from, to) in [("x", &c, &a), ("y", &a, &c), ("z", &c, &a)] {
        let answer = share_between(&origin, name, from, to);
        let by = format!("detail=\"peer {}", from.ip());
        assert!(answer.cache_status().contains(&by), "{name}: {}", answer.cache_status());
    }
    assert_eq!(gateway.count("/traffic/bytes_to_peers"), 0, "bytes do not pass the gateway");
}

#[test]
fn a_node_behind_nat_is_reached_where_it_says() {
    let Some(lan) = Lan::enter("beyond::a_node_behind_nat_is_reached_where_it_says", 2) else { return };
    if !tools::installed("iptables") {
        return;
    }
    let (site, origin) = (Site::new(), Origin::start_at((SWITCH, 0).into()));
    lan.add_second_network();
    let inside = lan.move_to_second(1);
    lan.masquerade_second(site.port(), 1);
    let outside = lan.node(2, "outside", &site).start();
    let hidden = lan
        .node_at(1, inside, "hidden", &site)
        .list("peers.seeds", &[&outside.ip().to_string()])
        .set("peers.advertise", SWITCH.to_string())
        .start();
    let start = Instant::now();
    hidden.meets(&outside);
    println!("met through NAT after {:?}", start.elapsed());
    let shown = outside.status()["peers"][0]["address"].clone();
    assert_eq!(shown, format!("{SWITCH}:{}", site.port()));
    let answer = share_between(&origin, "x", &hidden, &outside);
    assert!(answer.cache_status().contains(&format!("peer {SWITCH}")), "{}", answer.cache_status());
    share_between(&origin, "y", &outside, &hidden);
    assert!(outside.bans().is_empty() && hidden.bans().is_empty());
}

#[test]
fn d07_isolated_machines_share_with_the_seed_they_name() {
    let test = "beyond::d07_isolated_machines_share_with_the_seed_they_name";
    let Some(lan) = Lan::enter(test, 3) else { return };
    lan.isolate(1);
    lan.isolate(2);
    let (site, origin) = (Site::new(), Origin::start_at((SWITCH, 0).into()));
    let seed = lan.node(3, "seed", &site).start();
    let start = Instant::now();
    let named = seed.ip().to_string();
    let [a, b] =
        [(1, "a"), (2, "b")].map(|(n, name)| lan.node(n, name, &site).list("peers.seeds", &[&named]).start());
    seed.meets(&a);
    seed.meets(&b);
    println!("two isolated machines met their seed after {:?}", start.elapsed());
    assert_eq!((a.peers(), b.peers()), (vec!["seed".to_owned()], vec!["seed".to_owned()]));
    for (name, from, to) in [("x", &a, &seed), ("y", &seed, &b), ("z", &seed, &a)] {
        share_between(&origin, name, from, to);
    }
}

/// Answers every question for service records with one, and nothing else.
fn name_server(port: u16) {
    let socket = UdpSocket::bind((SWITCH, 53)).unwrap();
    std::thread::spawn(move || {
        let mut question = [0; 512];
        loop {
            let (length, from) = socket.recv_from(&mut question).unwrap();
            let asked = &question[12..length];
            let end = asked.iter().position(|byte| *byte == 0).unwrap() + 5;
            let is_srv = asked[end - 4..end] == [0, 33, 0, 1];
            let mut answer = question[..2].to_vec();
            answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_srv), 0, 0, 0, 0]);
            answer.extend(&asked[..end]);
            if is_srv {
                // ten minutes; priority and weight 0; "seed.test"
                answer.extend([0xc0, 12, 0, 33, 0, 1, 0, 0, 2, 88, 0, 17, 0, 0, 0, 0]);
                answer.extend(port.to_be_bytes());
                answer.extend(b"\x04seed\x04test\0");
            }
            drop(socket.send_to(&answer, from));
        }
    });
}

#[test]
fn a_service_name_leads_to_the_seeds() {
    let Some(lan) = Lan::enter("beyond::a_service_name_leads_to_the_seeds", 2) else { return };
    lan.add_second_network();
    let there = lan.move_to_second(2);
    let site = Site::new();
    name_server(site.port());
    let files = tempfile::tempdir().unwrap();
    let (hosts, resolver) = (files.path().join("hosts"), files.path().join("resolv.conf"));
    std::fs::write(&hosts, format!("127.0.0.1 localhost\n{there} seed.test\n")).unwrap();
    std::fs::write(&resolver, format!("nameserver {SWITCH}\noptions timeout:1 attempts:1\n")).unwrap();
    lan.run(1, &format!("mount --bind {} /etc/hosts", hosts.display()));
    lan.run(1, &format!("mount --bind {} /etc/resolv.conf", resolver.display()));
    let seed = lan.node_at(2, there, "seed", &site).start();
    let start = Instant::now();
    let a = lan.node(1, "a", &site).list("peers.seeds", &["srv:_larder._tcp.example.test"]).start();
    a.meets(&seed);
    println!("met by a service name after {:?}", start.elapsed());
}
