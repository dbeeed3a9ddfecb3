//! A LAN of network namespaces on one bridge, without traces on the machine.
//!
//! The test starts itself once more inside a fresh network namespace (`unshare -n`, with `-Ur` where we are
//! not root). That process is the switch: it owns the bridge `br0`, has the address 10.99.0.254 on it, and
//! runs origin and clients; each node lives in a namespace of its own behind a veth pair. The namespaces end
//! with the processes that hold them.

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};

use super::daemon::{Larder, LarderBuilder, Site};
use super::wait_until;

/// Says to the inner process that it is inside.
const INSIDE: &str = "LARDER_TEST_INSIDE_LAN";

/// The address of the switch, where the test's own sockets are.
pub const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 254);

/// The LAN, seen from inside.
pub struct Lan {
    holders: Vec<Child>,
}

impl Lan {
    /// Enters a LAN of `nodes` machines. `None` when the work is done: by the inner process, whose failure
    /// is ours, or not at all because the kernel forbids it, for a printed reason.
    pub fn enter(test: &str, nodes: u8) -> Option<Self> {
        if std::env::var_os(INSIDE).is_none() {
            run_inside(test);
            return None;
        }
        // A private copy of /sys shows the interfaces of this namespace; without it nodes see fewer details.
        drop(Command::new("mount").args(["-t", "sysfs", "sysfs", "/sys"]).stderr(Stdio::null()).status());
        ip("link set lo up");
        ip("link add br0 type bridge");
        ip(&format!("addr add {SWITCH}/24 broadcast 10.99.0.255 dev br0"));
        ip("link set br0 up");
        let mut lan = Self { holders: Vec::new() };
        (1..=nodes).for_each(|number| lan.add_machine(number));
        Some(lan)
    }

    fn add_machine(&mut self, number: u8) {
        let shell = "mount -t sysfs sysfs /sys 2>/dev/null; exec sleep 3600";
        let mut holder = Command::new("unshare");
        let holder = holder.args(["-n", "-m", "sh", "-c", shell]).stdin(Stdio::null()).spawn().unwrap();
        let pid = holder.id();
        self.holders.push(holder);
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        wait_until("a network namespace", || {
            let slept =
                std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep");
            slept && std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|link| link != own)
        });
        ip(&format!("link add s{number} type veth peer name e0 netns {pid}"));
        ip(&format!("link set s{number} master br0 up"));
        self.run(number, &format!("ip addr add 10.99.0.{number}/24 broadcast 10.99.0.255 dev e0"));
        self.run(number, "ip link set lo up");
        // the hardware address makes the link-local one: fe80::ff:fe00 and the number
        self.run(number, &format!("ip link set e0 address 02:00:00:00:00:{number:02x} up"));
        self.run(number, &format!("ip route add default via {SWITCH}"));
    }

    /// The address of a machine.
    pub fn address(&self, number: u8) -> IpAddr {
        Ipv4Addr::new(10, 99, 0, number).into()
    }

    /// Adds a second network, 10.98.0.0/24, whose router is the switch: broadcasts stay on their side.
    pub fn add_second_network(&self) {
        ip("link add br1 type bridge");
        ip("addr add 10.98.0.254/24 broadcast 10.98.0.255 dev br1");
        ip("link set br1 up");
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    }

    /// Moves a machine to the second network; its address there.
    pub fn move_to_second(&self, number: u8) -> IpAddr {
        ip(&format!("link set s{number} master br1"));
        self.run(number, "ip addr flush dev e0");
        self.run(number, &format!("ip addr add 10.98.0.{number}/24 broadcast 10.98.0.255 dev e0"));
        self.run(number, "ip route add default via 10.98.0.254");
        Ipv4Addr::new(10, 98, 0, number).into()
    }

    /// Gives a machine a second card, on the second network.
    pub fn join_second(&self, number: u8) {
        let pid = self.holders[usize::from(number) - 1].id();
        ip(&format!("link add t{number} type veth peer name e1 netns {pid}"));
        ip(&format!("link set t{number} master br1 up"));
        self.run(number, &format!("ip addr add 10.98.0.{number}/24 broadcast 10.98.0.255 dev e1"));
        self.run(number, "ip link set e1 up");
    }

    /// Hides the second network behind the switch's address, but for this port of this machine.
    pub fn masquerade_second(&self, port: u16, number: u8) {
        for rule in [
            "-t nat -A POSTROUTING -s 10.98.0.0/24 -o br0 -j MASQUERADE".to_owned(),
            format!(
                "-t nat -A PREROUTING -i br0 -d {SWITCH} -p udp --dport {port} -j DNAT --to 10.98.0.{number}"
            ),
            format!(
                "-t nat -A PREROUTING -i br0 -d {SWITCH} -p tcp --dport {port} -j DNAT --to 10.98.0.{number}"
            ),
            "-A FORWARD -i br0 -m conntrack --ctstate DNAT -j ACCEPT".to_owned(),
            "-A FORWARD -i br0 -m conntrack --ctstate NEW -j DROP".to_owned(),
        ] {
            let words = std::iter::once("iptables").chain(rule.split(' ')).map(str::to_owned);
            output(&words.collect::<Vec<_>>());
        }
    }

    /// Describes a node on this machine: found by real broadcast on what interfaces it sees, nothing named.
    pub fn node(&self, number: u8, name: &str, site: &Site) -> LarderBuilder {
        self.node_at(number, self.address(number), name, site)
    }

    /// The same with an address of its own.
    pub fn node_at(&self, number: u8, address: IpAddr, name: &str, site: &Site) -> LarderBuilder {
        Larder::new(name)
            .peers(site)
            .inside(address, self.wrapper(number), "10.99.0.255")
            .list("peers.listen", &[])
            .list("peers.broadcast", &[])
            .list("proxy.listen", &[&format!("{address}:8098"), "127.0.0.1:8098"])
            .list("proxy.allow", &["127.0.0.0/8", "10.98.0.0/15"])
    }

    /// Runs a command on a machine and gives what it printed.
    pub fn run(&self, number: u8, command: &str) -> String {
        let mut words = self.wrapper(number);
        words.extend(command.split(' ').map(str::to_owned));
        output(&words)
    }

    /// Cuts the machine off by pulling its plug at the switch.
    pub fn unplug(&self, number: u8) {
        ip(&format!("link set s{number} down"));
    }

    /// Keeps the machine from the others but not from the switch, as Wi-Fi client isolation does.
    pub fn isolate(&self, number: u8) {
        let words =
            ["bridge", "link", "set", "dev", &format!("s{number}"), "isolated", "on"].map(str::to_owned);
        output(&words);
    }

    fn wrapper(&self, number: u8) -> Vec<String> {
        let pid = self.holders[usize::from(number) - 1].id();
        ["nsenter".into(), "-t".into(), pid.to_string(), "-n".into(), "-m".into(), "--".into()].into()
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            drop(holder.kill());
            drop(holder.wait());
        }
    }
}

