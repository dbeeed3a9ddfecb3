//! The settings of each program: their text, where they go, and what must be said about them.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::edit::{How, Piece, nothing};
use super::foreign;
use super::node::Node;
use crate::cli::{Exit, Failure};
use crate::mirror::Preset;

/// The program that apt asks for its proxy.
const DETECT: &str = "etc/apt/larder-proxy-detect";

/// What can be told to use this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// Python packages
    Pip,
    /// JavaScript packages
    Npm,
    /// Rust crates
    Cargo,
    /// Debian packages
    Apt,
    /// Docker's daemon
    Docker,
    /// podman, skopeo, buildah
    Podman,
    /// containerd, and so Kubernetes
    Containerd,
    /// Hugging Face
    Hf,
    /// http_proxy for shells: curl, wget, git and others
    Env,
}

/// Where settings go.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// `/`, but for tests.
    pub(super) root: PathBuf,
    pub(super) home: Option<PathBuf>,
    pub(super) config_home: Option<PathBuf>,
    pub(super) cargo_home: Option<PathBuf>,
    pub(super) npmrc: Option<PathBuf>,
    /// For all users.
    pub(super) system: bool,
}

impl Program {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pip => "pip",
            Self::Npm => "npm",
            Self::Cargo => "cargo",
            Self::Apt => "apt",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Containerd => "containerd",
            Self::Hf => "hf",
            Self::Env => "env",
        }
    }

    /// Whether its settings are always those of the whole machine.
    pub(super) const fn is_of_machine(self) -> bool {
        matches!(self, Self::Apt | Self::Docker | Self::Containerd)
    }

    /// What becomes of it when the node does not answer, and what else there is to do.
    pub(super) fn notes(self, node: &Node) -> Vec<String> {
        let stuck = |who: &str| {
            format!(
                "{who} has no second way: while the node is down it cannot download. \
                 `larder setup {} --undo` takes the setting out",
                self.name()
            )
        };
        let notes = match self {
            Self::Pip => vec![stuck("pip")],
            Self::Npm => vec![stuck("npm")],
            Self::Cargo => vec![stuck("cargo")],
            Self::Hf => vec![stuck("huggingface_hub"), "it holds for shells that are opened from now on".to_owned()],
            Self::Env => vec![
                "curl, wget and git have no second way: while the node is down they reach nothing over http".to_owned(),
                "it holds for shells that are opened from now on; for this one: eval \"$(larder setup env)\"".to_owned(),
                format!("browsers have a second way: give them http://{}/proxy.pac", node.authority),
            ],
            Self::Apt => vec!["when the node is down, apt goes directly".to_owned()],
            Self::Docker => vec![
                "when the node is down, Docker asks Docker Hub itself; other registries are not mirrored".to_owned(),
                "then: systemctl reload docker".to_owned(),
            ],
            Self::Podman => vec!["when the node is down, podman asks the registry itself".to_owned()],
            Self::Containerd => vec![
                "when the node is down, containerd asks the registry itself".to_owned(),
                "config_path in containerd's config.toml must name /etc/containerd/certs.d, as it does by default since 2.0".to_owned(),
            ],
        };
        let far =
            "this address holds for programs on this machine; elsewhere, put the node's own in its place";
        notes.into_iter().chain(node.is_everywhere.then(|| far.to_owned())).collect()
    }

    /// The settings.
    pub(super) fn pieces(self, node: &Node, places: &Places) -> Result<Vec<Piece>, Failure> {
        let one = |path: PathBuf, how, text: String, foreign| {
            vec![Piece { program: self.name(), path, text, how, mode: 0o644, foreign }]
        };
        let at = &node.authority;
        Ok(match self {
            Self::Pip => {
                let path = if places.system {
                    places.root("etc/pip.conf")
                } else {
                    places.config("pip/pip.conf")?
                };
                one(path, How::Section("[global]"), pip(node)?, foreign::pip)
            }
            Self::Npm => one(places.npmrc()?, How::Top, npm(node)?, foreign::npm),
            Self::Cargo => one(places.cargo()?, How::End, cargo(node)?, foreign::cargo),
            Self::Apt => apt(node, places),
            Self::Docker => {
                node.mirror(Preset::Oci)?;
                let text = format!("\"registry-mirrors\": [\"http://{at}\"]");
                one(places.root("etc/docker/daemon.json"), How::Member("registry-mirrors"), text, nothing)
            }
            Self::Podman => {
                let below = "containers/registries.conf.d/50-larder.conf";
                let path = if places.system {
                    places.root(&format!("etc/{below}"))
                } else {
                    places.config(below)?
                };
                one(path, How::Whole, podman(node)?, nothing)
            }
            Self::Containerd => {
                node.mirror(Preset::Oci)?;
                one(
                    places.root("etc/containerd/certs.d/_default/hosts.toml"),
                    How::Whole,
                    containerd(node),
                    nothing,
                )
            }
            Self::Hf => {
                let (path, how) = places.profile("larder-hf.sh")?;
                one(path, how, hf(node)?, foreign::hf)
            }
            Self::Env => {
                let (path, how) = places.profile("larder.sh")?;
                one(path, how, env(node), foreign::env)
            }
        })
    }
}

