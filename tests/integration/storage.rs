//! The store under stress: full disks, damage, limits, two daemons, an axe in the cache folder.

mod folders;
mod rot;

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::support::chaos::{Tmpfs, disk_usage, files_under, flip_bit, truncate};
use crate::support::{Ending, Larder, MIB, Origin, Rng, Script, Site, at_once, wait_until};

fn alone() -> (Origin, Larder) {
    (Origin::start(), Larder::new("a").start())
}

#[test]
fn s01_a_full_disk_costs_the_client_nothing() {
    let Some(disk) = Tmpfs::mount("size=4m") else { return };
    let origin = Origin::start();
    let a = Larder::new("a").cache_dir(&disk.path().join("cache")).set("cache.min_free", "0").start();
    let script = Script::new(10 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    wait_until("the space given back", || disk_usage(disk.path()) < MIB);
    assert!(!a.blob_path(&script.digest()).exists());
    let health = a.status()["health"].clone();
    assert_ne!(health["status"], "ok", "{health}");
    // Space comes back, and caching with it (s02).
    let small = Script::new(MIB).seed(2);
    let url = origin.serve("/small.bin", small.clone());
    a.get(&url).assert_whole(&small);
    wait_until("caching to resume", || {
        a.get(&url).assert_whole(&small);
        a.blob_path(&small.digest()).exists()
    });
    assert!(a.get(&url).assert_whole(&small).is_hit());
}

#[test]
fn s01_a_disk_that_fills_while_a_neighbour_is_read_costs_the_client_nothing() {
    let Some(disk) = Tmpfs::mount("size=48m") else { return };
    let (site, origin) = (Site::new(), Origin::start());
    let a = Larder::new("a").peers(&site).start();
    let b = Larder::new("b").peers(&site).cache_dir(&disk.path().join("cache")).set("cache.min_free", "0");
    let b = b.start();
    a.meets(&b);
    let script = Script::new(24 * MIB + 5).hold_at(8 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut leading = a.ask(&url).open();
    leading.read_to(MIB);
    let mut reading = b.ask(&url).open();
    reading.read_to(4 * MIB);
    // another program takes what was promised to the download
    let mut filler = std::fs::File::create(disk.path().join("filler")).unwrap();
    let error = std::io::copy(&mut std::io::repeat(1), &mut filler).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    origin.release("/f.bin");
    reading.rest().assert_whole(&script);
    leading.rest().assert_whole(&script);
    assert_eq!(b.status()["health"]["status"], "degraded");
}

#[test]
fn s02_caching_resumes_when_space_is_freed() {
    let Some(disk) = Tmpfs::mount("size=6m") else { return };
    let origin = Origin::start();
    let a = Larder::new("a").cache_dir(&disk.path().join("cache")).set("cache.min_free", "0").start();
    let filler = disk.path().join("filler");
    let room = 5 * MIB + MIB / 2 - disk_usage(disk.path());
    std::fs::write(&filler, vec![0; room as usize]).unwrap();
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    assert!(!a.blob_path(&script.digest()).exists());
    std::fs::remove_file(&filler).unwrap();
    wait_until("caching to resume", || {
        a.get(&url).assert_whole(&script);
        a.blob_path(&script.digest()).exists()
    });
    assert!(a.get(&url).assert_whole(&script).is_hit());
    wait_until("health to be well again", || a.status()["health"]["status"] == "ok");
}

#[test]
fn s03_the_limit_holds_while_many_fill_it() {
    let origin = Origin::start();
    let a = Larder::new("a").set("cache.max_size", "6MiB").start();
    let most = std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let cache = a.cache_dir().to_owned();
        let watch = scope.spawn(move || {
            let mut most = 0;
            while stopped.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
                most = most.max(disk_usage(&cache));
            }
            most
        });
        at_once(24, |n| {
            let script = Script::new(MIB).seed(n as u64 + 1);
            let url = origin.serve(&format!("/{n}.bin"), script.clone());
            a.get(&url).assert_whole(&script);
        });
        drop(stop);
        watch.join().unwrap()
    });
    println!("at most {} KiB on disk with a limit of 6 MiB", most >> 10);
    assert!(most <= 7 * MIB + MIB / 2, "{most}");
    wait_until("the limit", || disk_usage(&a.cache_dir().join("blobs")) <= 6 * MIB);
    assert!(!a.blobs().is_empty());
}

