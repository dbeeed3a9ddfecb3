//! Bytes that change by themselves or by somebody's hand: found, taken away, told of, and got again.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::alone;
use crate::support::chaos::{flip_bit, truncate};
use crate::support::{Larder, MIB, Origin, Script, Site, wait_until};

/// What can become of a file.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 6] = [
    ("cut short", |path| truncate(path, path.metadata().unwrap().len() - 1)),
    ("empty", |path| truncate(path, 0)),
    ("zeroed", |path| {
        let size = path.metadata().unwrap().len();
        truncate(path, 0);
        truncate(path, size);
    }),
    ("replaced", |path| {
        let other = path.with_extension("other");
        std::fs::write(&other, vec![7; path.metadata().unwrap().len() as usize]).unwrap();
        std::fs::rename(other, path).unwrap();
    }),
    ("closed to everybody", |path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    }),
    ("deleted", |path| std::fs::remove_file(path).unwrap()),
];

#[test]
fn s08_no_damage_leaves_as_a_complete_answer() {
    let site = Site::new();
    let origin = Origin::start();
    let (mut a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.expect_damage();
    a.meets(&b);
    for (n, (what, damage)) in DAMAGES.iter().enumerate() {
        // up to 64 MiB nothing goes out before the proof, beyond that all but the tail
        for (size, who) in [(100_000, "small"), (65 * MIB, "large")] {
            if who == "large" && *what != "zeroed" {
                continue;
            }
            let script = Script::new(size).seed(n as u64 * 2 + size);
            let url = origin.serve(&format!("/{n}-{who}.bin"), script.clone());
            a.get(&url).assert_whole(&script);
            damage(&a.wait_for_blob(&script.digest()));
            let neighbour = b.ask(&url).field("Larder-Digest", &script.digest()).send();
            assert!(!neighbour.is_success() || neighbour.body == script.body(), "{what}: {who}");
            let answer = a.get(&url);
            assert!(!answer.is_success() || answer.body == script.body(), "{what}: {who}");
            wait_until("the blob healed", || {
                let again = a.get(&url);
                assert!(!again.is_success() || again.body == script.body(), "{what}: {who}");
                again.is_success() && again.is_hit()
            });
        }
    }
    a.verify_all_blobs();
    assert!(b.bans().is_empty() && a.bans().is_empty());
}

#[test]
fn s08_the_scrub_finds_what_nobody_reads_and_gets_it_again() {
    let origin = Origin::start();
    let mut a = Larder::new("a").set("cache.scrub_every", "1s").set("cache.scrub_rate", "50MB").start();
    a.expect_damage();
    let scripts: Vec<_> = (1..=5).map(|n| Script::new(300_000).seed(n)).collect();
    for script in &scripts {
        a.get(&origin.serve(&format!("/{}.bin", script.seed), script.clone())).assert_whole(script);
        a.wait_for_blob(&script.digest());
    }
    let hex = scripts[2].digest().trim_start_matches("sha256:").to_owned();
    flip_bit(&a.blob_path(&scripts[2].digest()), 77);
    wait_until("the damage to be found", || a.count("/cache/damaged") == 1);
    wait_until("the blob to be there again", || {
        std::fs::read(a.blob_path(&scripts[2].digest())).is_ok_and(|bytes| bytes == scripts[2].body())
    });
    assert_eq!(origin.gets("/3.bin").len(), 2, "nobody but the scrub asked for it");
    let aside = a.cache_dir().join("quarantine").join(&hex);
    assert_eq!(std::fs::read(&aside).unwrap().len(), 300_000, "what was found is kept for a look");
    assert!(a.log().lines().any(|line| line.contains("ERROR") && line.contains(&hex)), "{}", a.log());
    assert!(a.get(&origin.url("/3.bin")).assert_whole(&scripts[2]).is_hit());
    wait_until("a clean pass to end the trouble", || a.status()["health"]["status"] == "ok");
    a.verify_all_blobs();
}

#[test]
fn s08_a_scrub_goes_on_where_the_last_run_stopped() {
    let (origin, mut a) = alone();
    let script = Script::new(50_000);
    a.get(&origin.serve("/f.bin", script.clone())).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    a.stop();
    // as a run leaves it that was stopped beyond this blob
    let database = rusqlite::Connection::open(a.state_dir().join("state.db")).unwrap();
    let cursor = format!("1000 {}", "f".repeat(64));
    database.execute("INSERT OR REPLACE INTO settings (name, value) VALUES ('scrub', ?1)", [cursor]).unwrap();
    drop(database);
    a.start_again();
    wait_until("the pass to end", || a.log().contains("everything that is kept was read again"));
    a.stop();
    let database = rusqlite::Connection::open(a.state_dir().join("state.db")).unwrap();
    let kept: String =
        database.query_row("SELECT value FROM settings WHERE name = 'scrub'", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, "1000 over", "it was not begun anew");
}
