//! What we depend on: licences, one TLS stack, one HTTP, registries only. `deny.toml` says the same to
//! cargo-deny; this needs nothing but cargo, offline.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The licences that an MIT OR Apache-2.0 project can take in.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
];

/// Crates that must not come in: other TLS stacks and crypto providers, other resolvers of our questions.
const BANNED: &[&str] = &[
    "openssl",
    "openssl-sys",
    "native-tls",
    "aws-lc-rs",
    "aws-lc-sys",
    "boring",
    "reqwest",
    "async-std",
    "diesel",
    "sqlx",
];

/// Crates of which there is one version, whose types meet in our code.
const SINGLE: &[&str] = &[
    "http",
    "http-body",
    "hyper",
    "h2",
    "tokio",
    "rustls",
    "ring",
    "libsqlite3-sys",
    "sha2",
    "digest",
    "toml",
    "serde",
];

struct Package {
    name: String,
    version: String,
    licence: String,
    source: Option<String>,
}

fn packages() -> Vec<Package> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--offline", "--locked", "--format-version", "1"]);
    metadata.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = metadata.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let used: BTreeSet<String> =
        all["resolve"]["nodes"].as_array().unwrap().iter().map(|n| text(&n["id"])).collect();
    let packages =
        all["packages"].as_array().unwrap().iter().filter(|package| used.contains(&text(&package["id"])));
    let packages = packages.map(|package| Package {
        name: text(&package["name"]),
        version: text(&package["version"]),
        licence: text(&package["license"]),
        source: package["source"].as_str().map(str::to_owned),
    });
    packages.collect()
}

/// Whether an SPDX expression can be satisfied with what we allow.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let allowed = either(&tokens, &mut at);
    allowed && at == tokens.len()
}

fn either(tokens: &[&str], at: &mut usize) -> bool {
    let mut allowed = both(tokens, at);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= both(tokens, at);
    }
    allowed
}

fn both(tokens: &[&str], at: &mut usize) -> bool {
    let mut allowed = one(tokens, at);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one(tokens, at);
    }
    allowed
}

fn one(tokens: &[&str], at: &mut usize) -> bool {
    let Some(token) = tokens.get(*at) else { return false };
    *at += 1;
    if *token == "(" {
        let allowed = either(tokens, at);
        *at += 1;
        return allowed;
    }
    if tokens.get(*at) == Some(&"WITH") {
        let whole = format!("{token} WITH {}", tokens.get(*at + 1).unwrap_or(&""));
        *at += 2;
        return LICENCES.contains(&whole.as_str()) || LICENCES.contains(token);
    }
    LICENCES.contains(token)
}

#[test]
fn every_licence_is_one_we_can_take() {
    let wrong: Vec<_> = packages()
        .iter()
        .filter(|package| !is_allowed(&package.licence))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.licence))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_banned_nothing_from_git_and_no_second_stack() {
    let packages = packages();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in &packages {
        assert!(!BANNED.contains(&package.name.as_str()), "{} came in", package.name);
        let source = package.source.as_deref().unwrap_or("registry+path");
        assert!(source.starts_with("registry+"), "{}: {source}", package.name);
        versions.entry(&package.name).or_default().push(&package.version);
    }
    for name in SINGLE {
        let found = versions.get(name).map_or(0, Vec::len);
        assert!(found <= 1, "{name} stands in the tree {found} times: {:?}", versions[name]);
    }
    println!("{} crates, ours included", packages.len());
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    for (expression, allowed) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("MIT/Apache-2.0", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-3.0 OR LGPL-2.1) AND MIT", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
        ("", false),
        ("MIT OR", true),
    ] {
        assert_eq!(is_allowed(expression), allowed, "{expression}");
    }
}
