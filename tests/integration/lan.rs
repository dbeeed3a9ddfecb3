//! A LAN of namespaces on a bridge: real broadcast, real addresses, no loopback tricks.
//!
//! The test process is the switch (10.99.0.254): its clients and origin are other machines to the nodes.

mod weather;

use std::net::SocketAddr;

use crate::support::lan::{Lan, SWITCH};
use crate::support::{Ask, Connection, Larder, MIB, Origin, Script, Site, wait_until};

fn origin() -> Origin {
    Origin::start_at((SWITCH, 0).into())
}

/// Whether an answer came from the neighbour at this address.
#[track_caller]
fn assert_from(answer: &crate::support::Answer, node: &Larder) {
    let ip = node.ip();
    let number = ip.to_string().rsplit('.').next().unwrap().parse::<u8>().unwrap();
    let link_local = format!("detail=\"peer fe80::ff:fe00:{number:x}\"");
    let (said, from) = (answer.cache_status(), format!("detail=\"peer {ip}\""));
    // whichever of its answers came first
    assert!(said.contains(&from) || said.contains(&link_local), "{said} instead of {from}");
}

#[test]
fn three_namespaces_share_one_download() {
    let Some(lan) = Lan::enter("lan::three_namespaces_share_one_download", 3) else { return };
    let (site, origin) = (Site::new(), origin());
    let names = ["one", "two", "three"];
    let mut nodes: Vec<_> = (1..=3).map(|n| lan.node(n, names[usize::from(n) - 1], &site).start()).collect();
    nodes[0].meets(&nodes[1]);
    nodes[1].meets(&nodes[2]);
    nodes[0].meets(&nodes[2]);
    let script = Script::new(3 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let ask = |node: &Larder| node.ask(&url).field("Larder-Digest", &script.digest());
    ask(&nodes[0]).send().assert_whole(&script);
    nodes[0].wait_for_blob(&script.digest());
    assert_from(ask(&nodes[1]).send().assert_whole(&script), &nodes[0]);
    nodes[1].wait_for_blob(&script.digest());
    // The first machine loses its power: the third finds the second.
    nodes[0].kill();
    lan.unplug(1);
    assert_from(ask(&nodes[2]).send().assert_whole(&script), &nodes[1]);
    assert_eq!(origin.bytes_sent("/f.bin"), 3 * MIB);
}

#[test]
fn d01_neighbours_are_sought_on_the_lan_alone() {
    let Some(lan) = Lan::enter("lan::d01_neighbours_are_sought_on_the_lan_alone", 2) else { return };
    for command in [
        "sysctl -qw net.ipv6.conf.default.disable_ipv6=1",
        "ip link add docker0 type bridge",
        "ip link add veth1a type veth peer name veth1b",
        "ip link set veth1b master docker0",
        "ip link set veth1a up",
        "ip link set veth1b up",
        "ip addr add 172.17.0.1/16 broadcast 172.17.255.255 dev docker0",
        "ip link set docker0 up",
        "ip link add down0 type veth peer name down1",
        "ip addr add 192.168.56.1/24 dev down0",
    ] {
        lan.run(1, command);
    }
    for card in ["docker0", "e0"] {
        lan.run(1, &format!("iptables -A OUTPUT -o {card} -p udp"));
    }
    // the kernel itself speaks IGMP on every interface: only datagrams count
    let sent = |card: &str| {
        let counters = lan.run(1, "iptables -nvxL OUTPUT");
        let line = counters.lines().find(|line| line.contains(card)).unwrap().trim().to_owned();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let (site, origin) = (Site::new(), origin());
    let (a, b) = (lan.node(1, "a", &site).start(), lan.node(2, "b", &site).start());
    a.meets(&b);
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    b.get(&url).assert_whole(&script);
    b.wait_for_blob(&script.digest());
    let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
    assert_from(answer.assert_whole(&script), &b);
    assert_eq!(sent("docker0"), 0, "frames went to the containers' bridge");
    assert_ne!(sent("e0"), 0);
    let doctor = a.cli(&["doctor"]).said();
    for name in ["e0", "docker0", "down0"] {
        assert!(doctor.contains(name), "doctor lists every candidate:\n{doctor}");
    }
}

#[test]
fn d07_a_lan_that_blocks_broadcast_costs_nothing_and_seeds_still_work() {
    let test = "lan::d07_a_lan_that_blocks_broadcast_costs_nothing_and_seeds_still_work";
    let Some(lan) = Lan::enter(test, 3) else { return };
    lan.isolate(1);
    lan.isolate(2);
    let (site, origin) = (Site::new(), origin());
    let (a, b) = (lan.node(1, "a", &site).start(), lan.node(2, "b", &site).start());
    let start = std::time::Instant::now();
    for n in 0..100 {
        let script = Script::new(10_000).seed(n + 1);
        b.get(&origin.serve(&format!("/{n}.bin"), script.clone())).assert_whole(&script);
    }
    println!("100 files where no neighbour can be reached: {:?}", start.elapsed());
    assert!(start.elapsed().as_secs() < 25);
    assert!(a.peers().is_empty() && b.peers().is_empty());
    assert!(b.bans().is_empty());
    // The third machine is not isolated: whoever names it by unicast meets it.
    let c = lan.node(3, "c", &site).start();
    let seed = c.peer().to_string();
    let d = lan.node(1, "d", &site).list("peers.seeds", &[&seed]);
    drop(a);
    let d = d.start();
    c.meets(&d);
}

#[test]
fn d10_two_addresses_on_one_interface_are_one_node() {
    let Some(lan) = Lan::enter("lan::d10_two_addresses_on_one_interface_are_one_node", 2) else { return };
    lan.run(1, "ip addr add 10.98.0.1/24 broadcast 10.98.0.255 dev e0");
    let (site, origin) = (Site::new(), origin());
    let (a, b) = (lan.node(1, "a", &site).start(), lan.node(2, "b", &site).start());
    a.meets(&b);
    assert_eq!((a.peers(), b.peers()), (vec!["b".to_owned()], vec!["a".to_owned()]));
    let script = Script::new(10_000);
    a.get(&origin.serve("/f.bin", script.clone())).assert_whole(&script);
    assert_eq!(a.count("/traffic/bytes_to_peers"), 0);
    assert!(a.bans().is_empty() && b.bans().is_empty());
}

#[test]
fn p06_a_neighbour_behind_a_firewall_costs_one_connect_deadline() {
    let test = "lan::p06_a_neighbour_behind_a_firewall_costs_one_connect_deadline";
    let Some(lan) = Lan::enter(test, 2) else { return };
    let (site, origin) = (Site::new(), origin());
    let (a, b) = (lan.node(1, "a", &site).start(), lan.node(2, "b", &site).start());
    a.meets(&b);
    let scripts: Vec<_> = (1..=5).map(|n| Script::new(50_000).seed(n)).collect();
    let urls: Vec<_> = scripts.iter().map(|s| origin.serve(&format!("/{}.bin", s.seed), s.clone())).collect();
    for (url, script) in urls.iter().zip(&scripts) {
        a.get(url).assert_whole(script);
        a.wait_for_blob(&script.digest());
    }
    // A black hole towards the neighbour's TCP, while its UDP goes on: the host route decides by port.
    if !crate::support::tools::installed("iptables") {
        return;
    }
    lan.run(1, &format!("iptables -A INPUT -p tcp --dport {} -j DROP", site.port()));
    let start = std::time::Instant::now();
    for (url, script) in urls.iter().zip(&scripts) {
        let answer = b.ask(url).field("Larder-Digest", &script.digest()).send();
        assert!(!answer.assert_whole(script).is_from_peer());
    }
    println!("5 files with a black-holed neighbour: {:?}", start.elapsed());
    assert!(start.elapsed().as_secs() < 25);
    assert!(b.bans().is_empty());
}

#[test]
fn h35_somebody_elses_machine_reaches_nothing_private_through_us() {
    let test = "lan::h35_somebody_elses_machine_reaches_nothing_private_through_us";
    let Some(lan) = Lan::enter(test, 2) else { return };
    let (site, origin) = (Site::new(), origin());
    let a = lan.node(1, "a", &site).set("proxy.connect_ports", vec![443, 8097]).start();
    for target in [
        "http://127.0.0.1:8097/status",
        "http://[::1]:8097/status",
        "http://[::ffff:127.0.0.1]:8097/status",
        "http://localhost:8097/status",
        "http://169.254.169.254/latest",
        "http://0.0.0.0:8097/status",
        "http://[::]:8097/status",
        "http://2130706433:8097/status",
        "http://0x7f.1:8097/status",
    ] {
        let answer = a.get(target);
        assert!([400, 403, 502, 508].contains(&answer.status), "{target}: {}", answer.status);
        assert!(!answer.text().contains("uptime_seconds"), "{target}");
        let prefix = a.prefix(target).send();
        assert!([400, 403, 502, 508].contains(&prefix.status), "{target}: {}", prefix.status);
    }
    let tunnel = Ask::new(a.proxy(), "CONNECT", "127.0.0.1:8097").field("Host", "127.0.0.1:8097").send();
    assert_eq!(tunnel.status, 403);
    let peer_port: SocketAddr = a.peer();
    assert!([400, 403, 502, 508].contains(&a.get(&format!("http://{peer_port}/")).status));
    // What is merely on the LAN stays within reach, and a redirect is the client's own business.
    let script = Script::new(1000);
    a.get(&origin.serve("/f", script.clone())).assert_whole(&script);
    let redirect = origin.serve("/to", Script::redirect("http://127.0.0.1:8097/status"));
    assert_eq!(a.get(&redirect).status, 302);
    // The admin port is on loopback alone, and the doors let only the allowed in.
    assert!(Connection::to((lan.address(1), 8097).into()).is_err());
    let closed = lan.node(2, "b", &site).list("proxy.allow", &["127.0.0.0/8"]).start();
    let refused = closed.ask(&origin.url("/f")).try_send();
    assert!(refused.is_err() || refused.is_ok_and(|answer| answer.status == 403));
}

#[test]
fn h54_names_are_tried_at_all_addresses_and_a_dead_name_is_not_remembered() {
    let test = "lan::h54_names_are_tried_at_all_addresses_and_a_dead_name_is_not_remembered";
    let Some(lan) = Lan::enter(test, 1) else { return };
    let (site, origin) = (Site::new(), origin());
    let files = tempfile::tempdir().unwrap();
    let (hosts, resolver) = (files.path().join("hosts"), files.path().join("resolv.conf"));
    let names = format!("127.0.0.1 localhost\n10.99.0.77 two.test\nfd00::dead two.test\n{SWITCH} two.test\n");
    std::fs::write(&hosts, &names).unwrap();
    std::fs::write(&resolver, "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n").unwrap();
    lan.run(1, &format!("mount --bind {} /etc/hosts", hosts.display()));
    lan.run(1, &format!("mount --bind {} /etc/resolv.conf", resolver.display()));
    let a = lan.node(1, "a", &site).start();
    let port = origin.address().port();
    let script = Script::new(10_000);
    origin.serve("/f", script.clone());
    let start = std::time::Instant::now();
    a.get(&format!("http://two.test:{port}/f")).assert_whole(&script);
    println!("two dead addresses and a good one: {:?}", start.elapsed());
    a.wait_for_blob(&script.digest());
    let dead = a.get(&format!("http://late.test:{port}/f"));
    assert_eq!(dead.status, 502);
    assert!(dead.text().contains("late.test"), "{}", dead.text());
    assert!(a.get(&format!("http://two.test:{port}/f")).assert_whole(&script).is_hit());
    std::fs::write(&hosts, format!("{names}{SWITCH} late.test\n")).unwrap();
    wait_until("the name to work", || a.get(&format!("http://late.test:{port}/f")).status == 200);
}

#[test]
fn three_forged_tokens_on_the_lan_are_a_ban() {
    let Some(lan) = Lan::enter("lan::three_forged_tokens_on_the_lan_are_a_ban", 1) else { return };
    let site = Site::new();
    let a = lan.node(1, "a", &site).set("peers.tls", "off").start();
    let knock = || {
        let path = format!("/blob/sha256:{}", "0".repeat(64));
        let ask = Ask::new(a.peer(), "GET", &path).field("Host", "x");
        ask.field("Authorization", &format!("Bearer {}", "QUJD".repeat(30))).try_send()
    };
    for _ in 0..3 {
        assert_eq!(knock().unwrap().status, 403);
    }
    wait_until("the ban", || a.bans() == [SWITCH.to_string()]);
    assert!(knock().is_err());
    a.cli(&["bans", "rm", &SWITCH.to_string()]).assert_code(0);
    assert_eq!(knock().unwrap().status, 403);
}