#[test]
fn s04_a_file_larger_than_the_cache_passes_through() {
    let origin = Origin::start();
    let a = Larder::new("a").set("cache.max_size", "2MiB").start();
    let kept = Script::new(500_000);
    let kept_url = origin.serve("/kept.bin", kept.clone());
    a.get(&kept_url).assert_whole(&kept);
    a.wait_for_blob(&kept.digest());
    for (path, script) in
        [("/big.bin", Script::new(5 * MIB).seed(2)), ("/chunked.bin", Script::new(5 * MIB).seed(3).chunked())]
    {
        a.get(&origin.serve(path, script.clone())).assert_whole(&script);
    }
    assert!(a.get(&kept_url).assert_whole(&kept).is_hit(), "nothing was evicted for it");
    assert_eq!(a.blobs().len(), 1);
}

#[test]
fn s05_after_kill_9_every_visible_blob_is_true() {
    let origin = Origin::start();
    let mut a = Larder::new("a").start();
    let mut rng = Rng::new("s05");
    // new bytes each time: what is cut off in one round must not be complete by what an earlier one left
    let rounds: Vec<Vec<_>> = (0..10)
        .map(|round| (0..6).map(|n| Script::new(MIB + n * 1000).seed(round * 6 + n + 1)).collect())
        .collect();
    for (round, scripts) in rounds.iter().enumerate() {
        let urls: Vec<_> = scripts
            .iter()
            .enumerate()
            .map(|(n, script)| origin.serve(&format!("/{round}-{n}.bin"), script.clone().rate(20 * MIB)))
            .collect();
        let pause = Duration::from_millis(rng.below(120));
        std::thread::scope(|scope| {
            for url in &urls {
                let ask = a.ask(url);
                scope.spawn(move || drop(ask.try_send()));
            }
            std::thread::sleep(pause);
            a.signal(rustix::process::Signal::KILL);
        });
        a.wait_exit();
        a.verify_all_blobs();
        a.start_again();
        for (url, script) in urls.iter().zip(scripts) {
            a.get(url).assert_whole(script);
        }
        for script in scripts {
            a.wait_for_blob(&script.digest());
        }
    }
    wait_until("no partial file left", || files_under(&a.cache_dir().join("staging")).is_empty());
}

#[test]
fn s07_a_blob_that_is_too_short_is_found_before_the_head_goes_out() {
    for length in [0, 1000] {
        let (origin, mut a) = alone();
        a.expect_damage();
        let script = Script::new(200_000);
        let url = origin.serve("/f.bin", script.clone());
        a.get(&url).assert_whole(&script);
        truncate(&a.wait_for_blob(&script.digest()), length);
        a.get(&url).assert_whole(&script);
        wait_until("the blob healed", || a.get(&url).assert_whole(&script).is_hit());
        assert_eq!(origin.gets("/f.bin").len(), 2);
        a.verify_all_blobs();
    }
}

