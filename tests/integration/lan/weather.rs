//! Networks that come late, go away, answer late or refuse: nobody is told more than once, nobody waits long.

use std::time::{Duration, Instant};

use super::{assert_from, origin};
use crate::support::lan::Lan;
use crate::support::{Larder, Script, Site, tools, wait_until};

/// How many lines of a log ask for somebody's attention.
fn loud_lines(node: &Larder) -> usize {
    node.log().lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count()
}

#[test]
fn d04_a_network_that_comes_after_the_start_is_joined() {
    let test = "lan::weather::d04_a_network_that_comes_after_the_start_is_joined";
    let Some(lan) = Lan::enter(test, 2) else { return };
    if !tools::installed("curl") {
        return;
    }
    let (site, origin) = (Site::new(), origin());
    lan.run(1, "ip addr flush dev e0");
    lan.run(1, "ip link set e0 down");
    let a = lan.node(1, "a", &site).list("proxy.listen", &["127.0.0.1:8098"]).start();
    let b = lan.node(2, "b", &site).start();
    let url = origin.serve("/f.bin", Script::new(20_000));
    let curl = || {
        let how = "-s -o /dev/null --max-time 25 -w %{http_code} -x http://127.0.0.1:8098";
        lan.run(1, &format!("curl {how} {url}")).trim().to_owned()
    };
    assert_eq!(curl(), "502", "the door is open, the network is not there");
    assert!(a.peers().is_empty());
    lan.run(1, "ip link set e0 up");
    lan.run(1, "ip addr add 10.99.0.1/24 broadcast 10.99.0.255 dev e0");
    let start = Instant::now();
    a.meets(&b);
    println!("met {:?} after the network came", start.elapsed());
    assert_eq!(curl(), "200");
    assert!(loud_lines(&a) <= 2, "{}", a.log());
}

#[test]
fn d25_a_neighbour_that_was_switched_off_costs_one_connect_deadline() {
    let test = "lan::weather::d25_a_neighbour_that_was_switched_off_costs_one_connect_deadline";
    let Some(lan) = Lan::enter(test, 2) else { return };
    let (site, origin) = (Site::new(), origin());
    let (a, b) = (lan.node(1, "a", &site).start(), lan.node(2, "b", &site).start());
    a.meets(&b);
    let scripts: Vec<_> = (1..=4).map(|n| Script::new(100_000).seed(n)).collect();
    let urls: Vec<_> = scripts.iter().map(|s| origin.serve(&format!("/{}.bin", s.seed), s.clone())).collect();
    for (url, script) in urls.iter().zip(&scripts) {
        b.get(url).assert_whole(script);
        b.wait_for_blob(&script.digest());
    }
    let ask = |n: usize| a.ask(&urls[n]).field("Larder-Digest", &scripts[n].digest()).send();
    assert_from(ask(0).assert_whole(&scripts[0]), &b);
    lan.unplug(2);
    let took: Vec<_> = (1..4).map(|n| ask(n).assert_whole(&scripts[n]).took).collect();
    println!("downloads with the neighbour's plug pulled took {took:?}");
    assert!(took.iter().all(|took| *took < Duration::from_secs(10)));
    assert!(a.bans().is_empty());
}

#[test]
fn d26_sends_that_fail_are_told_once() {
    let test = "lan::weather::d26_sends_that_fail_are_told_once";
    let Some(lan) = Lan::enter(test, 1) else { return };
    let (site, origin) = (Site::new(), origin());
    lan.run(1, "ip route del default");
    let a = lan.node(1, "a", &site).list("peers.seeds", &["10.200.0.1", "10.200.0.2:8096"]).start();
    let before = loud_lines(&a);
    let start = Instant::now();
    for n in 1..=60 {
        let script = Script::new(20_000).seed(n);
        a.get(&origin.serve(&format!("/{n}.bin"), script.clone())).assert_whole(&script);
    }
    println!("60 downloads where no seed can be reached: {:?}", start.elapsed());
    let more = loud_lines(&a) - before;
    assert!(more <= 3, "{more} lines:\n{}", a.log());
}

#[test]
fn d09_answers_that_come_late_are_still_used() {
    let test = "lan::weather::d09_answers_that_come_late_are_still_used";
    let Some(lan) = Lan::enter(test, 2) else { return };
    let (site, origin) = (Site::new(), origin());
    let (a, b) = (lan.node(1, "a", &site).start(), lan.node(2, "b", &site).start());
    a.meets(&b);
    // The answering machine is put to sleep for 80 to 300 ms just as it is asked, as power saving does.
    let scripts: Vec<_> = (1..=8).map(|n| Script::new(400_000).seed(n).rate(400_000)).collect();
    let urls: Vec<_> = scripts.iter().map(|s| origin.serve(&format!("/{}.bin", s.seed), s.clone())).collect();
    for (url, script) in urls.iter().zip(&scripts) {
        b.get(url).assert_whole(script);
        b.wait_for_blob(&script.digest());
    }
    let mut from_neighbour = 0;
    for (n, (url, script)) in urls.iter().zip(&scripts).enumerate() {
        b.signal(rustix::process::Signal::STOP);
        let answer = std::thread::scope(|scope| {
            let asking = scope.spawn(|| a.ask(url).field("Larder-Digest", &script.digest()).send());
            std::thread::sleep(Duration::from_millis(80 + 30 * n as u64));
            b.signal(rustix::process::Signal::CONT);
            asking.join().unwrap()
        });
        answer.assert_whole(script);
        from_neighbour += usize::from(answer.is_from_peer());
    }
    let sent: u64 = scripts.iter().map(|s| origin.bytes_sent(&format!("/{}.bin", s.seed))).sum();
    let again = sent - 8 * 400_000;
    println!(
        "{from_neighbour} of 8 heads name the late neighbour; the origin sent {again} of 3200000 bytes again"
    );
    assert!(again < 3_200_000 / 2, "{again}");
    wait_until("nothing left running", || a.transfers() == 0);
}
