//! What takes minutes: asked for by name (`just endurance`), never in a commit's run. Each prints its figures.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::following::{Following, Way, label, number_of};
use crate::support::{Ask, Connection, Larder, MIB, Origin, Rng, Script, Site, wait_until};

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Things of all sizes, each served under its own URL.
fn things(origin: &Origin) -> Vec<(Script, String)> {
    let sizes = [1, 900, 5000, 70_000, 262_144, 1_000_000, 3_000_001];
    let scripts = (0..42).map(|n| Script::new(sizes[n as usize % sizes.len()]).seed(n + 1));
    let scripts = scripts.map(|script| if script.seed % 5 == 0 { script.chunked() } else { script });
    scripts.map(|script| (script.clone(), origin.serve(&format!("/{}", script.seed), script))).collect()
}

/// Clients that ask for anything until they are told to stop; wrong bytes end the test.
fn load<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    node: &'scope Larder,
    things: &'scope [(Script, String)],
    stop: &'scope AtomicBool,
    answers: &'scope AtomicU64,
    (seed, pause): (u64, Duration),
) {
    for client in 0..6 {
        scope.spawn(move || {
            let mut rng = Rng::new(&format!("endurance-{seed}-{client}"));
            while !stop.load(Ordering::Relaxed) {
                let (script, url) = &things[rng.below(things.len() as u64) as usize];
                let ask = match rng.below(4) {
                    0 => node.ask(url).field("Larder-Digest", &script.digest()),
                    1 if script.size > 10 => node.ask(url).range("bytes=3-9"),
                    _ => node.ask(url),
                };
                let Ok(answer) = ask.try_send() else { continue };
                if answer.is_success() && answer.status == 206 {
                    assert_eq!(answer.body, script.body()[3..10], "wrong bytes of {url}");
                } else if answer.is_success() && answer.status == 200 {
                    assert_eq!(answer.body, script.body(), "wrong bytes of {url}");
                }
                answers.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(pause);
            }
        });
    }
}

#[test]
#[ignore = "minutes: just endurance"]
fn kill_9_a_thousand_times() {
    let rounds = number("LARDER_TEST_ROUNDS", 1000);
    let origin = Origin::start();
    let mut rng = Rng::new("kill");
    let mut node = Larder::new("a").set("cache.max_size", "1GiB").start();
    let things = things(&origin);
    let (answers, mut restarts, mut committed) = (AtomicU64::new(0), Vec::new(), BTreeSet::<PathBuf>::new());
    for round in 0..rounds {
        let (stop, pause) = (AtomicBool::new(false), Duration::from_micros(rng.below(120_000)));
        std::thread::scope(|scope| {
            load(scope, &node, &things, &stop, &answers, (round, Duration::ZERO));
            std::thread::sleep(pause);
            committed.extend(node.blobs());
            node.signal(Signal::KILL);
            stop.store(true, Ordering::Relaxed);
        });
        node.wait_exit();
        let begun = Instant::now();
        node.start_again();
        restarts.push(begun.elapsed());
        let lost = committed.iter().filter(|path| !path.exists()).count();
        assert_eq!(lost, 0, "round {round}: committed blobs are gone");
        if round % 20 == 0 {
            node.verify_all_blobs();
            // from time to time all begins anew, so that there is always something to write
            node.cli(&["gc", "--to", "1KiB"]).assert_code(0);
            committed.clear();
        }
    }
    node.verify_all_blobs();
    let mean = restarts.iter().sum::<Duration>() / restarts.len() as u32;
    println!(
        "{rounds} times kill -9 under load: {} answers, 0 wrong, 0 committed blobs lost, mean restart {mean:?}, \
         slowest {:?}",
        answers.load(Ordering::Relaxed),
        restarts.iter().max().unwrap()
    );
}

/// The slope of a straight line through (seconds, value).
fn slope(samples: &[(f64, f64)]) -> f64 {
    let count = samples.len() as f64;
    let (x, y) = samples.iter().fold((0.0, 0.0), |(x, y), (a, b)| (x + a / count, y + b / count));
    let over: f64 = samples.iter().map(|(a, b)| (a - x) * (b - y)).sum();
    over / samples.iter().map(|(a, _)| (a - x).powi(2)).sum::<f64>()
}

