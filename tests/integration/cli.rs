//! The command line as people and scripts use it: `get` above all, exit codes, words on the right stream.

use crate::support::daemon::{bare_command, larder, run};
use crate::support::{Larder, MIB, Origin, Ranges, Script, Site, sha256};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn get_downloads_verifies_and_says_so_by_its_exit_code() {
    let (origin, home) = (Origin::start(), folder());
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    let out = home.path().join("out.bin");
    let out_text = out.to_str().unwrap();
    larder(home.path(), &["get", &url, "-o", out_text, "--no-peers"]).assert_code(0);
    assert!(std::fs::read(&out).unwrap() == script.body());
    assert!(!home.path().join("out.bin.part").exists());
    let right = script.digest();
    larder(home.path(), &["get", &url, "-o", out_text, "--digest", &right, "--no-peers"]).assert_code(0);
    let wrong = format!("sha256:{}", sha256(b"other"));
    let other = home.path().join("other.bin");
    let refused =
        larder(home.path(), &["get", &url, "-o", other.to_str().unwrap(), "--digest", &wrong, "--no-peers"]);
    let refused = refused.assert_code(4);
    assert!(
        refused.stderr.starts_with("larder: ") || refused.stderr.contains("\nlarder: "),
        "{}",
        refused.stderr
    );
    assert!(!other.exists(), "nothing that is wrong gets the name");
}

#[test]
fn get_takes_a_digest_in_front_of_the_url() {
    let (origin, home) = (Origin::start(), folder());
    let script = Script::new(50_000);
    let url = origin.serve("/f.bin", script.clone());
    let hex = sha256(&script.body());
    for stated in [hex.clone(), format!("sha256:{hex}")] {
        let argument = format!("{stated}@{url}");
        let ran = larder(home.path(), &["get", &argument, "-o", "-", "--no-peers"]).assert_code(0);
        assert!(ran.bytes == script.body());
    }
    let wrong = format!("{}@{url}", sha256(b"other"));
    let ran = larder(home.path(), &["get", &wrong, "-o", "-", "--no-peers"]).assert_code(4);
    assert!(ran.bytes.is_empty(), "nothing goes out before the proof");
}

#[test]
fn get_resumes_a_part_file() {
    let (origin, home) = (Origin::start(), folder());
    let script = Script::new(2 * MIB).ranges(Ranges::Honoured).cut_always(MIB / 2 + 1);
    let url = origin.serve("/f.bin", script.clone());
    let out = home.path().join("f.bin");
    let mut command = bare_command(crate::support::daemon::BINARY, home.path());
    command.args(["get", &url, "--no-peers", "-O", home.path().to_str().unwrap()]);
    if run(command).code != 0 {
        origin.serve("/f.bin", Script::new(2 * MIB));
        larder(home.path(), &["get", &url, "--no-peers", "-o", out.to_str().unwrap()]).assert_code(0);
    }
    assert!(std::fs::read(&out).unwrap() == script.body());
    assert!(
        origin.gets("/f.bin").iter().any(|seen| seen.field("Range").is_some_and(|range| range != "bytes=0-"))
    );
}

#[test]
fn get_tells_failures_apart() {
    let (origin, home) = (Origin::start(), folder());
    let get = |url: &str| larder(home.path(), &["get", url, "-o", "x", "--no-peers"]);
    get(&origin.url("/missing")).assert_code(3);
    get(&origin.url("/gone?status=410")).assert_code(3);
    get("http://127.0.0.1:1/nothing").assert_code(5);
    get("not a url at all").assert_code(2);
    larder(home.path(), &["get", "--no-such-option"]).assert_code(2);
    larder(home.path(), &["no-such-command"]).assert_code(2);
    larder(home.path(), &["run", "--config", "/nonexistent/larder.toml"]).assert_code(78);
    assert!(!home.path().join("x").exists());
}

#[test]
fn get_through_a_daemon_fills_its_store() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    let out = a.home().join("out.bin");
    a.cli(&["get", &url, "-o", out.to_str().unwrap()]).assert_code(0);
    assert!(std::fs::read(&out).unwrap() == script.body());
    a.wait_for_blob(&script.digest());
    let told = a.cli(&["get", &url, "-o", out.to_str().unwrap(), "--json"]).assert_code(0);
    serde_json::from_str::<serde_json::Value>(&told.stdout).unwrap();
    assert_eq!(origin.gets("/f.bin").len(), 1);
    // The file is the user's own: writing to it changes no blob.
    std::fs::write(&out, b"mine").unwrap();
    a.verify_all_blobs();
}

