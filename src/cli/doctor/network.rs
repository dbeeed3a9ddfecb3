//! What the network lets through: broadcasts on each usable interface, and firewalls that are known to be on.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use super::Report;
use crate::config::Config;
use crate::net::interface::{self, Interface};

/// The longest wait for one's own broadcast; the kernel answers in microseconds.
const WAIT: Duration = Duration::from_millis(300);

/// Whether a broadcast on each usable interface comes back to this machine, as it would to others.
pub(super) fn broadcast(report: &mut Report, config: &Config) {
    if !config.peers.enabled || !config.peers.broadcast.is_empty() {
        return;
    }
    let list = interface::list().unwrap_or_default();
    let choices = interface::choose(list, &config.peers.interfaces);
    let usable = choices.into_iter().filter(|choice| choice.usable).map(|choice| choice.interface);
    for (interface, to) in usable.filter_map(|it| it.broadcast.map(|to| (it, to))) {
        match heard(&interface, to) {
            Ok(()) => report.ok("broadcast", format!("to {to} is heard on {}", interface.name)),
            Err(error) => report.warn(
                "broadcast",
                format!("to {to} is not heard on {}: {error}", interface.name),
                "a firewall or the interface keeps it back: name neighbours in peers.seeds, or let UDP through",
            ),
        }
    }
}

fn heard(interface: &Interface, to: Ipv4Addr) -> std::io::Result<()> {
    let ear = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    ear.set_read_timeout(Some(WAIT))?;
    let mouth = UdpSocket::bind((interface.address, 0))?;
    mouth.set_broadcast(true)?;
    let mut word = [0; 16];
    getrandom::fill(&mut word).map_err(std::io::Error::from)?;
    mouth.send_to(&word, (IpAddr::V4(to), ear.local_addr()?.port()))?;
    let mut got = [0; 32];
    loop {
        let (length, _) = ear.recv_from(&mut got)?;
        if got.get(..length) == Some(word.as_slice()) {
            return Ok(());
        }
    }
}

/// What to tell firewalls that are on; which rules they have, only root could see.
pub(super) fn firewall(report: &mut Report, config: &Config, root: &Path) {
    if !config.peers.enabled {
        return;
    }
    let port = config.peers.port;
    let ufw = std::fs::read_to_string(root.join("etc/ufw/ufw.conf")).unwrap_or_default();
    if ufw.lines().any(|line| line.trim().eq_ignore_ascii_case("ENABLED=yes")) {
        let hint = format!("if neighbours are not heard: ufw allow {port}");
        report.warn("firewall", format!("ufw is on; port {port}, UDP and TCP, must be open"), &hint);
    }
    if root.join("run/firewalld").exists() {
        let hint = format!(
            "if neighbours are not heard: firewall-cmd --permanent --add-port={port}/udp --add-port={port}/tcp && \
             firewall-cmd --reload"
        );
        report.warn("firewall", format!("firewalld is on; port {port}, UDP and TCP, must be open"), &hint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firewalls_that_are_on_are_named() {
        let root = tempfile::tempdir().unwrap();
        let mut report = Report::default();
        firewall(&mut report, &Config::default(), root.path());
        assert!(!report.has_about("firewall"));
        std::fs::create_dir_all(root.path().join("etc/ufw")).unwrap();
        std::fs::write(root.path().join("etc/ufw/ufw.conf"), "# on\nENABLED=yes\n").unwrap();
        firewall(&mut report, &Config::default(), root.path());
        assert!(report.has_about("firewall"));
    }
}