#[test]
#[ignore = "minutes: just endurance"]
fn o03_ten_minutes_of_mixed_load_leave_memory_and_files_flat() {
    let length = Duration::from_secs(number("LARDER_TEST_SECONDS", 600));
    let site = Site::new();
    let origin = Origin::start();
    let node = Larder::new("a").peers(&site).set("cache.max_size", "8MiB").set("log.level", "info").start();
    let other = Larder::new("b").peers(&site).set("log.level", "info").start();
    node.meets(&other);
    let things = things(&origin);
    let (stop, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    let samples = std::thread::scope(|scope| {
        let pause = Duration::from_millis(number("LARDER_TEST_PAUSE_MS", 0));
        load(scope, &node, &things, &stop, &answers, (1, pause));
        load(scope, &other, &things, &stop, &answers, (2, pause));
        let begun = Instant::now();
        let mut samples = Vec::new();
        while begun.elapsed() < length {
            std::thread::sleep(Duration::from_secs(1));
            samples.push((begun.elapsed().as_secs_f64(), node.rss() as f64, node.open_files() as f64));
        }
        stop.store(true, Ordering::Relaxed);
        samples
    });
    let slopes = |part: &[(f64, f64, f64)]| {
        let memory = slope(&part.iter().map(|(at, memory, _)| (*at, *memory)).collect::<Vec<_>>());
        let files = slope(&part.iter().map(|(at, _, files)| (*at, *files)).collect::<Vec<_>>());
        (memory, files)
    };
    for (n, quarter) in samples.chunks(samples.len().div_ceil(4)).enumerate() {
        let (memory, files) = slopes(quarter);
        println!(
            "quarter {}: {:.1} KiB and {:+.2} open files a minute, {:.1} MiB at its end",
            n + 1,
            memory * 60.0 / 1024.0,
            files * 60.0,
            quarter.last().map_or(0.0, |(_, memory, _)| memory / MIB as f64)
        );
    }
    // the first half fills caches, pools and the ring of changes that readers may follow (16384 of them)
    let (memory, files) = slopes(&samples[samples.len() / 2..]);
    let most = samples.iter().map(|(_, memory, _)| *memory).fold(0.0, f64::max);
    println!(
        "{length:?} of mixed load, {} answers: in the second half memory grows {:.1} KiB a minute (at most {:.0} MiB), \
         open files {:+.2} a minute",
        answers.load(Ordering::Relaxed),
        memory * 60.0 / 1024.0,
        most / MIB as f64,
        files * 60.0
    );
    assert!(memory * 60.0 < 2.0 * MIB as f64 && files * 60.0 < 5.0);
    assert!(most < 200.0 * MIB as f64);
}

#[test]
#[ignore = "minutes: just endurance"]
fn ten_thousand_idle_connections_harm_nobody() {
    // a connection may need three files; where fewer may be open, fewer connections are tried
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let count = (hard / 4).min(10_000);
    let limit = rustix::process::Rlimit { current: Some(hard.min(40_000)), maximum: Some(hard) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let origin = Origin::start();
    let node = Larder::new("a").start();
    let script = Script::new(50_000);
    let url = origin.serve("/f.bin", script.clone());
    node.get(&url).assert_whole(&script);
    let before = node.rss();
    // no address may have more than 2048
    let from = |n: u64| std::net::IpAddr::from([127, 77, 7, n.to_be_bytes()[7] % 10 + 1]);
    let idle: Vec<_> =
        (0..count).filter_map(|n| Connection::from(node.proxy(), Some(from(n))).ok()).collect();
    let slowest = (0..100).map(|_| node.get(&url).assert_whole(&script).took).max().unwrap();
    println!(
        "{} idle connections: {} files open, {} MiB more memory, the slowest of 100 hits {slowest:?}",
        idle.len(),
        node.open_files(),
        node.rss().saturating_sub(before) >> 20
    );
    assert_eq!(idle.len() as u64, count);
    assert!(slowest < Duration::from_secs(2));
    drop(idle);
    wait_until("the files to be closed", || node.open_files() < 200);
}

#[test]
#[ignore = "minutes: just endurance"]
fn d23_twenty_thousand_frames_a_second_cost_little() {
    let site = Site::new();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let origin = Origin::start();
    let script = Script::new(400_000);
    let url = origin.serve("/f.bin", script.clone());
    b.get(&url).assert_whole(&script);
    b.wait_for_blob(&script.digest());
    let before = a.rss();
    let busy = |node: &Larder| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", node.pid())).unwrap();
        let after = stat.rsplit_once(") ").unwrap().1;
        after.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    };
    let (begun, ticks) = (Instant::now(), busy(&a));
    let sent = std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let socket =
                std::net::UdpSocket::bind((crate::support::address::OwnAddress::claim().ip(), 0)).unwrap();
            let (begun, mut sent) = (Instant::now(), 0_u64);
            let mut frame = crate::support::body::slice(5, 0..1152);
            frame[..2].copy_from_slice(b"LD");
            while begun.elapsed() < Duration::from_secs(10) {
                frame[40] = sent as u8;
                sent += u64::from(socket.send_to(&frame, a.peer()).is_ok());
                if sent as f64 > begun.elapsed().as_secs_f64() * 20_000.0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            sent
        });
        std::thread::sleep(Duration::from_secs(5));
        let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
        answer.assert_whole(&script);
        println!("in the flood: {} after {:?}", answer.cache_status(), answer.took);
        flood.join().unwrap()
    });
    let share = (busy(&a) - ticks) as f64 / begun.elapsed().as_secs_f64();
    println!(
        "{sent} frames in 10 s: {share:.0} % of one core, {} KiB more memory",
        a.rss().saturating_sub(before) >> 10
    );
    assert!(a.rss().saturating_sub(before) < 32 * MIB && a.bans().is_empty());
}

