//! A crowd that wants the same new thing at once: the origin sends it once.

use crate::support::{Answer, Ending, Larder, MIB, Origin, Ranges, Script, Site, at_once, wait_until};

/// Where a held download stops until everybody has joined it.
const DOOR: u64 = 256 * 1024;

/// Nodes of one site that all know each other.
fn crowd(count: usize) -> Vec<Larder> {
    let site = Site::new();
    let nodes: Vec<Larder> = (0..count).map(|n| Larder::new(&format!("n{n}")).peers(&site).start()).collect();
    for (at, one) in nodes.iter().enumerate() {
        nodes.iter().skip(at + 1).for_each(|other| one.meets(other));
    }
    nodes
}

/// Everybody asks at the same moment; the origin waits at the door until everybody receives something.
fn ask_all(
    nodes: &[Larder],
    origin: &Origin,
    path: &str,
    ask: impl Fn(&Larder) -> Answer + Sync,
) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let answers = scope.spawn(|| at_once(nodes.len(), |n| ask(&nodes[n])));
        wait_until("everybody to receive it", || {
            nodes.iter().all(|node| node.transfers() > 0 || node.count("/cache/blobs") > 0)
        });
        origin.release(path);
        answers.join().unwrap()
    })
}

/// The origin sent the whole at most so often.
#[track_caller]
fn assert_sent_once(nodes: &[Larder], origin: &Origin, path: &str, script: &Script, most: f64) {
    let share = origin.bytes_sent(path) as f64 / script.size as f64;
    println!("the origin sent {share:.3} of {path}");
    let ends = |node: &Larder| {
        node.log()
            .lines()
            .filter(|line| line.contains("claim came to") || line.contains("goes first"))
            .count()
    };
    let told: Vec<usize> = nodes.iter().map(ends).collect();
    assert!(share <= most, "{share:.3}; claims that ended on each node: {told:?}");
}

#[test]
fn a_crowd_by_url_costs_the_origin_one_copy() {
    let (nodes, origin) = (crowd(6), Origin::start());
    let script = Script::new(24 * MIB).hold_at(DOOR);
    let url = origin.serve("/f.bin", script.clone());
    let answers = ask_all(&nodes, &origin, "/f.bin", |node| node.get(&url));
    for answer in &answers {
        println!("{} in {:?}", answer.cache_status(), answer.took);
        answer.assert_whole(&script);
    }
    assert_sent_once(&nodes, &origin, "/f.bin", &script, 1.05);
    assert!(answers.iter().any(|answer| !answer.is_from_peer()));
}

#[test]
fn a_crowd_by_digest_costs_the_origin_one_copy() {
    let (nodes, origin) = (crowd(6), Origin::start());
    let script = Script::new(24 * MIB).hold_at(DOOR);
    let url = origin.serve("/f.bin", script.clone());
    let digest = script.digest();
    let ask = |node: &Larder| node.ask(&url).field("Larder-Digest", &digest).send();
    for answer in ask_all(&nodes, &origin, "/f.bin", ask) {
        println!("{} in {:?}", answer.cache_status(), answer.took);
        answer.assert_whole(&script);
    }
    assert_sent_once(&nodes, &origin, "/f.bin", &script, 1.05);
}

#[test]
fn a_crowd_without_a_known_size_costs_the_origin_one_copy() {
    let (nodes, origin) = (crowd(4), Origin::start());
    let script = Script::new(12 * MIB).chunked().hold_at(DOOR);
    let url = origin.serve("/f.bin", script.clone());
    for answer in ask_all(&nodes, &origin, "/f.bin", |node| node.get(&url)) {
        println!("{} in {:?}", answer.cache_status(), answer.took);
        answer.assert_whole(&script);
    }
    assert_sent_once(&nodes, &origin, "/f.bin", &script, 1.05);
}

#[test]
fn a_crowd_at_an_origin_without_ranges_costs_it_one_copy() {
    let (nodes, origin) = (crowd(4), Origin::start());
    let script = Script::new(12 * MIB).ranges(Ranges::Ignored).hold_at(DOOR);
    let url = origin.serve("/f.bin", script.clone());
    for answer in ask_all(&nodes, &origin, "/f.bin", |node| node.get(&url)) {
        println!("{} in {:?}", answer.cache_status(), answer.took);
        answer.assert_whole(&script);
    }
    assert_sent_once(&nodes, &origin, "/f.bin", &script, 1.05);
}

