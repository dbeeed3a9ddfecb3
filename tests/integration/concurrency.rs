//! Many at once: one transfer for one thing, readers that come, wait and go.

use std::time::Duration;

use crate::support::client::Reading;
use crate::support::{Ending, Larder, MIB, Origin, Ranges, Script, at_once, wait_until};

fn alone() -> (Origin, Larder) {
    (Origin::start(), Larder::new("a").start())
}

#[test]
fn c01_fifty_clients_cost_the_origin_one_request() {
    let (origin, a) = alone();
    let script = Script::new(3 * MIB).hold_at(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let rss = a.rss();
    let readings = at_once(50, |_| {
        let mut reading = a.ask(&url).open();
        // Everybody has most of it before the end exists: all of them stream.
        assert!(reading.read_to(2 * MIB) >= 2 * MIB);
        reading
    });
    origin.release("/f.bin");
    let answers: Vec<_> = readings.into_iter().map(Reading::rest).collect();
    for answer in &answers {
        answer.assert_whole(&script);
    }
    assert_eq!(origin.gets("/f.bin").len(), 1);
    let joined = answers.iter().filter(|answer| answer.cache_status().contains("collapsed")).count();
    let slowest = answers.iter().map(|answer| answer.first_byte).max().unwrap_or_default();
    println!("first byte of the last: {slowest:?}");
    println!("50 clients: {joined} joined; {} KiB more resident", a.rss().saturating_sub(rss) >> 10);
    assert!(joined >= 40, "{joined}");
}

#[test]
fn c02_the_first_client_may_leave() {
    let (origin, a) = alone();
    let script = Script::new(3 * MIB).hold_at(MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut first = a.ask(&url).open();
    first.read_to(MIB / 2);
    let mut second = a.ask(&url).open();
    second.read_to(MIB / 2);
    first.abort();
    origin.release("/f.bin");
    second.rest().assert_whole(&script);
    assert_eq!(origin.gets("/f.bin").len(), 1);
    a.wait_for_blob(&script.digest());
}

#[test]
fn c03_a_download_that_nobody_wants_any_more_ends() {
    let (origin, a) = alone();
    for (path, at) in [("/begun", MIB / 50), ("/nearly", MIB * 2 - MIB / 10)] {
        let script = Script::new(2 * MIB).hold_at(at);
        let url = origin.serve(path, script.clone());
        let mut only = a.ask(&url).open();
        only.read_to(at);
        only.abort();
        // in the middle of nothing it is given up; near the end it may wait for the rest, and no longer
        wait_until("the origin to be let go or the rest to be wanted", || {
            origin.release(path);
            origin.open_connections() == 0 || a.transfers() == 0
        });
        wait_until("no transfer left", || a.transfers() == 0);
        assert!(origin.bytes_sent(path) <= 2 * MIB);
        a.get(&url).assert_whole(&script);
        a.wait_for_blob(&script.digest());
    }
    let staging = crate::support::chaos::files_under(&a.cache_dir().join("staging"));
    assert!(staging.is_empty(), "{staging:?}");
}

#[test]
fn c05_a_failing_leader_lets_nobody_hang() {
    let (origin, a) = alone();
    for (path, script) in [
        ("/once", Script::new(2 * MIB).cut_once(MIB / 2).by_reset()),
        ("/always", Script::new(2 * MIB).ranges(Ranges::Ignored).cut_always(MIB / 2).by_reset()),
    ] {
        let url = origin.serve(path, script.clone());
        let answers = at_once(20, |_| a.get(&url));
        for answer in answers {
            if path == "/once" && answer.ending == Ending::Complete && answer.status == 200 {
                answer.assert_whole(&script);
            }
            assert!(path == "/once" || !answer.is_success());
        }
        wait_until("an empty table of transfers", || a.transfers() == 0);
        assert!(origin.gets(path).len() <= 45, "{path}: {} requests", origin.gets(path).len());
    }
    let once = Script::new(2 * MIB);
    a.get(&origin.serve("/once", once.clone())).assert_whole(&once);
}

#[test]
fn c06_readers_at_the_edge_of_a_growing_file_wait_for_the_rest() {
    let (origin, a) = alone();
    let script = Script::new(600_000).bursts(60_000, Duration::from_millis(100));
    let url = origin.serve("/f.bin", script.clone());
    let answers = at_once(6, |reader| match reader as u64 {
        0 => a.get(&url),
        offset => a.ask(&url).range(&format!("{}-", offset * 90_000)).send(),
    });
    answers[0].assert_whole(&script);
    for (reader, answer) in answers.iter().enumerate().skip(1) {
        match answer.status {
            206 => drop(answer.assert_slice(&script, reader as u64 * 90_000, 600_000)),
            _ => drop(answer.assert_whole(&script)),
        }
    }
}

#[test]
fn c08_a_slow_reader_slows_nobody() {
    let (origin, a) = alone();
    let script = Script::new(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let slow = a.ask(&url).open();
    a.get(&url).assert_whole(&script);
    slow.rest_slowly(MIB / 4, Duration::from_millis(1)).assert_whole(&script);
    assert_eq!(origin.gets("/f.bin").len(), 1);
}

#[test]
fn c09_the_tail_is_there_while_the_beginning_is_still_coming() {
    let (origin, a) = alone();
    let script = Script::new(16 * MIB).hold_at(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut whole = a.ask(&url).open();
    whole.read_to(MIB);
    let tail = a.ask(&url).range("16000000-").send();
    tail.assert_slice(&script, 16_000_000, script.size);
    origin.release("/f.bin");
    whole.rest().assert_whole(&script);
    if !crate::support::tools::installed("aria2c") {
        return;
    }
    let fresh = Script::new(16 * MIB).seed(2).rate(40_000_000);
    let url = origin.serve("/parts.bin", fresh.clone());
    let proxy = format!("--all-proxy=http://{}", a.proxy());
    let mut command = crate::support::daemon::bare_command("aria2c", a.home());
    command.args(["-q", "--no-conf", "-x8", "-s8", "-k1M", "-o", "parts.bin", &proxy, &url]);
    command.current_dir(a.home());
    crate::support::daemon::run(command).assert_code(0);
    assert!(std::fs::read(a.home().join("parts.bin")).unwrap() == fresh.body());
    let sent = origin.bytes_sent("/parts.bin");
    println!(
        "aria2c with eight connections: the origin sent {:.2} of the file",
        sent as f64 / fresh.size as f64
    );
    assert!(sent <= fresh.size + fresh.size / 10, "{sent} of {}", fresh.size);
}

#[test]
fn c11_trouble_in_the_index_is_no_clients_trouble() {
    let (origin, a) = alone();
    let urls: Vec<_> = (0..30).map(|n| origin.serve(&format!("/{n}"), Script::new(20_000).seed(n))).collect();
    a.get(&urls[0]).assert_whole(&Script::new(20_000).seed(0));
    let outsider = rusqlite::Connection::open(a.state_dir().join("index.db")).unwrap();
    outsider.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let answers = at_once(30, |client| {
        let rounds = (0..10).map(|round| (client + round) % 30);
        if client % 10 == 0 {
            a.cli(&["ls", "--json"]).assert_code(0);
        }
        rounds.map(|n| (n, a.get(&urls[n]))).collect::<Vec<_>>()
    });
    outsider.execute_batch("ROLLBACK").unwrap();
    for (n, answer) in answers.iter().flatten() {
        answer.assert_whole(&Script::new(20_000).seed(*n as u64));
    }
    println!("{} answers while the index was locked", answers.iter().map(Vec::len).sum::<usize>());
    for (n, url) in urls.iter().enumerate() {
        assert!(a.get(url).assert_whole(&Script::new(20_000).seed(n as u64)).is_hit());
    }
}

/// Three hundred clients, a writer, a long list and a backup, while somebody holds the lock for three seconds.
#[test]
fn c11_three_hundred_clients_notice_no_lock() {
    let (origin, a) = alone();
    let script = |n: usize| Script::new(4096).seed(n as u64);
    let urls: Vec<_> = (0..300).map(|n| origin.serve(&format!("/{n}"), script(n))).collect();
    for (n, url) in urls.iter().enumerate().take(20) {
        a.get(url).assert_whole(&script(n));
    }
    let outsiders = ["index.db", "state.db"].map(|file| {
        let outsider = rusqlite::Connection::open(a.state_dir().join(file)).unwrap();
        outsider.busy_timeout(Duration::from_secs(10)).unwrap();
        outsider.execute_batch("BEGIN EXCLUSIVE").unwrap();
        outsider
    });
    let clock = larder::clock::SystemClock::shared();
    let begun = clock.instant();
    let is_locked = || clock.instant().duration_since(begun) < Duration::from_secs(3);
    let release = std::sync::Mutex::new(Some(outsiders));
    let answers = at_once(301, |client| {
        if client == 300 {
            while is_locked() {
                a.cli(&["ls", "--json"]).assert_code(0);
            }
            release.lock().unwrap().take().into_iter().flatten().for_each(|outsider| {
                outsider.execute_batch("ROLLBACK").unwrap();
            });
            return 0;
        }
        let mut answers = 0;
        while answers < 3 || (is_locked() && client % 10 == 0) {
            let n = (client + answers * 7) % 300;
            a.get(&urls[n]).assert_whole(&script(n));
            answers += 1;
        }
        answers
    });
    println!("{} whole answers, no error, while the indexes were locked", answers.iter().sum::<usize>());
    for (n, url) in urls.iter().enumerate() {
        assert!(a.get(url).assert_whole(&script(n)).is_hit(), "{n}");
    }
}

#[test]
fn c12_clients_that_abort_leave_nothing_open() {
    let (origin, a) = alone();
    let script = Script::new(2 * MIB).hold_at(MIB);
    a.get(&origin.serve("/warm", Script::new(10)));
    let (before, memory) = (a.open_files(), a.rss());
    let (rounds, clients) = (20, 50);
    for round in 0..rounds {
        let path = format!("/{round}.bin");
        let url = origin.serve(&path, script.clone());
        at_once(clients, |client| {
            let mut reading = a.ask(&url).open();
            reading.read_to(1000 * client as u64);
            reading.abort();
        });
        origin.release(&path);
    }
    wait_until("no transfer left", || a.transfers() == 0);
    wait_until("open files back to what they were", || a.open_files() <= before + 10);
    println!(
        "{} clients aborted: {before} files open before, {} after; {} KiB more memory",
        rounds * clients,
        a.open_files(),
        a.rss().saturating_sub(memory) >> 10
    );
    let url = origin.serve("/last.bin", Script::new(1000));
    a.get(&url).assert_whole(&Script::new(1000));
}

#[test]
fn c14_an_idle_connection_the_origin_closed_costs_no_error() {
    let (origin, a) = alone();
    let script = Script::new(100).cache_control("no-store").hangs_up();
    let url = origin.serve("/f", script.clone());
    for _ in 0..100 {
        a.get(&url).assert_whole(&script);
    }
}

#[test]
fn c15_two_thousand_small_files_by_two_hundred_clients() {
    let origin = Origin::start();
    let a = Larder::new("a");
    let is_limited = crate::support::tools::installed("prlimit");
    let a = if is_limited { a.wrapped(&["prlimit", "--nofile=256:256"]) } else { a }.start();
    let answers = at_once(200, |client| {
        let paths = (0..10).map(|round| format!("/{client}/{round}?size=4096&seed={}", client * 10 + round));
        paths.map(|path| a.get(&origin.url(&path))).collect::<Vec<_>>()
    });
    for (client, answers) in answers.iter().enumerate() {
        for (round, answer) in answers.iter().enumerate() {
            answer.assert_whole(&Script::new(4096).seed((client * 10 + round) as u64));
        }
    }
    assert_eq!(origin.all_requests().len(), 2000);
    assert!(!a.log().contains("Too many open files"), "{}", a.log());
}

#[test]
fn requests_that_may_not_be_shared_do_not_join() {
    let (origin, a) = alone();
    let script = Script::new(100_000).cache_control("private").delay(Duration::from_millis(50));
    let url = origin.serve("/f", script.clone());
    at_once(5, |_| a.get(&url).assert_whole(&script).clone());
    assert_eq!(origin.gets("/f").len(), 5, "each client has its own answer");
    let held = Script::new(100_000).hold_at(50_000);
    let url = origin.serve("/own", held.clone());
    let mut leader = a.ask(&url).open();
    leader.read_to(40_000);
    let authorized = a.ask(&url).field("Authorization", "Bearer x").open();
    assert_eq!(origin.gets("/own").len(), 2);
    origin.release("/own");
    leader.rest().assert_whole(&held);
    authorized.rest().assert_whole(&held);
}
