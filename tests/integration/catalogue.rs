//! The fleet's catalogue: holders found beyond the broadcast domain, and a database that comes, goes and misbehaves.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::support::lan::{Lan, SWITCH};
use crate::support::postgres::{PASSWORD, Postgres};
use crate::support::{Answer, GUARD, Larder, MIB, Origin, Script, Site, wait_until};

fn told(node: &Larder) -> u64 {
    node.status()["catalogue"]["told"].as_u64().unwrap_or(0)
}

fn is_connected(node: &Larder) -> bool {
    node.status()["catalogue"]["connected"] == true
}

/// A new file, held by this node.
fn give(origin: &Origin, name: &str, node: &Larder) -> (Script, String) {
    let seed = name.bytes().map(u64::from).fold(7, |seed, byte| seed * 31 + byte);
    let script = Script::new(MIB).seed(seed);
    let url = origin.serve(&format!("/{name}"), script.clone());
    node.get(&url).assert_whole(&script);
    node.wait_for_blob(&script.digest());
    (script, url)
}

fn ask(node: &Larder, url: &str, script: &Script) -> Answer {
    let start = Instant::now();
    let answer = node.ask(url).field("Larder-Digest", &script.digest()).send();
    println!("{url}: {:?}, {}", start.elapsed(), answer.cache_status());
    answer.assert_whole(script);
    answer
}

#[test]
fn networks_that_cannot_hear_each_other_share_through_the_catalogue() {
    let test = "catalogue::networks_that_cannot_hear_each_other_share_through_the_catalogue";
    let Some(lan) = Lan::enter(test, 2) else { return };
    lan.add_second_network();
    let there = lan.move_to_second(2);
    let Some(mut postgres) = Postgres::start(SWITCH.into()) else { return };
    let (site, origin) = (Site::new(), Origin::start_at((SWITCH, 0).into()));
    let catalogue = |node: crate::support::daemon::LarderBuilder| {
        let file = postgres.password_file().display().to_string();
        node.set("index.catalogue", postgres.url("postgres")).set("index.catalogue_password_file", file)
    };
    let a = catalogue(lan.node(1, "a", &site)).start();
    let c = catalogue(lan.node_at(2, there, "c", &site)).start();
    wait_until("both in the catalogue", || is_connected(&a) && is_connected(&c));
    let (script, url) = give(&origin, "one", &c);
    wait_until("the first file told", || told(&c) > 0);
    let answer = ask(&a, &url, &script);
    assert!(answer.cache_status().contains(&format!("detail=\"peer {there}")), "{}", answer.cache_status());
    assert_eq!(origin.bytes_sent("/one"), script.size);
    assert_eq!(a.count("/catalogue/found"), 1);

    // without the database everything else goes on
    postgres.kill();
    let before = told(&c);
    let (script, url) = give(&origin, "two", &c);
    let (other, other_url) = give(&origin, "three", &c);
    let start = Instant::now();
    assert!(!ask(&a, &url, &script).is_from_peer());
    assert!(start.elapsed() < GUARD);
    wait_until("the trouble in the health list", || {
        a.status()["health"]["reasons"].to_string().contains("catalogue")
    });

    // what was missed meanwhile is told when it is back
    postgres.run();
    wait_until("both again in the catalogue", || is_connected(&a) && is_connected(&c));
    wait_until("what was missed", || told(&c) >= before + 2);
    wait_until("no trouble", || !a.status()["health"]["reasons"].to_string().contains("catalogue"));
    assert!(ask(&a, &other_url, &other).is_from_peer());
    assert_eq!(origin.bytes_sent("/three"), other.size);

    // one that hangs delays one download by its deadline, and those after it not at all
    postgres.pause();
    let (script, url) = give(&origin, "four", &a);
    assert!(!ask(&c, &url, &script).is_from_peer());
    postgres.resume();
    for node in [&a, &c] {
        assert!(!node.log().contains(PASSWORD) && !node.status().to_string().contains(PASSWORD));
    }
}

/// A database that is no database.
fn liar(says: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            drop(stream.read(&mut [0; 512]));
            drop(stream.write_all(says));
            drop(stream.read(&mut [0; 512]));
        }
    });
    address
}

#[test]
fn a_catalogue_that_misbehaves_is_a_trouble_and_no_more() {
    let Some(postgres) = Postgres::start([127, 0, 0, 1].into()) else { return };
    for (database, sql) in [
        ("alien", "CREATE TABLE larder_nodes (id int)"),
        ("reading", "ALTER DATABASE reading SET default_transaction_read_only = on"),
        (
            "newer",
            "CREATE TABLE larder_schema (application_id BIGINT PRIMARY KEY, version BIGINT NOT NULL); \
                   INSERT INTO larder_schema VALUES (1279524867, 99)",
        ),
    ] {
        postgres.database(database);
        postgres.sql_in(database, sql);
    }
    let rubbish = liar(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let open = |address: SocketAddr| format!("postgres://me@{address}/x?sslmode=disable");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (site, origin) = (Site::new(), Origin::start());
    for (number, (url, said)) in [
        (postgres.url("alien"), "already exists"),
        (postgres.url("reading"), "read-only"),
        (postgres.url("newer"), "version 99"),
        (postgres.url("missing"), "does not exist"),
        (open(rubbish), "catalogue"),
        (open(nobody), "refused"),
    ]
    .into_iter()
    .enumerate()
    {
        let node = Larder::new(&format!("n{number}"))
            .peers(&site)
            .set("index.catalogue", url)
            .set("index.catalogue_password_file", postgres.password_file().display().to_string())
            .start();
        let reasons = || node.status()["health"]["reasons"].to_string();
        wait_until("the trouble", || reasons().contains("catalogue"));
        println!("{}", reasons());
        assert!(reasons().contains(said) && !reasons().contains(PASSWORD), "{}", reasons());
        let start = Instant::now();
        give(&origin, &format!("file{number}"), &node);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert!(!is_connected(&node));
    }
}
