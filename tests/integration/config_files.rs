//! Every file in `config/` is a promise: the program takes it, and what it prints is what we ship.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::chaos::files_under;
use crate::support::daemon::larder;

fn shipped() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config")
}

/// The dotted names of all keys in a table; the elements of lists of tables count once.
fn keys(table: &toml::Table, prefix: &str, into: &mut BTreeSet<String>) {
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        let tables = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(inner) = value.as_table() {
            keys(inner, &format!("{name}."), into);
        } else if tables.first().is_some_and(toml::Value::is_table) {
            tables.iter().filter_map(toml::Value::as_table).for_each(|t| keys(t, &format!("{name}."), into));
        } else {
            into.insert(name);
        }
    }
}

fn keys_of(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    keys(&text.parse().unwrap(), "", &mut found);
    found
}

#[test]
fn every_shipped_configuration_passes_the_check() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("secret"), "a secret that is long enough\n").unwrap();
    let files: Vec<_> = std::fs::read_dir(shipped()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let files: Vec<_> =
        files.iter().filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        larder(home.path(), &["config", "check", file.to_str().unwrap()]).assert_code(0);
    }
}

#[test]
fn the_printed_default_is_the_shipped_file_with_every_key() {
    let home = tempfile::tempdir().unwrap();
    let printed = larder(home.path(), &["config", "default"]).assert_code(0).stdout;
    assert_eq!(printed, std::fs::read_to_string(shipped().join("larder.toml")).unwrap());
    // Every key of the contract is there, commented or not.
    for key in CONTRACT {
        let name = key.rsplit('.').next().unwrap();
        let stands = printed.lines().any(|line| {
            let line = line.trim_start_matches(['#', ' ']);
            line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
        });
        assert!(stands, "{key} is missing in config/larder.toml");
    }
    let shown = larder(home.path(), &["config", "show"]).assert_code(0).stdout;
    let (shown, shipped) = (keys_of(&shown), keys_of(&printed));
    let missing: Vec<_> = shown
        .difference(&shipped)
        // lists of tables, of which the file has examples in comments
        .filter(|key| !["rule", "mirror", "limits"].iter().any(|list| key.starts_with(list)))
        .collect();
    assert!(missing.is_empty(), "settings that config/larder.toml does not name: {missing:?}");
}

#[test]
fn a_key_for_the_index_is_refused_where_nothing_can_be_sealed() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("larder.toml");
    std::fs::write(home.path().join("key"), "5a".repeat(32)).unwrap();
    std::fs::write(&file, "[index]\nkey_file = \"key\"\n").unwrap();
    for command in [&["config", "check"][..], &["run", "--config"]] {
        let arguments = [command, &[file.to_str().unwrap()]].concat();
        let said = larder(home.path(), &arguments).assert_code(78).said();
        assert!(said.contains("this build cannot encrypt it") && said.contains("sqlcipher"), "{said}");
    }
}

#[test]
fn the_clients_files_name_the_doors() {
    let files = files_under(&shipped().join("clients"));
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("8098"), "{} does not point at the proxy port", file.display());
    }
}

/// The keys of the outside.
const CONTRACT: &[&str] = &[
    "site",
    "secret_file",
    "accept_secret_files",
    "state_dir",
    "node_name",
    "drain_timeout",
    "cache.dir",
    "cache.max_size",
    "cache.min_free",
    "cache.max_age",
    "cache.max_object",
    "cache.scrub_every",
    "cache.scrub_rate",
    "cache.read_only",
    "proxy.listen",
    "proxy.allow",
    "proxy.connect_ports",
    "proxy.deny_private",
    "proxy.stale_if_error",
    "intercept.hosts",
    "intercept.on_refusal",
    "peers.enabled",
    "peers.listen",
    "peers.port",
    "peers.interfaces",
    "peers.broadcast",
    "peers.seeds",
    "peers.trust",
    "peers.witnesses",
    "peers.release",
    "peers.tls",
    "peers.min_size",
    "peers.wait_max",
    "peers.upload_rate",
    "peers.max_uploads",
    "peers.advertise",
    "mormot.enabled",
    "mormot.secret_file",
    "mormot.port",
    "mormot.interface",
    "mormot.broadcast",
    "origin.connect_timeout",
    "origin.stall_timeout",
    "origin.max_redirects",
    "origin.connections_per_host",
    "origin.proxy",
    "origin.sidecars",
    "origin.ca_file",
    "admin.listen",
    "admin.socket",
    "admin.tls_cert",
    "admin.tls_key",
    "admin.hosts",
    "bans.enabled",
    "bans.strikes",
    "bans.window",
    "bans.duration",
    "bans.max_duration",
    "bans.never",
    "index.catalogue",
    "index.catalogue_password_file",
    "index.catalogue_ca_file",
    "rule.match",
    "rule.cache",
    "rule.ttl",
    "rule.negative_ttl",
    "rule.share",
    "rule.ignore_query",
    "mirror.name",
    "mirror.preset",
    "mirror.url",
    "mirror.registry",
    "mirror.enabled",
    "log.level",
    "log.format",
];