#[test]
fn what_is_held_is_handed_to_get_as_a_file_of_its_own() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::MetadataExt as _;
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(9 * MIB + 7);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    let blob = a.wait_for_blob(&script.digest());
    let given = || a.count("/traffic/bytes_to_clients");
    let (before, out) = (given(), a.home().join("out.bin"));
    let get = |more: &[&str]| a.cli(&[&["get", &url, "-o", out.to_str().unwrap(), "--json"], more].concat());
    let told: serde_json::Value = serde_json::from_str(&get(&[]).assert_code(0).stdout).unwrap();
    assert_eq!((told[0]["source"].as_str(), told[0]["size"].as_u64()), (Some("cache"), Some(script.size)));
    assert!(std::fs::read(&out).unwrap() == script.body());
    assert_eq!(a.log().matches("handed a file over").count(), 1);
    assert_eq!(given() - before, script.size, "it counts as delivered");
    // the file is the user's own: another inode, one name, and writing to it changes no blob
    let (mine, theirs) = (std::fs::metadata(&out).unwrap(), std::fs::metadata(&blob).unwrap());
    assert_ne!((mine.dev(), mine.ino()), (theirs.dev(), theirs.ino()));
    assert_eq!((mine.nlink(), theirs.nlink(), theirs.mode() & 0o777), (1, 1, 0o444));
    std::fs::write(&out, b"mine").unwrap();
    a.verify_all_blobs();
    // what is held to a rate goes as bytes
    get(&["--limit-rate", "1GB"]).assert_code(0);
    assert!(std::fs::read(&out).unwrap() == script.body());
    assert_eq!(a.log().matches("handed a file over").count(), 1);

    let ask = || a.ask(&url).field("Larder-Descriptor", "yes");
    assert_eq!(ask().range("0-9").send().status, 206);
    let answer = ask().send();
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let told = answer.field("Larder-Descriptor").unwrap().to_owned();
    let (ticket, rest) = told.split_once(' ').unwrap();
    let (size, path) = rest.split_once(' ').unwrap();
    assert_eq!(size, script.size.to_string());
    assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o666);
    let show = |ticket: &str| {
        let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
        stream.write_all(ticket.as_bytes()).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        said
    };
    assert_eq!(show(&"0".repeat(32)), b"", "nothing without a ticket");
    assert_eq!((show(ticket), show(ticket)), (b"+".to_vec(), Vec::new()), "a ticket is good once");
    let new = origin.serve("/new.bin", script);
    assert_eq!(
        a.ask(&new).field("Larder-Descriptor", "yes").send().status,
        200,
        "what is not held comes as bytes"
    );
    assert!(origin.gets("/new.bin")[0].field("Larder-Descriptor").is_none());
}

#[test]
fn the_looking_commands_answer_in_tables_and_json() {
    let site = Site::new();
    let origin = Origin::start();
    let a = Larder::new("a").peers(&site).start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let status: serde_json::Value =
        serde_json::from_str(&a.cli(&["status", "--json"]).assert_code(0).stdout).unwrap();
    assert_eq!(status["cache"]["blobs"], 1);
    assert!(a.cli(&["status"]).assert_code(0).stdout.contains(env!("CARGO_PKG_VERSION")));
    let peers = a.cli(&["peers"]).assert_code(0).stdout;
    assert!(peers.contains(&b.ip().to_string()) && peers.contains('b'), "{peers}");
    let plain = a.cli(&["status"]).stdout;
    assert!(!plain.contains('\u{1b}'), "no colour where there is no terminal");
    let mut down = b;
    down.stop();
    let failed = down.cli(&["status"]);
    assert!(failed.code != 0 && failed.stderr.starts_with("larder: "), "{}", failed.said());
}

