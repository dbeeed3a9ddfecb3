//! The fault table: each system call of store and index fails in each way it can, under a running node, by
//! `strace`. The client gets its bytes, also where not one can be read back from the disk, health says why, and when the
//! fault is over caching goes on by itself, but for a failed sync, after which nothing is written until the node is
//! started anew. What was held before is cut where it cannot be read, never wrong.

use std::process::{Child, Command, Stdio};

use crate::support::{Answer, Larder, MIB, Origin, Script, at_once, tools, wait_until};

/// What brings caching back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Back {
    /// The end of the fault.
    ByItself,
    /// A restart.
    Restart,
}

/// Calls that fail together, how, what health must say (one of these codes, where it must say anything), and what
/// brings caching back.
type Row = (&'static str, &'static str, &'static [&'static str], Back);

const FULL: &[&str] = &["disk-full"];
const DISK: &[&str] = &["disk"];
const NOTHING: &[&str] = &[];

const TABLE: [Row; 22] = [
    ("openat", "ENOSPC", FULL, Back::ByItself),
    ("openat", "EDQUOT", FULL, Back::ByItself),
    ("openat", "EMFILE", DISK, Back::ByItself),
    ("openat", "EIO", DISK, Back::ByItself),
    ("openat", "EROFS", DISK, Back::ByItself),
    ("pwrite64", "ENOSPC", FULL, Back::ByItself),
    ("pwrite64", "EDQUOT", FULL, Back::ByItself),
    ("pwrite64", "EIO", DISK, Back::ByItself),
    ("pwrite64", "EROFS", DISK, Back::ByItself),
    ("fchmod", "EIO", DISK, Back::ByItself),
    ("fsync", "ENOSPC", FULL, Back::ByItself),
    ("fsync", "EDQUOT", FULL, Back::ByItself),
    ("fsync", "EIO", DISK, Back::Restart),
    ("mkdir", "ENOSPC", FULL, Back::ByItself),
    ("mkdir", "EIO", DISK, Back::ByItself),
    ("rename", "EIO", DISK, Back::ByItself),
    ("rename", "EROFS", DISK, Back::ByItself),
    ("fdatasync", "EIO", NOTHING, Back::ByItself),
    ("unlink", "EBUSY", NOTHING, Back::ByItself),
    ("unlink", "EIO", NOTHING, Back::ByItself),
    ("fstatfs,statfs", "EIO", DISK, Back::ByItself),
    ("pread64,preadv2", "EIO", NOTHING, Back::ByItself),
];

/// Lets calls of a process fail until it is dropped.
struct Fault(Child);

impl Fault {
    fn in_node(node: &Larder, calls: &str, error: &str) -> Self {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
        strace.args(["-e", &format!("inject={calls}:error={error}"), "-p", &node.pid().to_string()]);
        let child = strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("strace at every thread", || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", node.pid())).unwrap();
            tasks.flatten().all(|task| {
                let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
                !status.contains("TracerPid:\t0\n")
            })
        });
        Self(child)
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0.id() as i32).unwrap();
        // an error means that it has ended already
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap_or_default();
        drop(self.0.wait());
    }
}

fn can_trace() -> bool {
    if !tools::installed("strace") {
        return false;
    }
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let tried =
        Command::new("timeout").args(["1", "strace", "-p", &child.id().to_string()]).output().unwrap();
    drop((child.kill(), child.wait()));
    let may = !String::from_utf8_lossy(&tried.stderr).contains("attach: ptrace");
    if !may {
        println!("skipped: nobody may be traced here");
    }
    may
}

