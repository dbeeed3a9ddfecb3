//! The authority: made, shown, installed, removed; what it cannot vouch for; what the settings may say.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::{authority, describe, intercepting, named, trusting};
use crate::support::daemon::{BINARY, bare_command, larder, run};
use crate::support::{Ask, Larder, Origin, Script, Stunnel, tools, wait_until};

#[test]
fn an_authority_is_made_shown_and_removed() {
    let a = describe("a", 443).ready_to_start();
    a.cli(&["ca", "show"]).assert_code(3);
    let made = a.cli(&["ca", "new"]).assert_code(0);
    assert!(made.stdout.contains("example.test, localhost"), "{}", made.stdout);
    a.cli(&["ca", "new"]).assert_code(1);
    let key = a.state_dir().join("ca.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = a.cli(&["ca", "show"]).assert_code(0).stdout;
    for word in
        ["PIP_CERT", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO", "http.sslCAInfo", "Firefox", "keytool"]
    {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let json: serde_json::Value = serde_json::from_str(&a.cli(&["ca", "show", "--json"]).stdout).unwrap();
    assert_eq!(json["domains"], serde_json::json!(["example.test", "localhost"]));
    assert_eq!((&json["fits"], &json["trusted"]), (&true.into(), &false.into()));
    let before = authority(&a);
    a.cli(&["ca", "new", "--replace"]).assert_code(0);
    assert_ne!(before, authority(&a));
    let nothing = a.cli(&["ca", "install", "--dry-run"]).assert_code(0).stdout;
    assert!(nothing.contains("would run: install -m 644"), "{nothing}");
    assert!(a.cli(&["ca", "remove", "--dry-run"]).assert_code(0).stdout.contains("would delete"));
    assert!(key.exists());
    a.cli(&["ca", "remove"]).assert_code(0);
    assert!(!key.exists());
    assert!(a.cli(&["ca", "remove"]).assert_code(0).stdout.contains("there is none"));
}

#[test]
fn nothing_is_made_where_no_host_is_named() {
    let a = Larder::new("a").ready_to_start();
    for command in ["new", "install"] {
        let refused = a.cli(&["ca", command]).assert_code(78);
        assert!(refused.stderr.contains("hint: write hosts"), "{}", refused.stderr);
    }
    assert!(a.cli(&["ca", "install", "--dry-run"]).code == 78);
    assert!(!a.state_dir().join("ca.key").exists());
}

#[test]
fn openssl_finds_the_key_worth_nothing_for_another_host() {
    if !tools::installed("openssl") {
        return;
    }
    let a = describe("a", 443).ready_to_start();
    a.cli(&["ca", "new"]).assert_code(0);
    std::fs::create_dir(a.home().join("w")).unwrap();
    let openssl = |arguments: &str| {
        let mut command = bare_command("openssl", a.home());
        command.args(arguments.split(' ')).current_dir(a.home().join("w"));
        run(command)
    };
    let (crt, key) = (a.state_dir().join("ca.crt"), a.state_dir().join("ca.key"));
    let text = openssl(&format!("x509 -in {} -noout -text", crt.display())).assert_code(0).stdout;
    println!("{text}");
    for line in ["X509v3 Name Constraints: critical", "DNS:example.test", "IP:0.0.0.0/0.0.0.0", "pathlen:0"] {
        assert!(text.contains(line), "{line}");
    }
    for (name, good) in [
        ("DNS:a.example.test", true),
        ("DNS:localhost", true),
        ("DNS:other.test", false),
        ("DNS:a.example.test,DNS:other.test", false),
        ("IP:127.0.0.1", false),
        ("DNS:a.example.test,IP:127.0.0.1", false),
    ] {
        openssl("req -newkey rsa:2048 -nodes -keyout leaf.key -subj /O=x -out leaf.csr").assert_code(0);
        std::fs::write(a.home().join("w/ext"), format!("subjectAltName={name}\n")).unwrap();
        let sign = format!("x509 -req -in leaf.csr -CA {} -CAkey {}", crt.display(), key.display());
        openssl(&format!("{sign} -days 1 -extfile ext -out leaf.crt")).assert_code(0);
        let verdict = openssl(&format!("verify -CAfile {} leaf.crt", crt.display()));
        println!("{name}: {}", verdict.said().trim().replace('\n', " | "));
        assert_eq!(verdict.code == 0, good, "{name}: {}", verdict.said());
    }
}

#[test]
fn hosts_that_change_want_another_authority() {
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let script = Script::new(1000);
    origin.serve("/f.bin", script.clone());
    let text = std::fs::read_to_string(a.config_file()).unwrap();
    let other = text.replace("[\"localhost\", \"*.example.test\"]", "[\"localhost\", \"*.other.test\"]");
    assert_ne!(text, other);
    std::fs::write(a.config_file(), &other).unwrap();
    let doctor = a.cli(&["doctor"]).said();
    let line = doctor.lines().skip_while(|line| !line.contains("interception")).take(2).collect::<String>();
    assert!(line.contains("other.test") && line.contains("larder ca install"), "{doctor}");
    a.admin_ask("POST", "/api/v1/reload").body(b"").send();
    wait_until("a line in the log", || a.log().contains("was not made for"));
    // What the old authority covers goes on.
    let way = trusting(&a, &origin, &["http/1.1"]);
    let ask =
        |way: &Stunnel| Ask::new(way.address(), "GET", "/f.bin").field("Host", &named(origin.address()));
    ask(&way).send().assert_whole(&script);
    let old = authority(&a);
    a.cli(&["ca", "new", "--replace"]).assert_code(0);
    a.admin_ask("POST", "/api/v1/reload").body(b"").send();
    ask(&trusting(&a, &origin, &["http/1.1"])).send().assert_whole(&script);
    let way = Stunnel::open(a.proxy(), &named(origin.address()), "localhost", &old, &["http/1.1"]);
    assert!(ask(&way).try_send().is_err(), "the old certificate is worth nothing any more");
}

#[test]
fn without_an_authority_it_is_a_tunnel_as_ever() {
    let origin = Origin::start_tls();
    let a = describe("a", origin.address().port()).start();
    let script = Script::new(1000);
    origin.serve("/f.bin", script.clone());
    assert!(a.log().contains("there is no certificate authority"), "{}", a.log());
    let host = named(origin.address());
    let way = Stunnel::open(a.proxy(), &host, "localhost", origin.certificate(), &["http/1.1"]);
    Ask::new(way.address(), "GET", "/f.bin").field("Host", &host).send().assert_whole(&script);
    assert!(a.count("/traffic/bytes_tunnelled") > 1000);
}

#[test]
fn a_pattern_that_cannot_be_is_told_why() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("c.toml");
    for (hosts, why) in [
        ("[\"*\"]", "name the hosts"),
        ("[\"a.*.org\"]", "at the front"),
        ("[\"10.0.0.1\"]", "is an address"),
        ("[\"https://example.org\"]", "leave out scheme"),
    ] {
        std::fs::write(&file, format!("[intercept]\nhosts = {hosts}\n")).unwrap();
        let checked = larder(home.path(), &["config", "check", file.to_str().unwrap()]).assert_code(78);
        assert!(checked.stderr.contains(why) && checked.stderr.contains("c.toml:2"), "{}", checked.stderr);
    }
    std::fs::write(&file, "[intercept]\nhosts = [\"*.org\"]\n").unwrap();
    let checked = larder(home.path(), &["config", "check", file.to_str().unwrap()]).assert_code(0);
    assert!(checked.stderr.contains("top-level domain"), "{}", checked.stderr);
}

/// In a mount namespace, where the system's list is a copy.
#[test]
fn the_system_trusts_it_and_forgets_it_again() {
    let debian = std::path::Path::new("/usr/local/share/ca-certificates").is_dir();
    if !debian || !tools::installed("update-ca-certificates") || !tools::installed("unshare") {
        return;
    }
    let a = describe("a", 443).ready_to_start();
    let script = r#"
        set -e
        mkdir -p anchors certs && cp -a /etc/ssl/certs/. certs/
        mount --bind anchors /usr/local/share/ca-certificates && mount --bind certs /etc/ssl/certs
        larder() { "$BINARY" "$@" --config larder.toml; }
        larder ca install; echo "-- again"; larder ca install
        ls /usr/local/share/ca-certificates/
        echo "-- openssl"; openssl verify -CApath /etc/ssl/certs state/ca.crt
        larder doctor | grep interception
        echo "-- remove"; larder ca remove; larder ca remove
        ls /usr/local/share/ca-certificates/ | wc -l; ls -l /etc/ssl/certs | grep -c larder || true
    "#;
    let mut command: Command = bare_command("unshare", a.home());
    let flags: &[&str] = if rustix::process::geteuid().is_root() { &["-m"] } else { &["-r", "-m"] };
    command.args(flags).args(["sh", "-c", script]).env("BINARY", BINARY).current_dir(a.home());
    let ran = run(command);
    if ran.stderr.contains("unshare failed") || ran.stderr.contains("permission denied") {
        return println!("skipped: {}", ran.stderr);
    }
    println!("{}", ran.said());
    let ran = ran.assert_code(0);
    for said in [
        "ran: install -m 644 ",
        "ran: update-ca-certificates\n",
        "-- again\nthe system's programs trust it already",
        "larder-",
        "ca.crt: OK",
        "ok    interception: of example.test, localhost",
        "ran: update-ca-certificates --fresh",
        "there is none",
    ] {
        assert!(ran.stdout.contains(said), "{said}\n{}", ran.said());
    }
    assert!(ran.stdout.ends_with("0\n0\n"), "{}", ran.stdout);
}
