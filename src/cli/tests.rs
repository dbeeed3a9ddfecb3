//! What the arguments mean.

use clap::{CommandFactory as _, Parser as _};

use super::admin_client::AdminClient;
use super::answers::Status;
use super::args::{BansAction, Cli, Command, ConfigAction};
use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("larder").chain(line.split_whitespace()))
}

#[test]
fn the_definition_holds() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_of_this_version_reads() {
    for line in [
        "run",
        "run --config /x",
        "--config /x run",
        "get http://e/x -o y --limit-rate 1MB --no-peers --no-resume --json",
        "get",
        "get -",
        "get http://e/x --digest-from http://e/SHA256SUMS",
        "status --json --config /x",
        "peers",
        "transfers --json",
        "bans",
        "bans --json",
        "bans add 10.0.0.9 --for 10m",
        "bans rm ::1",
        "ls",
        "ls example --json",
        "info http://e/x",
        "pin http://e/x",
        "unpin http://e/x",
        "rm http://e/x",
        "verify http://e/x",
        "verify --all --repair",
        "gc",
        "gc --to 5GiB",
        "config check",
        "config check /x --json",
        "config show --config /x",
        "config default",
        "secret new",
        "secret new -o /x",
        "secret fingerprint",
        "setup pip",
        "setup apt --write --dry-run --config /x",
        "setup hf --undo --system",
        "doctor",
        "demo",
        "completions bash",
        "man /x",
    ] {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn wrong_usage_is_told_from_the_rest() {
    for line in [
        "",
        "serve",
        "gc --to lots",
        "bans add here",
        "verify",
        "verify http://e/x --all",
        "get x --digest sha256:12",
        "completions dos",
        "config",
        "secret new passphrase",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
    assert_eq!(parse("--version").unwrap_err().exit_code(), 0);
    assert!(parse("--version").unwrap_err().to_string().starts_with("larder 0."));
}

#[test]
fn arguments_arrive_where_they_belong() {
    let cli = parse("bans add 10.0.0.9 --for 10m --config /x").unwrap();
    assert_eq!(cli.config.unwrap(), std::path::Path::new("/x"));
    let Command::Bans(bans) = cli.command else { panic!("another command") };
    let Some(BansAction::Add { address, duration, json }) = bans.action else { panic!("another action") };
    assert_eq!(
        (address.to_string().as_str(), duration.unwrap().to_string().as_str(), json),
        ("10.0.0.9", "10m", false)
    );
    let Command::Config(config) = parse("config check /y").unwrap().command else {
        panic!("another command")
    };
    assert!(matches!(config.action, ConfigAction::Check(args) if args.file.is_some()));
}

#[test]
fn exit_statuses_are_those_promised() {
    let all = [
        Exit::Done,
        Exit::Failed,
        Exit::NotFound,
        Exit::Mismatch,
        Exit::Network,
        Exit::PortTaken,
        Exit::Configuration,
    ];
    assert_eq!(all.map(Exit::status), [0, 1, 3, 4, 5, 69, 78]);
}

/// A daemon's admin side in a folder, by socket or by port, and the configuration that finds it.
fn with_daemon(by_socket: bool, meet: impl FnOnce(&AdminClient, &std::path::Path)) {
    let folder = tempfile::tempdir().unwrap();
    let token = crate::rest::Token::load_or_create(&folder.path().join("admin.token")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let stop = crate::shutdown::Shutdown::new();
    let mut listeners = crate::admin::Listeners::default();
    let tcp = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = tcp.local_addr().unwrap().port();
    if by_socket {
        let _context = runtime.enter();
        listeners.socket = Some(crate::admin::AdminSocket::bind(&folder.path().join("admin.sock")).unwrap());
        drop(tcp);
    } else {
        listeners.tcp.push(tcp);
    }
    let running = runtime.spawn(crate::admin::tests::server(token).run(listeners, stop.clone()));
    let file = folder.path().join("larder.toml");
    let text =
        format!("state_dir = \".\"\n[cache]\ndir = \"cache\"\n[admin]\nlisten = [\"127.0.0.1:{port}\"]\n");
    std::fs::write(&file, text).unwrap();
    meet(&AdminClient::of(&Some(file.clone())).map_err(|failure| failure.said).unwrap(), &file);
    stop.request();
    runtime.block_on(running).unwrap().unwrap();
}

#[test]
fn finds_its_node_by_socket_and_by_port() {
    for by_socket in [true, false] {
        with_daemon(by_socket, |client, file| {
            let status: Status = client.get("/status").map_err(|failure| failure.said).unwrap();
            assert_eq!((status.name.as_str(), status.peers().len()), ("box1", 1), "as administrators");
            let missing = client.get::<serde_json::Value>("/api/v1/blobs/12").unwrap_err();
            assert_eq!(missing.exit, Exit::Failed);
            for line in [
                "status",
                "peers --json",
                "transfers",
                "bans",
                "bans add 10.0.0.9 --for 1m",
                "bans rm ::1",
                "ls",
                "gc --json",
                "verify --all",
            ] {
                let mut cli = parse(line).unwrap();
                cli.config = Some(file.to_owned());
                assert_eq!(dispatch(cli).map_err(|failure| failure.said).unwrap(), Exit::Done, "{line}");
            }
            for line in ["info http://e/nothing", "rm 12", "pin http://e/nothing"] {
                let mut cli = parse(line).unwrap();
                cli.config = Some(file.to_owned());
                assert_eq!(dispatch(cli).unwrap_err().exit, Exit::NotFound, "{line}");
            }
        });
    }
}

#[test]
fn without_a_daemon_it_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("larder.toml");
    std::fs::write(&file, "state_dir = \".\"\n[cache]\ndir = \"c\"\n[admin]\nlisten = []\n").unwrap();
    let failure = AdminClient::of(&Some(file))
        .map_err(|f| f.said)
        .unwrap()
        .get::<serde_json::Value>("/status")
        .unwrap_err();
    let (what, hint) = failure.said.first().unwrap();
    assert!(what.starts_with("the daemon does not answer: ") && what.contains("admin.sock"), "{what}");
    assert!(hint.contains("larder run"), "{hint}");
}

/// What stands in blocks of this language in the README and the manual.
fn blocks(language: &str) -> Vec<(String, String)> {
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = std::fs::read_dir(top.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages =
        pages.filter(|path| path.extension().is_some_and(|end| end == "md")).chain([top.join("README.md")]);
    let fence = format!("```{language}\n");
    pages
        .flat_map(|page| {
            let (text, name) = (std::fs::read_to_string(&page).unwrap(), page.display().to_string());
            let blocks = text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
            blocks.map(|block| (name.clone(), block.to_owned())).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_command_of_the_manual_can_be_read() {
    let mut read = 0;
    for (page, block) in blocks("sh") {
        for line in block.replace("|\n", "| ").lines() {
            for part in line.split(" # ").next().unwrap().split(['|', '&', ';']) {
                let part = part.trim().trim_start_matches("sudo ");
                let Some(words) = part.strip_prefix("larder ").filter(|_| !part.contains("$(")) else {
                    continue;
                };
                let words = words.split(" > ").next().unwrap();
                assert!(parse(words).is_ok(), "{page}: {part}: {}", parse(words).unwrap_err());
                read += 1;
            }
        }
    }
    assert!(read > 30, "{read}");
}

#[test]
fn every_setting_of_the_manual_is_one() {
    let blocks = blocks("toml");
    assert!(blocks.len() > 8);
    for (page, block) in blocks {
        let read = toml::from_str::<crate::config::Config>(&block);
        assert!(read.is_ok(), "{page}: {block}\n{}", read.unwrap_err());
    }
}
