//! `larder setup`: settings that make programs use this node, printed, written, taken out again.
//!
//! The address is that of the configuration. What is written is a file of our own or a marked block in a file of
//! the user; a setting of somebody else that says the same thing is never replaced, but named. All changes are
//! reckoned first: where one cannot be made, none is.

mod disk;
mod edit;
mod foreign;
mod node;
mod program;
#[cfg(test)]
mod tests;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::args::SetupArgs;
use super::output::Steps;
use super::{ConfigFile, Exit, Failure, Output, output};
use crate::config::{Environment, load};
use edit::{Change, Piece};
use node::Node;
use program::Places;
pub(crate) use program::Program;

/// How long the node has to take a connection.
const ANSWERS: Duration = Duration::from_secs(1);

pub(super) fn run(node: &ConfigFile, args: &SetupArgs) -> Result<Exit, Failure> {
    let environment = Environment::of_process();
    let loaded = load(node.as_deref(), &environment)?;
    let node = Node::of(&loaded.config)?;
    let places = Places::of(&environment, args.system || args.program.is_of_machine(), args.program);
    let mut pieces = args.program.pieces(&node, &places)?;
    if args.undo {
        // what names another piece goes before it
        pieces.reverse();
    }
    let writes = args.write || (args.dry_run && !args.undo);
    if !writes && !args.undo {
        return print(args, &node, &pieces);
    }
    if writes {
        in_the_way(args.program, &node, &places)?;
    }
    let changes = pieces.iter().map(|piece| reckon(piece, args.undo)).collect::<Result<Vec<_>, _>>()?;
    let mut out = Steps::new(args.json);
    for (piece, change) in pieces.iter().zip(&changes) {
        if !args.dry_run {
            disk::carry_out(piece, change)?;
        }
        out.line(said(piece, change, args.undo, args.dry_run))?;
        if args.dry_run && writes && *change != Change::None && !args.json {
            piece.text.lines().try_for_each(|line| out.line(format!("    {line}")))?;
        }
    }
    out.end(document(args, &node, &pieces))?;
    if writes {
        // a document has them already
        let notes = if args.json { Vec::new() } else { args.program.notes(&node) };
        notes.iter().for_each(|note| output::note(&format!("note: {note}")));
        if TcpStream::connect_timeout(&node.address, ANSWERS).is_err() {
            output::warn(&format!("nothing answers at {} yet", node.address), "start the node: larder run");
        }
    }
    Ok(Exit::Done)
}

/// What belongs where, for programs.
fn document(args: &SetupArgs, node: &Node, pieces: &[Piece]) -> Value {
    let files = pieces.iter().map(|piece| json!({"path": piece.path, "text": piece.pasted()}));
    json!({
        "program": args.program.name(), "dry_run": args.dry_run, "files": files.collect::<Vec<_>>(),
        "notes": args.program.notes(node),
    })
}

/// The settings as they are, ready to be pasted; where they go is said beside them.
fn print(args: &SetupArgs, node: &Node, pieces: &[Piece]) -> Result<Exit, Failure> {
    let (program, mut out) = (args.program, Output::new());
    if args.json {
        return out.json(&document(args, node, pieces)).map(|()| Exit::Done);
    }
    for piece in pieces {
        output::note(&format!("# {}", piece.path.display()));
        out.text(&piece.pasted())?;
    }
    program.notes(node).iter().for_each(|note| output::note(&format!("# {note}")));
    output::note(&format!("# larder setup {} --write puts it there, --undo takes it out", program.name()));
    Ok(Exit::Done)
}

fn reckon(piece: &Piece, undo: bool) -> Result<Change, Failure> {
    let old = disk::read(&piece.path)?;
    let change = if undo { piece.take(old.as_deref()) } else { piece.put(old.as_deref()) };
    change.map_err(|clash| left_alone(&piece.path, &clash))
}

fn left_alone(path: &Path, clash: &str) -> Failure {
    Failure::new(Exit::Failed, format!("{} is left as it is: {clash}", path.display()))
        .hint("take that out first, or put in what `larder setup` prints by hand")
}

fn said(piece: &Piece, change: &Change, undo: bool, dry_run: bool) -> String {
    let path = piece.path.display();
    let is_block = piece.how != edit::How::Whole;
    let (did, would) = match (change, undo, is_block) {
        (Change::None, true, _) => return format!("nothing of larder's in {path}"),
        (Change::None, false, _) => return format!("{path} has it already"),
        (Change::Remove, ..) => ("removed", "remove"),
        (Change::Text(_), true, _) => ("took larder's lines out of", "take larder's lines out of"),
        (Change::Text(_), false, true) => ("put larder's lines into", "put larder's lines into"),
        (Change::Text(_), false, false) => ("wrote", "write"),
    };
    if dry_run { format!("would {would} {path}") } else { format!("{did} {path}") }
}

/// Settings in other files that would make ours vain, or that ours would replace.
fn in_the_way(program: Program, node: &Node, places: &Places) -> Result<(), Failure> {
    match program {
        Program::Apt => {
            for (key, ours) in [("Acquire::http::Proxy", ""), ("Acquire::https::Proxy", "DIRECT")] {
                if asked("apt-config", &["dump", "--format", "%v%n", key])
                    .is_some_and(|theirs| theirs != ours)
                {
                    let what = format!(
                        "apt has {key} set, which would go before larder's setting or be replaced by it"
                    );
                    let hint = format!("`grep -ri {key} /etc/apt` says where; take it out first");
                    return Err(Failure::new(Exit::Failed, what).hint(hint));
                }
            }
            Ok(())
        }
        Program::Podman => {
            let registry = node.mirrors.default_registry().unwrap_or_default();
            for path in places.container_files() {
                let text = disk::read(&path)?.unwrap_or_default();
                if let Some(clash) = foreign::podman(&text, registry) {
                    return Err(left_alone(&path, &clash));
                }
            }
            Ok(())
        }
        Program::Pip
        | Program::Npm
        | Program::Cargo
        | Program::Docker
        | Program::Containerd
        | Program::Hf
        | Program::Env => Ok(()),
    }
}

impl Places {
    fn of(environment: &Environment, system: bool, program: Program) -> Self {
        let path = |name: &str| environment.get(name).map(PathBuf::from);
        let home = path("HOME");
        let below_home = home.as_ref().map(|home| home.join(".config"));
        let npmrc = match (program, system) {
            (Program::Npm, true) => asked("npm", &["config", "get", "globalconfig"]).map(PathBuf::from),
            (Program::Npm, false) => path("NPM_CONFIG_USERCONFIG"),
            _ => None,
        };
        Self {
            root: PathBuf::from("/"),
            config_home: path("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute()).or(below_home),
            cargo_home: path("CARGO_HOME"),
            home,
            npmrc,
            system,
        }
    }

    /// Where registries may be configured besides our own file.
    fn container_files(&self) -> Vec<PathBuf> {
        let folders = [
            Some(self.root("etc/containers")),
            self.config_home.as_ref().map(|home| home.join("containers")),
        ];
        let mut files = Vec::new();
        for folder in folders.into_iter().flatten() {
            files.push(folder.join("registries.conf"));
            let dropped = std::fs::read_dir(folder.join("registries.conf.d")).into_iter().flatten().flatten();
            files.extend(dropped.map(|entry| entry.path()).filter(|path| !path.ends_with("50-larder.conf")));
        }
        files
    }
}

/// What a program says of itself, on one line.
fn asked(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!line.is_empty() && line != "undefined" && line != "null").then_some(line)
}