impl Places {
    /// A path of the machine.
    pub(super) fn root(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn config(&self, path: &str) -> Result<PathBuf, Failure> {
        self.config_home.as_ref().map(|folder| folder.join(path)).ok_or_else(no_home)
    }

    fn npmrc(&self) -> Result<PathBuf, Failure> {
        match (&self.npmrc, &self.home) {
            (Some(named), _) => Ok(named.clone()),
            (None, Some(home)) if !self.system => Ok(home.join(".npmrc")),
            (None, _) if self.system => {
                Err(Failure::new(Exit::Failed, "npm does not tell where its settings for all users are")
                    .hint("install npm, or write the printed lines where `npm config get globalconfig` says"))
            }
            (None, _) => Err(no_home()),
        }
    }

    fn cargo(&self) -> Result<PathBuf, Failure> {
        if self.system {
            return Err(Failure::new(Exit::Failed, "cargo has no settings for all users")
                .hint("leave --system out and run it as each user"));
        }
        let home = self.home.as_ref().map(|home| home.join(".cargo"));
        let folder = self.cargo_home.clone().or(home).ok_or_else(no_home)?;
        let old = folder.join("config");
        if old.exists() {
            return Err(Failure::new(
                Exit::Failed,
                format!("cargo reads {} before config.toml", old.display()),
            )
            .hint("rename it to config.toml first"));
        }
        Ok(folder.join("config.toml"))
    }

    /// Where shells read variables from.
    fn profile(&self, name: &str) -> Result<(PathBuf, How), Failure> {
        if self.system {
            return Ok((self.root("etc/profile.d").join(name), How::Whole));
        }
        let home = self.home.as_ref().ok_or_else(no_home)?;
        let read_instead = [".bash_profile", ".bash_login"].map(|name| home.join(name));
        let path =
            read_instead.into_iter().find(|path| path.exists()).unwrap_or_else(|| home.join(".profile"));
        Ok((path, How::End))
    }
}

fn no_home() -> Failure {
    Failure::new(Exit::Failed, "there is no home folder to write settings in")
        .hint("set $HOME, or take --system")
}

fn pip(node: &Node) -> Result<String, Failure> {
    let trusted =
        if node.is_loopback { String::new() } else { format!("trusted-host = {}\n", node.authority) };
    Ok(format!(
        "# pip: a part of ~/.config/pip/pip.conf or /etc/pip.conf. Index and files come through Larder's mirror of\n\
         # PyPI; pip checks every file against the sum that the index states.\n\
         [global]\n\
         index-url = http://{}/m/{}/simple/\n{trusted}",
        node.authority,
        node.mirror(Preset::Pypi)?
    ))
}

fn npm(node: &Node) -> Result<String, Failure> {
    Ok(format!(
        "# npm: a part of ~/.npmrc, or of a project's .npmrc. Metadata and packages come through Larder's mirror; npm\n\
         # checks every package against the integrity value of its lock file, wherever the bytes came from.\n\
         registry=http://{}/m/{}/\n\
         # Lock files go to machines that have no such node: they shall not name this one.\n\
         omit-lockfile-registry-resolved=true\n",
        node.authority,
        node.mirror(Preset::Npm)?
    ))
}

fn cargo(node: &Node) -> Result<String, Failure> {
    Ok(format!(
        "# Cargo: a part of ~/.cargo/config.toml, or of a project's .cargo/config.toml. Index and crates come through\n\
         # Larder's mirror of crates.io; Cargo checks every crate against the sum in the index and in Cargo.lock.\n\
         [source.crates-io]\n\
         replace-with = \"larder\"\n\
         \n\
         [source.larder]\n\
         registry = \"sparse+http://{}/m/{}/\"\n",
        node.authority,
        node.mirror(Preset::Crates)?
    ))
}

fn apt(node: &Node, places: &Places) -> Vec<Piece> {
    let detect = places.root(DETECT);
    let piece = |path: PathBuf, text, mode| Piece {
        program: Program::Apt.name(),
        path,
        text,
        how: How::Whole,
        mode,
        foreign: nothing,
    };
    let settings = places.root("etc/apt/apt.conf.d/90larder");
    vec![piece(detect.clone(), apt_detect(node), 0o755), piece(settings, apt_settings(&detect), 0o644)]
}

/// What apt's own settings say.
pub(super) fn apt_settings(detect: &Path) -> String {
    format!(
        "// {}: /etc/apt/apt.conf.d/90larder. Repositories over http come through Larder; apt\n\
         // verifies what it installs by its own signatures. The program named here says DIRECT when the node is down.\n\
         Acquire::http::Proxy-Auto-Detect \"{}\";\n\
         \n\
         // https through a proxy is a tunnel that nothing can keep. To have an https repository kept, write it in\n\
         // sources.list by the URL prefix: deb http://127.0.0.1:8098/https/deb.example.org/debian stable main\n\
         Acquire::https::Proxy \"DIRECT\";\n",
        Piece::mark("apt"),
        detect.display()
    )
}

/// The program that apt asks. Perl is what every Debian has.
pub(super) fn apt_detect(node: &Node) -> String {
    format!(
        r#"#!/usr/bin/perl
# {}: /etc/apt/larder-proxy-detect. apt asks it for its proxy: the node, if it answers, else DIRECT.
use strict;
use warnings;
use IO::Socket::IP;

my $answers = eval {{
    local $SIG{{ALRM}} = sub {{ die "late\n" }};
    alarm 2;
    my $node = IO::Socket::IP->new(PeerHost => '{host}', PeerService => '{port}', Timeout => 1) or die "down\n";
    print {{$node}} "GET /proxy.pac HTTP/1.0\r\nHost: {at}\r\n\r\n";
    my $line = <$node>;
    alarm 0;
    defined $line && $line =~ m{{^HTTP/1\.[01] 200}};
}};
print $answers ? "http://{at}\n" : "DIRECT\n";
"#,
        Piece::mark("apt"),
        host = node.host,
        port = node.port,
        at = node.authority
    )
}

fn podman(node: &Node) -> Result<String, Failure> {
    node.mirror(Preset::Oci)?;
    let registry = node.mirrors.default_registry().unwrap_or_default();
    Ok(format!(
        "# {}: ~/.config/containers/registries.conf.d/50-larder.conf, or below /etc. For podman,\n\
         # skopeo and buildah. When the node is down they ask the registry itself.\n\
         [[registry]]\n\
         prefix = \"{registry}\"\n\
         location = \"{registry}\"\n\
         \n\
         [[registry.mirror]]\n\
         location = \"{}\"\n\
         insecure = true\n",
        Piece::mark("podman"),
        node.authority
    ))
}

fn containerd(node: &Node) -> String {
    format!(
        "# {}: /etc/containerd/certs.d/_default/hosts.toml. For every registry that has\n\
         # no folder of its own there. When the node is down, containerd asks the registry itself.\n\
         [host.\"http://{}\"]\n\
         capabilities = [\"pull\", \"resolve\"]\n",
        Piece::mark("containerd"),
        node.authority
    )
}

fn hf(node: &Node) -> Result<String, Failure> {
    Ok(format!(
        "# {}, for huggingface_hub and what builds on it. Xet transfers would go around the node.\n\
         HF_ENDPOINT=http://{}/m/{}\n\
         HF_HUB_DISABLE_XET=1\n\
         export HF_ENDPOINT HF_HUB_DISABLE_XET\n",
        Piece::mark("hf"),
        node.authority,
        node.mirror(Preset::Huggingface)?
    ))
}

fn env(node: &Node) -> String {
    let host = node.host.as_str();
    let own = if node.is_loopback { String::new() } else { format!(",{host}") };
    format!(
        "# {}. curl, wget, git, and most programs obey these. Only http can be kept this way: https\n\
         # goes directly, for through a proxy it is a tunnel that nothing can read. For https that Larder may keep,\n\
         # use a mirror or the URL prefix: curl http://{}/https/example.org/file\n\
         http_proxy=http://{}\n\
         no_proxy=localhost,127.0.0.1,::1{own}\n\
         export http_proxy no_proxy\n",
        Piece::mark("env"),
        node.authority,
        node.authority
    )
}