#[test]
fn o02_with_sixty_four_files_everybody_is_served_in_turn_or_told_so() {
    if !crate::support::tools::installed("prlimit") {
        return;
    }
    let origin = Origin::start();
    let node = Larder::new("a").wrapped(&["prlimit", "--nofile=64:64"]).start();
    let script = Script::new(30_000);
    let url = origin.serve("/f.bin", script.clone());
    node.get(&url).assert_whole(&script);
    let answers = crate::support::at_once(200, |_| Ask::through(node.proxy(), &url).try_send());
    let mut served = 0;
    for answer in answers.iter().flatten() {
        match answer.status {
            200 if answer.is_success() => {
                answer.assert_whole(&script);
                served += 1;
            }
            503 => assert!(answer.field("Retry-After").is_some(), "{}", answer.text()),
            other => panic!("status {other}: {}", answer.text()),
        }
    }
    println!(
        "{served} of 200 clients were served with 64 files, {} had no answer",
        answers.iter().filter(|a| a.is_err()).count()
    );
    assert!(served > 0);
    wait_until("a place for the next", || node.ask(&url).try_send().is_ok_and(|a| a.is_success()));
    let mut rest = Vec::new();
    std::fs::File::open(node.log_file()).unwrap().read_to_end(&mut rest).unwrap();
    let told =
        String::from_utf8_lossy(&rest).lines().filter(|line| line.contains("Too many open files")).count();
    assert!(told <= 10, "it is said a few times, not each time: {told}");
}

