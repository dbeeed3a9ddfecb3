//! Every file in `systemd/` is read by the tool it is written for.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::tools::installed;
use crate::support::{Larder, Origin, Script, Site, sandbox};

fn unit(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(unit(name)).unwrap()
}

#[test]
fn the_service_is_shut_in_and_still_has_what_it_needs() {
    let service = text("larder.service");
    for needed in [
        "Type=notify",
        "User=larder",
        "StateDirectory=larder",
        "CacheDirectory=larder",
        "RuntimeDirectory=larder",
        "WatchdogSec=",
        "NoNewPrivileges=",
        "ProtectSystem=strict",
        "ExecReload=",
        "KillMode=",
    ] {
        assert!(service.contains(needed), "{needed} is missing");
    }
    let families = service.lines().find(|line| line.starts_with("RestrictAddressFamilies=")).unwrap();
    for family in ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"] {
        assert!(families.contains(family), "{family}: interfaces are listed over netlink");
    }
    assert!(
        service.contains("RestartPreventExitStatus=") && service.contains("78"),
        "no restart loop on bad settings"
    );
    assert!(!service.contains("DynamicUser=yes"), "the operator reads /var/lib/larder");
}

#[test]
fn systemd_itself_finds_little_exposure() {
    if !installed("systemd-analyze") {
        return;
    }
    let mut analyze = Command::new("systemd-analyze");
    let output = analyze
        .args(["security", "--offline=true", "--no-pager"])
        .arg(unit("larder.service"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let Some(line) = said.lines().find(|line| line.contains("Overall exposure level")) else {
        return println!(
            "skipped: this systemd-analyze judges no files: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    println!("{line}");
    let exposure: f64 = line.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!(exposure <= 1.5, "{line}");
}

#[test]
fn the_sockets_names_are_the_ones_the_daemon_looks_for() {
    for entry in std::fs::read_dir(unit("").as_path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        match path.extension().and_then(|end| end.to_str()) {
            Some("service") => assert!(text.contains("[Service]"), "{name}"),
            Some("socket") => {
                let named = text.lines().filter_map(|line| line.strip_prefix("FileDescriptorName="));
                let named: Vec<_> = named.collect();
                assert!(
                    !named.is_empty() && named.iter().all(|fd| ["proxy", "admin"].contains(fd)),
                    "{name}: {named:?}"
                );
            }
            Some("sysusers") => assert!(text.lines().any(|line| line.starts_with("u larder")), "{name}"),
            Some("tmpfiles") => {
                let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
                assert!(
                    lines.clone().count() > 0
                        && lines.clone().all(|line| line.split_whitespace().count() >= 2)
                );
            }
            _ => panic!("{name}: nothing reads it"),
        }
    }
}

#[test]
fn o08_the_daemon_runs_in_the_units_sandbox_and_without_netlink() {
    let site = Site::new();
    let mut a = Larder::new("a").peers(&site).ready_to_start();
    let Some(wrapper) = sandbox::wrapper(a.home(), &sandbox::unit()) else { return };
    a.wrap(wrapper);
    a.start_again();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let (origin, script) = (Origin::start(), Script::new(3_000_000));
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    assert!(a.get(&url).assert_whole(&script).is_hit());
    let neighbour = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    assert!(neighbour.assert_whole(&script).is_from_peer(), "{}", neighbour.cache_status());
    assert!(a.log().contains("RestrictAddressFamilies"), "it says which directive:\n{}", a.log());
}

#[test]
fn the_node_leaves_no_core_dump_and_no_secret_where_others_look() {
    let site = Site::new();
    let a = Larder::new("a").peers(&site).start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", a.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"]);
    let filter = std::fs::read_to_string(format!("/proc/{}/coredump_filter", a.pid())).unwrap();
    assert_eq!(filter.trim(), "00000000", "a program that takes dumps finds no memory in one");
    let arguments = std::fs::read(format!("/proc/{}/cmdline", a.pid())).unwrap();
    let shown = format!(
        "{}{}{}{}",
        String::from_utf8_lossy(&arguments),
        a.log(),
        a.status(),
        a.cli(&["config", "show"]).said()
    );
    assert!(!shown.contains(site.secret()), "the secret is shown");
}

/// What is shipped for monitoring names only numbers that `/metrics` has, and promtool can read both.
#[test]
fn alerts_and_dashboard_name_numbers_that_there_are() {
    let node = Larder::new("a").start();
    let metrics = node.admin_ask_without_token("GET", "/metrics").send().text();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let rules = config.join("prometheus/larder.rules.yml");
    let dashboard = config.join("grafana/larder.json");
    drop(serde_json::from_slice::<serde_json::Value>(&std::fs::read(&dashboard).unwrap()).unwrap());
    for file in [&rules, &dashboard] {
        let text = std::fs::read_to_string(file).unwrap();
        let names =
            text.split(|c: char| !c.is_ascii_lowercase() && c != '_').filter(|it| it.starts_with("larder_"));
        for name in names {
            // of a counter the family is declared, of a distribution the name without its parts
            let family = name.trim_end_matches("_bucket");
            let declared = metrics.lines().any(|line| line.starts_with(&format!("# TYPE {family} ")));
            let only_with_events = [
                "larder_trouble",
                "larder_peer_find_duration_seconds",
                "larder_transfer_rate_bytes_per_second",
                "larder_answer_duration_seconds",
            ]
            .contains(&family);
            assert!(
                declared || only_with_events,
                "{} names {name}, which is not in\n{metrics}",
                file.display()
            );
        }
    }
    if !installed("promtool") {
        return println!("skipped: there is no promtool");
    }
    let checked = Command::new("promtool").args(["check", "rules"]).arg(&rules).status().unwrap();
    assert!(checked.success());
    let mut check = Command::new("promtool");
    let mut check = check.args(["check", "metrics"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(check.stdin.as_mut().unwrap(), metrics.as_bytes()).unwrap();
    assert!(check.wait().unwrap().success());
}
