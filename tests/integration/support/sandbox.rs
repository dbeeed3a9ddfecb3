//! The unit's sandbox without systemd: the same system calls by a seccomp filter, no netlink, no `/proc`, nothing
//! writable but the node's own folder, by bubblewrap.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tools::installed;

/// Instructions of the kernel's classic filter machine (`linux/bpf_common.h`).
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
/// What a filter can answer (`linux/seccomp.h`), with an error number in the low half.
const ALLOW: u32 = 0x7fff_0000;
const ERROR: u32 = 0x0005_0000;
const KILL: u32 = 0x8000_0000;
const EPERM: u32 = 1;
const EAFNOSUPPORT: u32 = 97;
/// Where `struct seccomp_data` has the call's number, the machine and the low half of the first argument.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const X86_64: u32 = 0xc000_003e;
const AF_NETLINK: u32 = 16;

/// The command that runs another one inside; none, for a printed reason, where that cannot be done here.
pub fn wrapper(home: &Path, unit: &str) -> Option<Vec<String>> {
    if !installed("bwrap") || !installed("systemd-analyze") {
        return None;
    }
    let numbers = numbers()?;
    let allowed = allowed(unit, &numbers);
    let filter = home.join("seccomp.filter");
    std::fs::File::create(&filter).unwrap().write_all(&program(&allowed, numbers["socket"])).unwrap();
    let folder = home.parent().unwrap().display();
    let script = format!(
        "exec bwrap --die-with-parent --unshare-user --unshare-ipc --cap-drop ALL --ro-bind / / --dev /dev \
         --tmpfs /proc --bind {folder} {folder} --seccomp 9 -- \"$@\" 9<{}",
        filter.display()
    );
    let words: Vec<String> = ["sh", "-c", &script, "sh"].map(str::to_owned).into();
    let tried = Command::new(&words[0]).args(&words[1..]).arg("true").output().unwrap();
    if !tried.status.success() {
        println!("skipped: no sandbox here: {}", String::from_utf8_lossy(&tried.stderr).trim());
        return None;
    }
    Some(words)
}

/// The numbers of this machine's system calls by name.
fn numbers() -> Option<HashMap<String, u32>> {
    let header = Path::new("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
    if !cfg!(target_arch = "x86_64") || !header.exists() {
        println!("skipped: the system calls of this machine are not known here");
        return None;
    }
    let text = std::fs::read_to_string(header).unwrap();
    let line = |line: &str| {
        let (name, number) = line.strip_prefix("#define __NR_")?.split_once(' ')?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    Some(text.lines().filter_map(line).collect())
}

/// What the unit lets through: the lists that it names, less those it takes out.
fn allowed(unit: &str, numbers: &HashMap<String, u32>) -> BTreeSet<u32> {
    let mut allowed = BTreeSet::new();
    for line in unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let (taken_out, groups) = line.strip_prefix('~').map_or((false, line), |groups| (true, groups));
        for name in groups.split_whitespace().flat_map(members) {
            match numbers.get(&name) {
                Some(number) if taken_out => drop(allowed.remove(number)),
                Some(number) => drop(allowed.insert(*number)),
                None => {}
            }
        }
    }
    assert!(allowed.len() > 200, "{}", allowed.len());
    allowed
}

/// The system calls of a list of systemd's.
fn members(group: &str) -> Vec<String> {
    let output =
        Command::new("systemd-analyze").args(["syscall-filter", "--no-pager", group]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.flat_map(|name| if name.starts_with('@') { members(name) } else { vec![name.to_owned()] }).collect()
}

fn program(allowed: &BTreeSet<u32>, socket: u32) -> Vec<u8> {
    let mut code = vec![
        (LOAD, 0, 0, MACHINE),
        (JUMP_IF_EQUAL, 1, 0, X86_64),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (JUMP_IF_EQUAL, 0, 4, socket),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_IF_EQUAL, 0, 1, AF_NETLINK),
        (RETURN, 0, 0, ERROR | EAFNOSUPPORT),
        (RETURN, 0, 0, ALLOW),
    ];
    for number in allowed {
        code.extend([(JUMP_IF_EQUAL, 0, 1, *number), (RETURN, 0, 0, ALLOW)]);
    }
    code.push((RETURN, 0, 0, ERROR | EPERM));
    let bytes = |(code, yes, no, value): &(u16, u8, u8, u32)| {
        let [a, b] = code.to_ne_bytes();
        let [c, d, e, f] = value.to_ne_bytes();
        [a, b, *yes, *no, c, d, e, f]
    };
    code.iter().flat_map(bytes).collect()
}

/// Where the unit stands.
pub fn unit() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/larder.service");
    std::fs::read_to_string(path).unwrap()
}
