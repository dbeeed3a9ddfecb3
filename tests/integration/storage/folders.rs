//! Folders and filesystems the store must live with: no inodes, other filesystems, meddlers, many files.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::alone;
use crate::support::chaos::{Tmpfs, disk_usage};
use crate::support::{Larder, MIB, Origin, Script, Site, sha256, wait_until};

#[test]
fn s11_a_filesystem_without_inodes_costs_the_client_nothing_and_gets_them_back() {
    let Some(disk) = Tmpfs::mount("size=64m,nr_inodes=160") else { return };
    let origin = Origin::start();
    let a = Larder::new("a").cache_dir(&disk.path().join("cache")).set("cache.min_free", "0").start();
    // each takes a file and mostly a folder
    let scripts: Vec<_> = (1..=120).map(|n| Script::new(2000).seed(n)).collect();
    let url = |script: &Script| origin.serve(&format!("/{}.bin", script.seed), script.clone());
    for script in &scripts {
        a.get(&url(script)).assert_whole(script);
    }
    wait_until("the last of them in the store", || a.blob_path(&scripts[119].digest()).exists());
    println!("{} of 120 blobs are held where 160 files and folders fit", a.blobs().len());
    assert!(a.blobs().len() < 120, "the oldest gave their inodes");
    // Somebody else takes all that is left.
    let others: Vec<_> = (0..200)
        .map(|n| disk.path().join(format!("other-{n}")))
        .take_while(|path| std::fs::write(path, "").is_ok())
        .collect();
    let late: Vec<_> = (200..210).map(|n| Script::new(2000).seed(n)).collect();
    for script in &late {
        a.get(&url(script)).assert_whole(script);
    }
    others.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    wait_until("caching to resume", || {
        a.get(&url(&late[9])).assert_whole(&late[9]);
        a.blob_path(&late[9].digest()).exists()
    });
    wait_until("health to be well again", || a.status()["health"]["status"] == "ok");
}

#[test]
fn s12_a_folder_of_somebody_else_is_a_trouble_and_no_failure() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can run a node as somebody else");
    }
    let disk = tempfile::tempdir().unwrap();
    let roots = disk.path().join("roots");
    std::fs::create_dir(&roots).unwrap();
    std::fs::set_permissions(&roots, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut a = Larder::new("a")
        .cache_dir(&roots.join("cache"))
        .wrapped(&["setpriv", "--reuid=65534", "--clear-groups", "--"])
        .ready_to_start();
    std::os::unix::fs::chown(a.home(), Some(65534), None).unwrap();
    std::os::unix::fs::chown(disk.path(), Some(65534), None).unwrap();
    // it serves, though `/readyz` says that there is no disk
    a.spawn();
    wait_until("the doors", || crate::support::daemon::accepts(a.proxy()));
    let origin = Origin::start();
    let script = Script::new(100_000);
    for n in 0..5 {
        let url = origin.serve(&format!("/{n}.bin"), script.clone());
        a.get(&url).assert_whole(&script);
    }
    let health = a.status()["health"].clone();
    assert_eq!(health["status"], "no-disk", "{health}");
    let loud = a.log().lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count();
    assert_eq!(loud, 1, "one warning, not one a request:\n{}", a.log());
}

