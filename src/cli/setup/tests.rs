//! What is written, shipped, and given back.

use std::path::Path;

use super::edit::How;
use super::*;
use crate::config::Config;
use clap::ValueEnum as _;

fn node() -> Node {
    Node::of(&Config::default()).unwrap()
}

fn places(root: &Path, system: bool) -> Places {
    let home = root.join("home");
    Places {
        root: root.to_owned(),
        config_home: Some(home.join(".config")),
        cargo_home: None,
        npmrc: system.then(|| root.join("etc/npmrc")),
        home: Some(home),
        system,
    }
}

#[test]
fn the_shipped_files_are_what_is_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/clients");
    let shipped = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let files = [
        (Program::Pip, vec!["pip.conf"]),
        (Program::Npm, vec!["npmrc"]),
        (Program::Cargo, vec!["cargo.toml"]),
        (Program::Apt, vec!["apt-proxy-detect", "apt.conf"]),
        (Program::Docker, vec!["docker-daemon.json"]),
        (Program::Podman, vec!["podman.conf"]),
        (Program::Containerd, vec!["containerd-hosts.toml"]),
        (Program::Hf, vec!["hf.sh"]),
        (Program::Env, vec!["env.sh"]),
    ];
    assert_eq!(files.len(), Program::value_variants().len());
    let known: usize = files.iter().map(|(_, names)| names.len()).sum();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), known, "every shipped file is somebody's");
    for (program, names) in files {
        let pieces = program.pieces(&node(), &places(Path::new("/"), false)).unwrap();
        assert_eq!(pieces.len(), names.len());
        for (piece, name) in pieces.iter().zip(names) {
            assert_eq!(piece.pasted(), shipped(name), "config/clients/{name}");
        }
    }
}

#[test]
fn what_is_written_is_taken_out_to_the_byte() {
    for system in [false, true] {
        for program in Program::value_variants() {
            let root = tempfile::tempdir().unwrap();
            let Ok(pieces) = program.pieces(&node(), &places(root.path(), system)) else {
                assert!(system && *program == Program::Cargo);
                continue;
            };
            for piece in &pieces {
                let old = match piece.how {
                    How::Member(_) => Some("{\n\t\"debug\": true\n}"),
                    How::Section(_) => Some("[global]\ncert = /x"),
                    How::End | How::Top => Some("a = 1"),
                    How::Whole => None,
                };
                if let Some(old) = old {
                    std::fs::create_dir_all(piece.path.parent().unwrap()).unwrap();
                    std::fs::write(&piece.path, old).unwrap();
                }
                for _ in 0..2 {
                    disk::carry_out(piece, &reckon(piece, false).unwrap()).unwrap();
                    assert!(
                        disk::read(&piece.path).unwrap().unwrap().contains("127.0.0.1:8098")
                            || piece.path.ends_with("90larder")
                    );
                }
                assert_eq!(reckon(piece, false).unwrap(), Change::None, "{program:?}");
                disk::carry_out(piece, &reckon(piece, true).unwrap()).unwrap();
                assert_eq!(disk::read(&piece.path).unwrap().as_deref(), old, "{program:?}");
                assert_eq!(reckon(piece, true).unwrap(), Change::None);
            }
        }
    }
}

#[test]
fn the_address_is_the_configurations() {
    let node = |listen: &str| {
        let config: Config = toml::from_str(&format!("[proxy]\nlisten = {listen}\n")).unwrap();
        Node::of(&config).map(|node| (node.authority, node.is_loopback, node.is_everywhere))
    };
    for (listen, want) in [
        ("[\"[::1]:8098\", \"127.0.0.2:9\"]", ("127.0.0.2:9", true, false)),
        ("[\"10.0.0.7:8098\", \"[::1]:8098\"]", ("[::1]:8098", true, false)),
        ("[\"0.0.0.0:8098\"]", ("127.0.0.1:8098", true, true)),
        ("[\"10.0.0.7:8098\"]", ("10.0.0.7:8098", false, false)),
    ] {
        assert_eq!(node(listen).unwrap(), (want.0.to_owned(), want.1, want.2), "{listen}");
    }
    assert!(node("[]").is_err() && node("[\"127.0.0.1:0\"]").is_err());
}

#[test]
fn a_mirror_that_is_switched_off_is_not_named() {
    let config: Config = toml::from_str("[[mirror]]\nname = \"pypi\"\nenabled = false\n").unwrap();
    let failure =
        Program::Pip.pieces(&Node::of(&config).unwrap(), &places(Path::new("/"), false)).unwrap_err();
    assert!(failure.sentence().contains("no mirror with preset = \"pypi\""), "{}", failure.sentence());
}