#[test]
fn config_and_secret_commands() {
    let home = folder();
    let default = larder(home.path(), &["config", "default"]).assert_code(0).stdout;
    let file = home.path().join("larder.toml");
    std::fs::write(&file, &default).unwrap();
    let file = file.to_str().unwrap();
    larder(home.path(), &["config", "check", file]).assert_code(0);
    std::fs::write(file, "[cache]\nmax_sise = \"1GiB\"\n[proxy]\nlisten = 7\n").unwrap();
    let wrong = larder(home.path(), &["config", "check", file]).assert_code(78);
    assert!(wrong.said().contains("max_sise"), "{}", wrong.said());
    let one = larder(home.path(), &["secret", "new"]).assert_code(0).stdout;
    let two = larder(home.path(), &["secret", "new"]).assert_code(0).stdout;
    assert!(one.trim().len() >= 40 && one != two);
    let a = Larder::new("a").peers(&Site::new()).ready_to_start();
    let shown = a.cli(&["config", "show"]).assert_code(0).stdout;
    assert!(
        shown.contains("max_size")
            && !shown.contains(std::fs::read_to_string(a.home().join("secret")).unwrap().trim())
    );
    let print = a.cli(&["secret", "fingerprint"]).assert_code(0).stdout;
    assert_eq!(print, a.cli(&["secret", "fingerprint"]).stdout);
    assert!((4..80).contains(&print.trim().len()), "{print}");
}

#[test]
fn a_setting_is_overridden_by_the_environment() {
    let a = Larder::new("a").ready_to_start();
    let mut command = a.command(&["config", "show"]);
    command.env("LARDER_CACHE__MAX_SIZE", "3GiB");
    let shown = run(command).assert_code(0).stdout;
    assert!(shown.contains("3GiB") || shown.contains("3.0 GiB"), "{shown}");
}

#[test]
fn pins_keep_and_rm_forgets() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    a.cli(&["pin", &script.digest()]).assert_code(0);
    assert_eq!(a.count("/cache/pinned"), 1);
    a.cli(&["unpin", &script.digest()]).assert_code(0);
    assert_eq!(a.count("/cache/pinned"), 0);
    a.cli(&["rm", &script.digest()]).assert_code(0);
    assert!(a.blobs().is_empty());
    a.cli(&["rm", &script.digest()]).assert_code(3);
}

#[test]
fn help_names_every_command_and_doctor_looks_around() {
    let home = folder();
    let help = larder(home.path(), &["--help"]).assert_code(0).stdout;
    for command in ["run", "get", "status", "peers", "bans", "config", "secret", "doctor", "demo"] {
        assert!(help.contains(command), "{command} is missing:\n{help}");
    }
    assert!(larder(home.path(), &["--version"]).assert_code(0).stdout.contains(env!("CARGO_PKG_VERSION")));
    let a = Larder::new("a").peers(&Site::new()).start();
    let said = a.cli(&["doctor"]).said();
    assert!(said.contains("lo") || said.contains("interface"), "{said}");
}

#[test]
fn the_demo_shows_three_nodes_and_leaves_nothing_behind() {
    let home = folder();
    let scratch = home.path().join("tmp");
    std::fs::create_dir(&scratch).unwrap();
    let mut command = bare_command(crate::support::daemon::BINARY, home.path());
    command.arg("demo").env("TMPDIR", &scratch);
    let ran = run(command).assert_code(0);
    println!("{}", ran.stdout);
    assert!(ran.stdout.contains("peer") || ran.stdout.contains("neighbour"), "{}", ran.stdout);
    assert_eq!(crate::support::chaos::files_under(home.path()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn get_writes_through_what_is_no_regular_file_and_follows_links() {
    let origin = Origin::start();
    let home = tempfile::tempdir().unwrap();
    let script = Script::new(5000);
    let url = origin.serve("/f.bin", script.clone());
    let pipe = home.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    let through = larder(home.path(), &["get", &url, "-o", "pipe"]);
    assert_eq!(through.code, 0, "{}", through.said());
    assert_eq!(reader.join().unwrap(), script.body());
    assert!(!std::fs::metadata(&pipe).unwrap().is_file(), "a pipe stays a pipe");
    std::fs::write(home.path().join("real"), "old").unwrap();
    std::os::unix::fs::symlink("real", home.path().join("link")).unwrap();
    assert_eq!(larder(home.path(), &["get", &url, "-o", "link"]).code, 0);
    assert!(home.path().join("link").is_symlink());
    assert_eq!(std::fs::read(home.path().join("real")).unwrap(), script.body());
}