#[test]
fn who_comes_late_joins_what_runs() {
    let (nodes, origin) = (crowd(3), Origin::start());
    let script = Script::new(12 * MIB).hold_at(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut first = nodes[0].ask(&url).open();
    first.read_to(2 * MIB);
    for answer in ask_all(&nodes[1..], &origin, "/f.bin", |node| node.get(&url)) {
        println!("{} in {:?}", answer.cache_status(), answer.took);
        assert!(answer.assert_whole(&script).is_from_peer(), "{}", answer.cache_status());
    }
    first.rest().assert_whole(&script);
    assert_sent_once(&nodes, &origin, "/f.bin", &script, 1.05);
}

#[test]
fn p04_a_leader_that_dies_is_followed_by_one_node_at_the_byte_reached() {
    let (mut nodes, origin) = (crowd(8), Origin::start());
    let script = Script::new(32 * MIB).hold_at(16 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut leader = nodes.remove(0);
    let mut reading = leader.ask(&url).open();
    reading.read_to(MIB);
    let answers = std::thread::scope(|scope| {
        let others = scope.spawn(|| at_once(nodes.len(), |n| nodes[n].get(&url)));
        // what went out to a client is proved: whoever takes over need not ask for that again
        wait_until("everybody to have half of it", || {
            nodes.iter().all(|node| node.count("/traffic/bytes_to_clients") >= script.size / 2 - MIB)
        });
        leader.kill();
        // who takes over has its answer before anything more comes
        wait_until("somebody to take over", || rests(&origin) > 0);
        origin.release("/f.bin");
        others.join().unwrap()
    });
    drop(reading);
    for answer in &answers {
        println!("{} in {:?}", answer.cache_status(), answer.took);
        answer.assert_whole(&script);
    }
    assert_sent_once(&nodes, &origin, "/f.bin", &script, 1.10);
}

#[test]
fn p04_a_leader_that_dies_is_followed_whatever_the_size_and_the_validator() {
    let dated = || Script::new(12 * MIB + 154_112).no_etag().last_modified("Mon, 01 Jan 2024 00:00:00 GMT");
    for script in [Script::new(12 * MIB + 154_112), dated(), Script::new(12 * MIB + 1)] {
        let (mut nodes, origin) = (crowd(3), Origin::start());
        let script = script.hold_at(6 * MIB);
        let url = origin.serve("/f.bin", script.clone());
        let mut leader = nodes.remove(0);
        let mut reading = leader.ask(&url).open();
        reading.read_to(MIB);
        let answers = std::thread::scope(|scope| {
            let others = scope.spawn(|| at_once(nodes.len(), |n| nodes[n].get(&url)));
            wait_until("everybody to have half of it", || nodes.iter().all(|node| received(node) >= 6 * MIB));
            leader.kill();
            wait_until("somebody to take over", || origin.gets("/f.bin").len() > 3);
            origin.release("/f.bin");
            others.join().unwrap()
        });
        drop(reading);
        for answer in &answers {
            println!("{} in {:?}", answer.cache_status(), answer.took);
            answer.assert_whole(&script);
        }
        println!("the origin sent {:.3}", origin.bytes_sent("/f.bin") as f64 / script.size as f64);
    }
}

#[test]
fn p04_an_origin_that_has_something_else_under_the_same_tag_ends_it() {
    let (mut nodes, origin) = (crowd(2), Origin::start());
    let script = Script::new(12 * MIB + 3).etag("\"same\"").hold_at(6 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut leader = nodes.remove(0);
    let mut leading = leader.ask(&url).open();
    leading.read_to(MIB);
    let mut reading = nodes[0].ask(&url).open();
    // what is proved goes out: this much is
    reading.read_to(4 * MIB);
    origin.serve("/f.bin", script.clone().seed(2));
    leader.kill();
    wait_until("the other one to take over", || origin.gets("/f.bin").len() > 2);
    origin.release("/f.bin");
    let answer = reading.rest();
    assert_eq!(answer.ending, Ending::Truncated);
    assert!(script.body().starts_with(&answer.body), "spliced");
    assert!(origin.bytes_sent("/f.bin") < 40 * MIB, "{}", origin.bytes_sent("/f.bin"));
    assert!(nodes[0].blobs().is_empty());
    drop(leading);
}

/// How much of the one thing it receives a node has.
fn received(node: &Larder) -> u64 {
    node.status().pointer("/transfers/0/received").and_then(serde_json::Value::as_u64).unwrap_or(0)
}

/// How often the origin was asked for what follows on a byte.
fn rests(origin: &Origin) -> usize {
    let asked = origin.gets("/f.bin");
    asked.iter().filter(|seen| seen.field("Range").is_some_and(|range| range.ends_with('-'))).count()
}

#[test]
fn p18_what_grows_from_a_neighbour_goes_on_when_its_origin_breaks_off() {
    let (nodes, origin) = (crowd(2), Origin::start());
    let script = Script::new(12 * MIB).cut_once(6 * MIB).hold_at(DOOR);
    let url = origin.serve("/f.bin", script.clone());
    for answer in ask_all(&nodes, &origin, "/f.bin", |node| node.get(&url)) {
        println!("{} in {:?}", answer.cache_status(), answer.took);
        answer.assert_whole(&script);
    }
    assert_sent_once(&nodes, &origin, "/f.bin", &script, 1.05);
}

#[test]
fn p18_what_grows_from_a_neighbour_never_counts_as_whole_where_the_origin_dies() {
    let (nodes, mut origin) = (crowd(2), Origin::start());
    let script = Script::new(12 * MIB).hold_at(6 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut leading = nodes[0].ask(&url).open();
    leading.read_to(MIB);
    let mut following = nodes[1].ask(&url).open();
    following.read_to(MIB);
    origin.stop();
    for reading in [leading, following] {
        let answer = reading.rest();
        assert!((answer.body.len() as u64) < script.size);
        assert_ne!(answer.ending, Ending::Complete);
    }
    nodes.iter().for_each(|node| assert!(node.blobs().is_empty(), "{:?}", node.blobs()));
}

#[test]
fn what_is_one_clients_own_is_fetched_by_everybody_alone() {
    let (nodes, origin) = (crowd(4), Origin::start());
    let script = Script::new(MIB).cookie();
    let url = origin.serve("/f.bin", script.clone());
    for answer in at_once(nodes.len(), |n| nodes[n].get(&url)) {
        answer.assert_whole(&script);
        assert!(!answer.is_from_peer());
    }
    assert_eq!(origin.gets("/f.bin").len(), 4);
    let private = origin.serve("/private.bin", script.clone());
    let ask = |n: usize| nodes[n].ask(&private).field("Authorization", "Basic eDp5").send();
    for answer in at_once(nodes.len(), ask) {
        answer.assert_whole(&script);
    }
    assert_eq!(origin.gets("/private.bin").len(), 4);
}
