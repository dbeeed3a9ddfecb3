//! Machines on one bridge, all of them namespaces that end with their holders.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The machine of the origin.
const ORIGIN: usize = 253;
/// Its port.
const PORT: u16 = 8000;

/// The LAN, seen from inside.
pub(crate) struct Lan {
    holders: Vec<(usize, Child)>,
}

/// A process that ends with this value.
pub(crate) struct Running(pub(crate) Child);

/// Starts this program once more in a network of its own, and takes over its verdict.
pub(crate) fn enter_again(inside: &str) {
    let mut inner = Command::new("unshare");
    let inner = inner.args(["-n", "-m"]).arg(std::env::current_exe().unwrap()).args(std::env::args().skip(1));
    let status = inner.env(inside, "1").status().unwrap();
    assert!(status.success(), "the inner process ended with {status}");
}

impl Lan {
    /// So many machines and one origin, whose link sends so many Mbit a second.
    pub(crate) fn new(machines: usize, mbit: u64) -> Self {
        drop(Command::new("ip").args(["link", "del", "br0"]).stderr(Stdio::null()).status());
        ip("link set lo up");
        ip("link add br0 type bridge");
        ip("link set br0 up");
        let mut lan = Self { holders: Vec::new() };
        (1..=machines).chain([ORIGIN]).for_each(|number| lan.add(number));
        lan.shape(ORIGIN, mbit);
        lan
    }

    /// From now on a machine's link sends no more than so many Mbit a second.
    pub(crate) fn shape(&self, number: usize, mbit: u64) {
        let burst = (mbit / 8).max(64);
        let shape = format!("tc qdisc add dev e0 root tbf rate {mbit}mbit burst {burst}kb latency 50ms");
        run(self.inside(number).args(shape.split(' ')));
    }

    fn add(&mut self, number: usize) {
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let holder =
            Command::new("unshare").args(["-n", "sleep", "3600"]).stdin(Stdio::null()).spawn().unwrap();
        let pid = holder.id();
        self.holders.push((number, holder));
        while std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap() == own {
            std::thread::sleep(Duration::from_millis(1));
        }
        ip(&format!("link add s{number} type veth peer name e0 netns {pid}"));
        ip(&format!("link set s{number} master br0 up"));
        for words in [
            format!("ip addr add 10.98.0.{number}/24 broadcast 10.98.0.255 dev e0"),
            "ip link set lo up".to_owned(),
            "ip link set e0 up".to_owned(),
        ] {
            run(self.inside(number).args(words.split(' ')));
        }
    }

    /// The beginning of a command that runs on a machine.
    pub(crate) fn inside(&self, number: usize) -> Command {
        let (_, holder) = self.holders.iter().find(|(at, _)| *at == number).unwrap();
        let mut command = Command::new("nsenter");
        command.args(["-t", &holder.id().to_string(), "-n", "--"]);
        command
    }

    /// The origin, serving.
    pub(crate) fn start_origin(&self, ranges: bool) -> Running {
        let address = format!("10.98.0.{ORIGIN}:{PORT}");
        let mut command = self.inside(ORIGIN);
        let command = command.arg(std::env::current_exe().unwrap());
        let command = command.args(["as-origin", &address, if ranges { "ranges" } else { "none" }]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        Running(child)
    }

    /// The URL of the file.
    pub(crate) fn url(&self) -> String {
        format!("http://10.98.0.{ORIGIN}:{PORT}/big.bin")
    }

    /// Bytes that have left the origin's machine.
    pub(crate) fn sent_by_origin(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/net/dev", self.holder(ORIGIN))).unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with("e0:")).unwrap();
        line.split_whitespace().nth(9).unwrap().parse().unwrap()
    }

    fn holder(&self, number: usize) -> u32 {
        self.holders.iter().find(|(at, _)| *at == number).unwrap().1.id()
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        for (_, holder) in &mut self.holders {
            drop(holder.kill());
            drop(holder.wait());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn ip(words: &str) {
    run(Command::new("ip").args(words.split(' ')));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