#[test]
fn s14_temporary_files_lie_where_the_blobs_do() {
    let (Some(temporary), Some(disk)) = (Tmpfs::mount("size=1m"), Tmpfs::mount("size=64m")) else { return };
    let origin = Origin::start();
    let place = format!("TMPDIR={}", temporary.path().display());
    let a = Larder::new("a").cache_dir(&disk.path().join("cache")).wrapped(&["env", &place]).start();
    let script = Script::new(8 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    wait_until("the blob", || a.blob_path(&script.digest()).exists());
    assert!(a.get(&url).assert_whole(&script).is_hit());
    assert_eq!(disk_usage(temporary.path()), 0);
}

#[test]
fn s19_what_is_handed_out_is_no_link_to_the_blob_and_meddling_is_seen() {
    let (origin, mut a) = alone();
    a.expect_damage();
    let script = Script::new(300_000);
    let url = origin.serve("/f.bin", script.clone());
    let handed = a.home().join("handed");
    a.cli(&["get", &url, "-o", handed.to_str().unwrap()]).assert_code(0);
    let blob = a.wait_for_blob(&script.digest());
    std::fs::OpenOptions::new().append(true).open(&handed).unwrap().write_all(b"mine").unwrap();
    assert_eq!(sha256(&std::fs::read(&blob).unwrap()), script.digest().trim_start_matches("sha256:"));
    let about = blob.metadata().unwrap();
    assert_eq!((about.nlink(), about.permissions().mode() & 0o777), (1, 0o444));
    // The owner can write all the same, and is seen.
    std::fs::set_permissions(&blob, std::fs::Permissions::from_mode(0o644)).unwrap();
    a.get(&url).assert_whole(&script);
    std::fs::write(&blob, b"something else").unwrap();
    a.get(&url).assert_whole(&script);
    wait_until("the blob healed", || a.get(&url).assert_whole(&script).is_hit());
    a.verify_all_blobs();
}

#[test]
fn s24_a_store_of_many_blobs_opens_its_doors_at_once() {
    let count: u64 = std::env::var("LARDER_TEST_BLOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let mut a = Larder::new("a").set("cache.max_size", "100GiB").ready_to_start();
    let mut content = [0; 1024];
    for n in 0..count {
        content[..8].copy_from_slice(&n.to_le_bytes());
        let path = a.blob_path(&format!("sha256:{}", sha256(&content)));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let origin = Origin::start();
    let script = Script::new(50_000);
    let url = origin.serve("/f.bin", script.clone());
    let start = Instant::now();
    a.start_again();
    a.get(&url).assert_whole(&script);
    println!("the first answer {:?} after the start over {count} unknown blobs", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(20));
    let mut slowest = Duration::ZERO;
    let guard = Instant::now();
    while a.count("/cache/blobs") < count + 1 {
        assert!(guard.elapsed() < Duration::from_secs(120 + count / 1000), "{}", a.status()["cache"]);
        slowest = slowest.max(a.get(&url).assert_whole(&script).took);
    }
    println!("all known {:?} after the start; the slowest hit meanwhile took {slowest:?}", start.elapsed());
    assert_eq!((a.count("/cache/blobs"), a.count("/cache/bytes")), (count + 1, count * 1024 + 50_000));
    assert!(slowest < Duration::from_secs(5));
    a.restart();
    assert_eq!(a.count("/cache/blobs"), count + 1, "and none is counted twice");
}

#[test]
fn s26_a_lower_limit_holds_after_a_reload_and_serving_goes_on() {
    let (origin, a) = alone();
    let scripts: Vec<_> = (1..=8).map(|n| Script::new(MIB).seed(n)).collect();
    let url = |script: &Script| origin.serve(&format!("/{}.bin", script.seed), script.clone());
    for script in &scripts {
        a.get(&url(script)).assert_whole(script);
        a.wait_for_blob(&script.digest());
    }
    let mut reader = a.ask(&url(&scripts[0])).open();
    reader.read_to(1000);
    let text = std::fs::read_to_string(a.config_file()).unwrap();
    std::fs::write(a.config_file(), text.replace("[cache]", "[cache]\nmax_size = \"3MiB\"")).unwrap();
    a.signal(Signal::HUP);
    wait_until("the new limit", || disk_usage(&a.cache_dir().join("blobs")) <= 3 * MIB);
    assert!(!a.blobs().is_empty(), "no more goes than must");
    reader.rest().assert_whole(&scripts[0]);
    a.get(&url(&scripts[7])).assert_whole(&scripts[7]);
}

#[test]
fn s12_a_state_folder_that_refuses_costs_the_neighbours_and_not_the_downloads() {
    let (site, origin) = (Site::new(), Origin::start());
    let b = Larder::new("b").peers(&site).start();
    let mut a = Larder::new("a").peers(&site).ready_to_start();
    // as a full disk does, between two other writes: the count of starts cannot be written
    let in_its_way = a.state_dir().join("boot.new");
    std::fs::create_dir_all(&in_its_way).unwrap();
    std::fs::set_permissions(a.state_dir(), std::fs::Permissions::from_mode(0o700)).unwrap();
    a.spawn();
    a.wait_ready();
    wait_until("it to say so", || a.status()["health"]["status"] == "degraded");
    for n in 0..3 {
        let script = Script::new(100_000).seed(n);
        a.get(&origin.serve(&format!("/{n}.bin"), script.clone())).assert_whole(&script);
    }
    assert!(a.peers().is_empty());
    std::fs::remove_dir(&in_its_way).unwrap();
    a.meets(&b);
    wait_until("health to be well again", || a.status()["health"]["status"] == "ok");
}
