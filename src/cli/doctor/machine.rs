//! What can be seen of the machine without asking the daemon.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use super::Report;
use crate::cache::MinFree;
use crate::clock::{Clock, Timestamp};
use crate::config::{Config, Environment, Loaded, SYSTEM_FILE, load_secrets};
use crate::net::interface;
use crate::seal::SiteKeys;
use crate::unit::ByteSize;

/// No machine that runs this program can have an earlier date: 2026-01-01.
const BUILT: Timestamp = Timestamp::from_seconds(1_767_225_600);

pub(super) fn clock(report: &mut Report, clock: &dyn Clock) {
    let now = clock.now();
    if now < BUILT {
        report.fail(
            "clock",
            format!("it says {now}"),
            "set it: downloads over https and the freshness of what is kept depend on it",
        );
    } else {
        report.ok("clock", now.to_string());
    }
}

/// Whether origins can prove over https who they are.
pub(super) fn certificates(report: &mut Report, config: &Config) {
    if crate::tls::has_system_authorities() {
        report.ok("certificates", "the system has authorities for https");
    } else if config.origin.ca_file.as_os_str().is_empty() {
        report.fail(
            "certificates",
            "the system has no authorities: nothing can be had over https",
            "install the package ca-certificates and restart the daemon, or name a file in origin.ca_file",
        );
    } else {
        report.ok("certificates", format!("those in {} alone", config.origin.ca_file.display()));
    }
}

/// Whether there is a secret; whether it is right was found out with the configuration.
pub(super) fn secret(report: &mut Report, loaded: &Loaded, environment: &Environment) {
    let config = &loaded.config;
    let environment = environment.clone().of_service(loaded.file.as_deref());
    let Ok(found) = load_secrets(config, &environment) else { return };
    let is_service = loaded.file.as_deref() == Some(Path::new(SYSTEM_FILE));
    match (found.secrets.len(), config.peers.enabled) {
        (0, true) if is_service && !rustix::process::geteuid().is_root() => {
            report.warn(
                "secret",
                "that of the service is for root to see",
                "`sudo larder doctor` looks at it",
            );
        }
        (0, true) => report.warn(
            "secret",
            "there is none: this node works alone",
            "make one with `larder secret new -o FILE`, name it in secret_file, and copy it to every machine",
        ),
        (0, false) => report.ok("secret", "none, and peers.enabled = false"),
        (count, _) => {
            let more = if count > 1 { format!(", {} more accepted", count - 1) } else { String::new() };
            match SiteKeys::derive(&config.site, &found.secrets) {
                Ok(keys) => {
                    let mark = keys.fingerprint();
                    let what = format!("from {}{more}; site {}, fingerprint {mark}", found.from, config.site);
                    report.ok("secret", what);
                }
                Err(error) => {
                    report.fail("secret", error.to_string(), "make a new one with `larder secret new`")
                }
            }
        }
    }
}

pub(super) fn folders(report: &mut Report, config: &Config) {
    for (key, folder) in [("state_dir", &config.state_dir), ("cache.dir", &config.cache.dir)] {
        let Some(there) = folder.ancestors().find(|part| part.exists()) else { continue };
        let writable = rustix::fs::access(there, rustix::fs::Access::WRITE_OK).is_ok();
        if there != folder && !writable {
            let what = format!("{key} {} is not there and cannot be made by you", folder.display());
            report.warn(
                "folders",
                what,
                "the service's user needs it: systemd-tmpfiles --create larder.conf",
            );
        }
    }
    space(report, config);
}

fn space(report: &mut Report, config: &Config) {
    let folder: &Path = &config.cache.dir;
    let there = folder.ancestors().find(|part| part.exists());
    let Some(stat) = there.and_then(|there| rustix::fs::statvfs(there).ok()) else {
        report.warn("disk", format!("the filesystem of {} cannot be asked", folder.display()), "");
        return;
    };
    let size = stat.f_blocks.saturating_mul(stat.f_frsize);
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let keep = match config.cache.min_free {
        MinFree::Percent(percent) => size / 100 * u64::from(percent),
        MinFree::Size(size) => size.bytes(),
    };
    let what = format!("{} free of {} at {}", ByteSize(free), ByteSize(size), folder.display());
    if free < keep {
        let hint = format!(
            "cache.min_free keeps {} free, so nothing new is stored until there is room: delete something there, \
             `larder gc --to SIZE`, or put cache.dir on another disk",
            ByteSize(keep)
        );
        report.fail("disk", what, &hint);
    } else if config.cache.max_size.bytes() > size {
        report.warn(
            "disk",
            what,
            "cache.max_size is more than the whole filesystem; cache.min_free is the limit",
        );
    } else {
        report.ok("disk", what);
    }
}