/// Follows until told to stop, cut off every now and then; how many events were heard, and how often it was cut.
fn follow(node: &Larder, way: Way, seed: u64, stop: &AtomicBool) -> (u64, u64) {
    let mut rng = Rng::new(&format!("following-{seed}"));
    let (mut heard, mut cuts) = (0, 0);
    let mut last: Option<String> = None;
    let mut numbers = std::collections::BTreeMap::<String, u64>::new();
    while !stop.load(Ordering::Relaxed) {
        let mut following = Following::open(node, way, last.as_deref());
        let greeting = following.next().unwrap();
        assert_eq!(greeting.kind, "ready", "{way:?}: too much was missed");
        for _ in 0..200 + rng.below(3000) {
            let Some(event) = following.next() else { break };
            assert_eq!(event.kind, "change");
            let key = event.data["key"].as_str().unwrap().to_owned();
            let number = number_of(&event);
            let before = numbers.insert(key, number);
            assert!(before.is_none_or(|before| number == before + 1), "{way:?}: {before:?}, then {number}");
            (heard, last) = (heard + 1, Some(event.id));
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        cuts += 1;
    }
    (heard, cuts)
}

#[test]
#[ignore = "minutes: just endurance"]
fn ten_minutes_of_events_have_no_gap_and_leave_memory_flat() {
    let length = Duration::from_secs(number("LARDER_TEST_SECONDS", 600));
    let node = Larder::new("a").set("log.level", "info").start();
    let stop = AtomicBool::new(false);
    let (samples, followed, written) = std::thread::scope(|scope| {
        let (node, stop) = (&node, &stop);
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                scope.spawn(move || {
                    let numbers = (1..).take_while(|_| !stop.load(Ordering::Relaxed));
                    let put = |number| assert!(label(node, &format!("thing {writer}"), number).is_success());
                    u64::try_from(numbers.map(put).count()).unwrap()
                })
            })
            .collect();
        let followers: Vec<_> = [Way::Events, Way::Socket]
            .into_iter()
            .cycle()
            .zip(0..6)
            .map(|(way, seed)| scope.spawn(move || follow(node, way, seed, stop)))
            .collect();
        // some that never take what they are sent
        let _deaf: Vec<_> = [Way::Events, Way::Socket].map(|way| Following::open(node, way, None)).into();
        let begun = Instant::now();
        let mut samples = Vec::new();
        while begun.elapsed() < length && !followers.iter().any(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_secs(1));
            samples.push((begun.elapsed().as_secs_f64(), node.rss() as f64));
        }
        stop.store(true, Ordering::Relaxed);
        let followed: Vec<_> = followers.into_iter().map(|follower| follower.join().unwrap()).collect();
        (samples, followed, writers.into_iter().map(|writer| writer.join().unwrap()).sum::<u64>())
    });
    let memory = slope(&samples[samples.len() / 3..]);
    println!(
        "{length:?}: {written} changes, {} events heard, {} cuts, no gap; memory grows {:.1} KiB a minute, {:.0} MiB \
         at the end",
        followed.iter().map(|(heard, _)| heard).sum::<u64>(),
        followed.iter().map(|(_, cuts)| cuts).sum::<u64>(),
        memory * 60.0 / 1024.0,
        samples.last().map_or(0.0, |(_, bytes)| *bytes) / MIB as f64
    );
    assert!(memory * 60.0 < 2.0 * MIB as f64);
}

/// So many clients ask for what is held and what is not, somebody writes, somebody reads long lists, and from outside
/// the index is locked for three seconds: no download sees any of it.
fn a_crowd_and_a_lock(clients: usize, rounds: usize) {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let things: Vec<_> = (0..40)
        .map(|n| {
            let script = Script::new(2000 + n).seed(n + 1);
            (script.clone(), origin.serve(&format!("/crowd/{n}"), script))
        })
        .collect();
    let (held, _) = things.split_at(20);
    for (script, url) in held {
        a.get(url).assert_whole(script);
    }
    let (stop, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (a, stop, asked, things) = (&a, &stop, &asked, &things);
        let downloads: Vec<_> = (0..clients)
            .map(|client| {
                scope.spawn(move || {
                    for round in 0..rounds {
                        let (script, url) = &things[(client * 7 + round) % things.len()];
                        a.get(url).assert_whole(script);
                        asked.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let writer = scope.spawn(move || {
            let numbers = (1..).take_while(|_| !stop.load(Ordering::Relaxed));
            numbers.filter(|number| label(a, "crowd", *number).is_success()).count()
        });
        let lists = scope.spawn(move || {
            let list =
                || a.admin_ask("GET", "/api/v1/blobs?limit=10000&select=*,resources(*)").send().status == 200;
            std::iter::repeat_with(list)
                .take_while(|_| !stop.load(Ordering::Relaxed))
                .filter(|good| *good)
                .count()
        });
        wait_until("the crowd to be there", || asked.load(Ordering::Relaxed) > clients as u64 / 4);
        for file in ["index.db", "state.db"] {
            let outside = rusqlite::Connection::open(a.state_dir().join(file)).unwrap();
            outside.busy_timeout(Duration::from_secs(10)).unwrap();
            outside.execute_batch("BEGIN EXCLUSIVE").unwrap();
            std::thread::sleep(Duration::from_secs(3));
            outside.execute_batch("COMMIT").unwrap();
        }
        downloads.into_iter().for_each(|download| download.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        let (writes, lists) = (writer.join().unwrap(), lists.join().unwrap());
        println!(
            "{clients} clients, {} downloads, all whole; {writes} writes, {lists} lists",
            asked.load(Ordering::Relaxed)
        );
        assert!(writes > 0 && lists > 0);
    });
}

#[test]
fn thirty_clients_see_nothing_of_a_lock_from_outside() {
    a_crowd_and_a_lock(30, 20);
}

#[test]
#[ignore = "a minute: just endurance"]
fn three_hundred_clients_see_nothing_of_a_lock_from_outside() {
    a_crowd_and_a_lock(300, 60);
}