#[test]
fn s08_a_flipped_bit_never_reaches_anybody_as_a_whole_body() {
    let site = Site::new();
    let origin = Origin::start();
    let (mut a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.expect_damage();
    a.meets(&b);
    let mut rng = Rng::new("s08");
    for (n, size) in [(1, 10_000), (2, 2 * MIB)] {
        let script = Script::new(size).seed(n);
        let path = format!("/{n}.bin");
        let url = origin.serve(&path, script.clone());
        a.get(&url).assert_whole(&script);
        flip_bit(&a.wait_for_blob(&script.digest()), rng.below(size));
        let neighbour = b.ask(&url).field("Larder-Digest", &script.digest()).send();
        if neighbour.is_success() {
            neighbour.assert_whole(&script);
        }
        let answer = a.get(&url);
        assert!(!answer.is_success() || answer.body == script.body(), "a wrong body ended well");
        wait_until("the blob healed", || {
            let again = a.get(&url);
            assert!(!again.is_success() || again.body == script.body());
            again.is_success() && again.is_hit()
        });
        a.verify_all_blobs();
        assert!(b.get(&url).assert_whole(&script).is_success());
        assert!(b.bans().is_empty() && a.bans().is_empty());
    }
}

#[test]
fn s08_verify_finds_and_repairs_rot() {
    let (origin, mut a) = alone();
    a.expect_damage();
    let scripts: Vec<_> = (1..4).map(|n| Script::new(50_000).seed(n)).collect();
    for script in &scripts {
        a.get(&origin.serve(&format!("/{}.bin", script.seed), script.clone())).assert_whole(script);
        a.wait_for_blob(&script.digest());
    }
    a.cli(&["verify", "--all"]).assert_code(0);
    flip_bit(&a.blob_path(&scripts[1].digest()), 777);
    let found = a.cli(&["verify", "--all"]);
    assert_ne!(found.code, 0, "{}", found.said());
    a.cli(&["verify", "--all", "--repair"]);
    a.cli(&["verify", "--all"]).assert_code(0);
    a.verify_all_blobs();
}

#[test]
fn s09_a_download_that_failed_is_not_known_as_complete() {
    let (origin, mut a) = alone();
    let script = Script::new(MIB).cut_always(MIB / 2).ranges(crate::support::Ranges::Ignored);
    let url = origin.serve("/f.bin", script);
    assert_eq!(a.get(&url).ending, Ending::Truncated);
    assert_eq!(a.count("/cache/blobs"), 0);
    a.stop();
    let index = rusqlite::Connection::open(a.state_dir().join("index.db")).unwrap();
    let table: String = index
        .query_row("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'blob%'", [], |row| {
            row.get(0)
        })
        .unwrap();
    let blobs: i64 = index.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
    assert_eq!(blobs, 0);
    drop(index);
    a.start_again();
    assert_eq!(a.count("/cache/blobs"), 0);
}

#[test]
fn s15_readers_finish_although_their_blob_is_deleted() {
    let (origin, a) = alone();
    let script = Script::new(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    let path = a.wait_for_blob(&script.digest());
    let mut readers: Vec<_> = (0..3).map(|_| a.ask(&url).open()).collect();
    for reader in &mut readers {
        assert!(reader.read_to(1000) >= 1000);
    }
    a.cli(&["rm", &script.digest()]).assert_code(0);
    assert!(!path.exists());
    for reader in readers {
        reader.rest_slowly(MIB, Duration::from_millis(5)).assert_whole(&script);
    }
    assert!(!a.get(&url).assert_whole(&script).is_hit(), "a new request is a miss");
    assert_eq!(origin.gets("/f.bin").len(), 2);
}

#[test]
fn s15_readers_finish_although_their_blob_is_evicted() {
    let origin = Origin::start();
    let a = Larder::new("a").set("cache.max_size", "5MiB").start();
    let script = Script::new(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let mut reader = a.ask(&url).open();
    reader.read_to(1000);
    for n in 2..6 {
        let other = Script::new(2 * MIB).seed(n);
        a.get(&origin.serve(&format!("/{n}.bin"), other.clone())).assert_whole(&other);
    }
    reader.rest().assert_whole(&script);
}

#[test]
fn the_last_copy_of_the_site_stays_longest() {
    let (origin, site) = (Origin::start(), Site::new());
    let a = Larder::new("a").peers(&site).set("cache.max_size", "4MiB").start();
    let mut b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let of = |seed| Script::new(MIB + MIB / 4).seed(seed);
    let (last, shared, private, more) = (of(1), of(2), of(3).authorization("Bearer anna"), of(4));
    let fetch = |node: &Larder, path: &str, script: &Script| {
        let ask = node.ask(&origin.serve(path, script.clone())).field("Authorization", "Bearer anna");
        let ask = if path.starts_with("/v2") { ask } else { node.ask(&origin.url(path)) };
        ask.send().assert_whole(script);
        node.wait_for_blob(&script.digest());
    };
    fetch(&a, "/last", &last);
    // of the two that b holds it tells of one: the other is for those whom the origin lets in
    let guarded = format!("/v2/team/app/blobs/{}", private.digest());
    fetch(&b, &guarded, &private);
    fetch(&a, &guarded, &private);
    fetch(&b, "/shared", &shared);
    fetch(&a, "/shared", &shared);
    b.restart();
    wait_until("what b holds to be told", || a.log().contains("told what it holds"));
    fetch(&a, "/more", &more);
    assert!(!a.blob_path(&shared.digest()).exists(), "a neighbour has it: it goes first");
    assert!(a.blob_path(&last.digest()).exists(), "used longest ago, and the last copy of the site");
    assert!(a.blob_path(&private.digest()).exists(), "nothing is told of what is guarded");
}

#[test]
fn s21_an_emptied_cache_folder_is_made_again() {
    let (origin, mut a) = alone();
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    std::thread::scope(|scope| {
        for client in 0..5 {
            let (a, origin) = (&a, &origin);
            scope.spawn(move || {
                for n in 0..10 {
                    let own = Script::new(20_000).seed(100 + n);
                    let path = format!("/{client}-{n}.bin");
                    a.get(&origin.serve(&path, own.clone())).assert_whole(&own);
                }
            });
        }
        for entry in std::fs::read_dir(a.cache_dir()).unwrap() {
            let path = entry.unwrap().path();
            drop(std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)));
        }
    });
    wait_until("caching again", || {
        a.get(&url).assert_whole(&script);
        a.blob_path(&script.digest()).exists()
    });
    assert!(a.get(&url).assert_whole(&script).is_hit());
    a.restart();
    assert!(a.get(&url).assert_whole(&script).is_hit());
}

#[test]
fn s22_a_second_daemon_on_the_same_folder_is_refused() {
    let (origin, a) = alone();
    let mut second = Larder::new("b").cache_dir(a.cache_dir()).ready_to_start();
    second.spawn();
    let status = second.wait_exit();
    assert!(!status.success());
    let said = second.log();
    assert!(said.contains(a.cache_dir().to_str().unwrap()), "names the folder: {said}");
    assert!(said.contains(&a.pid().to_string()), "names the process: {said}");
    let script = Script::new(1000);
    a.get(&origin.serve("/f.bin", script.clone())).assert_whole(&script);
}

#[test]
fn blobs_are_read_only_in_folders_for_the_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let (origin, a) = alone();
    let script = Script::new(1000);
    a.get(&origin.serve("/f.bin", script.clone())).assert_whole(&script);
    let path = a.wait_for_blob(&script.digest());
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o444);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&a.cache_dir().join("blobs")), 0o700);
    assert_eq!(mode(&a.state_dir().join("admin.token")), 0o600);
    assert_eq!(mode(&a.state_dir().join("identity.key")), 0o600);
}

#[test]
fn a_lost_or_damaged_index_is_made_again_while_serving() {
    let (origin, mut a) = alone();
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    for damage in ["garbage", "gone"] {
        a.stop();
        for file in
            files_under(&a.state_dir()).iter().filter(|file| file.to_string_lossy().contains("index.db"))
        {
            match damage {
                "gone" => std::fs::remove_file(file).unwrap(),
                _ => std::fs::write(file, b"this is no database at all").unwrap(),
            }
        }
        a.start_again();
        a.get(&url).assert_whole(&script);
        wait_until("the blob to be known again", || a.count("/cache/blobs") == 1);
        let by_digest = format!("/@{}/http/{}/other.bin", script.digest(), origin.address());
        a.door(&by_digest).send().assert_whole(&script);
    }
}