pub(super) fn interfaces(report: &mut Report, config: &Config) {
    if !config.peers.enabled {
        return;
    }
    let list = match interface::list() {
        Ok(list) => list,
        Err(error) => {
            report.fail(
                "interfaces",
                format!("the kernel does not tell them: {error}"),
                "under systemd: RestrictAddressFamilies must hold AF_NETLINK",
            );
            return;
        }
    };
    let choices = interface::choose(list, &config.peers.interfaces);
    let (usable, skipped): (Vec<_>, Vec<_>) = choices.into_iter().partition(|choice| choice.usable);
    let named = |choice: &interface::Choice| {
        format!("{} {} ({})", choice.interface.name, choice.interface.address, choice.why)
    };
    let skipped = skipped.iter().map(named).collect::<Vec<_>>().join(", ");
    if usable.is_empty() && config.peers.broadcast.is_empty() && config.peers.seeds.is_empty() {
        report.warn(
            "interfaces",
            format!("none is usable for neighbours: {skipped}"),
            "plug one in or give it a private address; else name it, `[peers] interfaces = [\"NAME\"]`, or name neighbours \
             in peers.seeds",
        );
        return;
    }
    let usable = match usable.as_slice() {
        [] => "none by itself, but peers.broadcast or peers.seeds say where to ask".to_owned(),
        usable => usable.iter().map(named).collect::<Vec<_>>().join(", "),
    };
    report
        .ok("interfaces", if skipped.is_empty() { usable } else { format!("{usable}; skipped: {skipped}") });
}

/// Ports the daemon wants: held by it, or free.
pub(super) fn ports(report: &mut Report, config: &Config, daemon_answers: bool) {
    if daemon_answers {
        return;
    }
    let peers = config.peers.listen.iter().map(|at| at.with_port(config.peers.port));
    let everywhere = SocketAddr::from(([0, 0, 0, 0], config.peers.port));
    let peers: Vec<SocketAddr> = match (config.peers.enabled, config.peers.listen.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => vec![everywhere],
        (true, false) => peers.collect(),
    };
    let wanted = [
        ("proxy.listen", &config.proxy.listen),
        ("admin.listen", &config.admin.listen),
        ("peers.port", &peers),
    ];
    let mut free = Vec::new();
    let tcp = wanted.into_iter().flat_map(|(key, list)| list.iter().map(move |at| (key, *at, "TCP")));
    let udp = peers.iter().map(|at| ("peers.port", *at, "UDP"));
    for (key, address, kind) in tcp.chain(udp) {
        let bound = match kind {
            "UDP" => UdpSocket::bind(address).map(drop),
            _ => TcpListener::bind(address).map(drop),
        };
        match bound {
            Ok(()) if kind == "UDP" => {}
            Ok(()) => free.push(address.to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => report.fail(
                "ports",
                format!("{address} ({kind}) is held by another program"),
                &format!(
                    "`sudo ss -l{}np` says which: stop it, or change {key}",
                    if kind == "UDP" { 'u' } else { 't' }
                ),
            ),
            Err(error) if address.is_ipv6() => report.ok("ports", format!("{address} is left out: {error}")),
            Err(error) => {
                report.fail("ports", format!("{address} cannot be bound: {error}"), &format!("change {key}"))
            }
        }
    }
    if !free.is_empty() {
        report.ok("ports", format!("free: {}", free.join(", ")));
    }
}

/// Whether this shell's programs use the proxy, and whether that can work.
pub(super) fn proxy_variables(
    report: &mut Report,
    config: &Config,
    environment: &Environment,
    answers: bool,
) {
    let mut pointing = Vec::new();
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        let Some(value) = environment.get(name) else { continue };
        let Ok(uri) = value.parse::<http::Uri>() else {
            report.warn("environment", format!("{name} is not a URL"), "write http://127.0.0.1:8098");
            continue;
        };
        let port = uri.port_u16().unwrap_or(80);
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let own = config.proxy.listen.iter().any(|listener| {
            listener.port() == port && (host == "localhost" || host.parse() == Ok(listener.ip()))
        });
        if own {
            pointing.push(name);
        }
    }
    if pointing.is_empty() {
        report.ok("environment", "no proxy variable of this shell points here");
    } else if answers {
        report.ok("environment", format!("{} of this shell points here", pointing.join(", ")));
    } else {
        report.fail(
            "environment",
            format!("{} points here, but no daemon answers", pointing.join(", ")),
            "start the daemon, or unset it: programs of this shell cannot download",
        );
    }
    if pointing.iter().any(|name| !name.eq_ignore_ascii_case("http_proxy")) {
        report.warn(
            "environment",
            "https goes through a tunnel, which cannot be cached",
            "`larder setup pip`, npm, cargo, hf and others bring what they fetch over https through a mirror; else use \
             the URL prefix http://127.0.0.1:8098/https/HOST/PATH, or open the host ([intercept] hosts)",
        );
    }
}