/// Starts this test again inside a namespace and takes over its verdict.
fn run_inside(test: &str) {
    let flags: &[&str] =
        if rustix::process::geteuid().is_root() { &["-n", "-m"] } else { &["-U", "-r", "-n", "-m"] };
    for need in ["unshare", "nsenter", "ip", "bridge"] {
        let found =
            Command::new("sh").args(["-c", &format!("command -v {need}")]).stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return println!("skipped: {need} is not installed");
        }
    }
    let trial =
        Command::new("unshare").args(flags).args(["ip", "link", "add", "br0", "type", "bridge"]).output();
    let trial = trial.unwrap();
    if !trial.status.success() {
        return println!("skipped: no namespaces here: {}", String::from_utf8_lossy(&trial.stderr).trim());
    }
    let mut inner = Command::new("unshare");
    inner.args(flags).arg(std::env::current_exe().unwrap());
    let inner = inner.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&inner.stdout), String::from_utf8_lossy(&inner.stderr));
    println!("{said}");
    assert!(said.contains("1 passed"), "{test} failed inside its namespace, or has another name");
}

fn ip(arguments: &str) {
    let words: Vec<String> = std::iter::once("ip").chain(arguments.split(' ')).map(str::to_owned).collect();
    output(&words);
}

fn output(words: &[String]) -> String {
    let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn machines_on_the_lan_reach_each_other() {
    let Some(lan) = Lan::enter("support::lan::machines_on_the_lan_reach_each_other", 2) else { return };
    assert!(lan.run(1, "ip -br addr show e0").contains("10.99.0.1/24"));
    assert!(lan.run(2, "ip route get 10.99.0.1").contains("dev e0"));
    let listener = std::net::TcpListener::bind((SWITCH, 0)).unwrap();
    assert_eq!(listener.local_addr().unwrap().ip(), IpAddr::V4(SWITCH));
}