/// What health says, by code.
fn codes(node: &Larder) -> Vec<String> {
    // who has no token is told codes
    let answer = node.admin_ask_without_token("GET", "/status").send();
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let reasons = status["health"]["reasons"].as_array().cloned().unwrap_or_default();
    reasons.iter().map(|reason| reason.as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn whatever_call_fails_the_client_gets_its_bytes_and_caching_comes_back() {
    if !can_trace() {
        return;
    }
    let lines = at_once(4, |worker| {
        let rows = TABLE.iter().enumerate().filter(|(n, _)| n % 4 == worker);
        rows.map(|(n, row)| try_row(n, row)).collect::<Vec<_>>()
    });
    println!("{:16} {:8} {:34} {:22} back", "call", "error", "the client", "health");
    let mut lines: Vec<_> = lines.into_iter().flatten().collect();
    lines.sort();
    lines.iter().for_each(|(_, line)| println!("{line}"));
}

/// Whether an answer came to its end; then it is right.
fn is_right(answer: &std::io::Result<Answer>, script: &Script) -> bool {
    let Ok(answer) = answer else { return false };
    assert!(!answer.is_success() || answer.body == script.body(), "a wrong body ended well");
    answer.is_success()
}

/// Tries one row and says what happened.
fn try_row(number: usize, (calls, error, health, back): &Row) -> (usize, String) {
    let origin = Origin::start();
    let mut node = Larder::new("a").start();
    node.expect_damage();
    let script = |n: u64| Script::new(200_000).seed(number as u64 * 100 + n);
    let url = |script: &Script| origin.serve(&format!("/{}.bin", script.seed), script.clone());
    let held = script(1);
    node.get(&url(&held)).assert_whole(&held);
    node.wait_for_blob(&held.digest());
    let fault = Fault::in_node(&node, calls, error);
    let mut told = Vec::new();
    for n in 2..=4 {
        // each is new to the node, and falls into a folder of its own
        let fresh = script(n);
        let answer = node.ask(&url(&fresh)).try_send();
        assert!(is_right(&answer, &fresh), "{calls} {error}: {:?}", answer.map(|a| a.ending));
    }
    if !health.is_empty() {
        wait_until(&format!("{calls} {error} in health"), || {
            told = codes(&node);
            health.iter().any(|code| told.iter().any(|told| told == code))
        });
    }
    let client = match is_right(&node.ask(&url(&held)).try_send(), &held) {
        true => "all bytes",
        false => "all new bytes, a cut hit",
    };
    drop(fault);
    if *back == Back::Restart {
        let late = script(50);
        node.get(&url(&late)).assert_whole(&late);
        assert!(!node.blob_path(&late.digest()).exists(), "nothing is written after a failed sync");
        node.stop();
        node.start_again();
    }
    let after = script(60);
    let address = url(&after);
    wait_until(&format!("caching after {calls} {error}"), || {
        node.get(&address).assert_whole(&after);
        node.blob_path(&after.digest()).exists()
    });
    wait_until("what was held to be whole again", || is_right(&node.ask(&url(&held)).try_send(), &held));
    node.verify_all_blobs();
    let told = if told.is_empty() { "-".to_owned() } else { told.join(" ") };
    (number, format!("{calls:16} {error:8} {client:34} {told:22} {back:?}"))
}

#[test]
fn who_lags_behind_gets_the_rest_from_the_origin_where_the_disk_reads_nothing_back() {
    if !can_trace() {
        return;
    }
    let origin = Origin::start();
    let mut node = Larder::new("a").start();
    node.expect_damage();
    let script = Script::new(40 * MIB);
    let url = origin.serve("/large.bin", script.clone());
    let mut lagging = node.ask(&url).open();
    let had = lagging.read_to(MIB);
    // what it does not take is in the file alone
    node.wait_for_blob(&script.digest());
    let fault = Fault::in_node(&node, "pread64,preadv2", "EIO");
    lagging.rest().assert_whole(&script);
    drop(fault);
    let asked = origin.gets("/large.bin");
    let rest = asked.last().and_then(|last| last.field("Range").map(str::to_owned)).unwrap_or_default();
    assert!(asked.len() == 2 && rest.starts_with("bytes=") && rest != "bytes=0-", "{had}: {rest}");
    node.verify_all_blobs();
}
