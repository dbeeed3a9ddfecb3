//! A disk that loses its power: from recorded calls to the states it may be found in.
//!
//! Files and folders are inodes; a name is an entry in a folder. A sync of a file settles what was written to it, a
//! sync of a folder settles its entries; a file's sync says nothing of its name. Of two names that a rename touches both
//! or neither change, and it is settled with the folder it leads to. What is not settled may be there or not, each by
//! itself: more than any one filesystem does, so what holds here holds on all of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::trace::Call;
use crate::support::Rng;

/// Begins what the traced process says to this test by writing it to nowhere.
pub const SAID: &str = "larder-test-says";

type Inode = usize;

/// Something that changes the disk, or says that it must have changed.
#[derive(Debug, Clone)]
enum Op {
    Entry { folder: Inode, name: OsString, to: Inode },
    Gone { folder: Inode, name: OsString },
    Rename { from: (Inode, OsString), to: (Inode, OsString), inode: Inode },
    Write { inode: Inode, at: u64, bytes: Vec<u8> },
    Length { inode: Inode, length: u64 },
    Sync { inode: Inode },
    Said(String),
}

/// What was done to one folder, and in which inodes it all happened.
pub struct Recording {
    ops: Vec<Op>,
    /// Whether an inode is a folder.
    folders: Vec<bool>,
    /// The path at which an inode first appeared, below the root.
    paths: Vec<PathBuf>,
}

/// A state: the power went before the call `before`, and of what was done until then these are there.
pub struct Cut {
    before: usize,
    kept: Vec<usize>,
}

/// What the process sees while it runs.
struct Seen {
    recording: Recording,
    root: PathBuf,
    entries: HashMap<PathBuf, Inode>,
    open: HashMap<i64, (Inode, u64)>,
    nowhere: HashSet<i64>,
}

impl Op {
    /// Of what kind and of whom it speaks, if it is something that was said.
    fn said(&self) -> Option<(&str, &str)> {
        if let Self::Said(text) = self { text.split_once(' ') } else { None }
    }
}

impl Recording {
    /// Of the calls that concern what lies below `root`, which was empty before.
    pub fn of(root: &Path, calls: &[Call]) -> Self {
        let recording = Self { ops: Vec::new(), folders: vec![true], paths: vec![PathBuf::new()] };
        let mut seen = Seen {
            recording,
            root: root.to_owned(),
            entries: HashMap::from([(root.to_owned(), 0)]),
            open: HashMap::new(),
            nowhere: HashSet::new(),
        };
        calls.iter().for_each(|call| seen.note(call));
        seen.recording
    }

    /// The same without what lies elsewhere than in one folder of the root.
    pub fn below(&self, folder: &str) -> Self {
        let is_here = |inode: &Inode| *inode == 0 || self.paths[*inode].starts_with(folder);
        let keep = |op: &&Op| match op {
            Op::Entry { to, .. } | Op::Rename { inode: to, .. } => is_here(to),
            Op::Gone { folder, .. } => is_here(folder),
            Op::Write { inode, .. } | Op::Length { inode, .. } | Op::Sync { inode } => is_here(inode),
            Op::Said(_) => true,
        };
        let ops = self.ops.iter().filter(keep).cloned().collect();
        Self { ops, folders: self.folders.clone(), paths: self.paths.clone() }
    }

    pub fn len(&self) -> usize {
        self.ops.iter().filter(|op| !matches!(op, Op::Said(_))).count()
    }

    pub fn syncs(&self) -> usize {
        self.ops.iter().filter(|op| matches!(op, Op::Sync { .. })).count()
    }

    /// What the process said of this kind.
    pub fn said<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let words = self.ops.iter().filter_map(Op::said);
        words.filter(move |(what, _)| *what == kind).map(|(_, of)| of)
    }

    /// What it had said when the power went.
    pub fn said_before<'a>(&'a self, cut: &Cut) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.ops[..cut.before].iter().filter_map(Op::said)
    }

    /// Makes the folder what this state is.
    pub fn put(&self, cut: &Cut, folder: &Path) {
        let (mut entries, mut contents) = (BTreeMap::new(), HashMap::new());
        for op in cut.kept.iter().map(|at| &self.ops[*at]) {
            self.apply(op, &mut entries, &mut contents);
        }
        self.put_folder(0, folder, &entries, &contents);
    }

    fn apply(
        &self,
        op: &Op,
        entries: &mut BTreeMap<(Inode, OsString), Inode>,
        contents: &mut HashMap<Inode, Vec<u8>>,
    ) {
        match op {
            Op::Entry { folder, name, to } => drop(entries.insert((*folder, name.clone()), *to)),
            Op::Gone { folder, name } => drop(entries.remove(&(*folder, name.clone()))),
            Op::Rename { from, to, inode } => {
                if entries.get(from) == Some(inode) {
                    entries.remove(from);
                }
                entries.insert(to.clone(), *inode);
            }
            Op::Write { inode, at, bytes } => {
                let content = contents.entry(*inode).or_default();
                let end = *at as usize + bytes.len();
                content.resize(content.len().max(end), 0);
                content[*at as usize..end].copy_from_slice(bytes);
            }
            Op::Length { inode, length } => contents.entry(*inode).or_default().resize(*length as usize, 0),
            Op::Sync { .. } | Op::Said(_) => {}
        }
    }

    fn put_folder(
        &self,
        inode: Inode,
        path: &Path,
        entries: &BTreeMap<(Inode, OsString), Inode>,
        contents: &HashMap<Inode, Vec<u8>>,
    ) {
        std::fs::create_dir_all(path).unwrap();
        for ((_, name), to) in entries.range((inode, OsString::new())..(inode + 1, OsString::new())) {
            let path = path.join(name);
            if self.folders[*to] {
                self.put_folder(*to, &path, entries, contents);
            } else {
                std::fs::write(&path, contents.get(to).map(Vec::as_slice).unwrap_or_default()).unwrap();
            }
        }
    }

    /// The state in words, for whoever has to find out why it is a violation.
    pub fn explain(&self, cut: &Cut) -> String {
        let line = |at: usize| {
            let text = match &self.ops[at] {
                Op::Write { inode, at, bytes } => {
                    format!("{} bytes at {at} of {}", bytes.len(), self.paths[*inode].display())
                }
                Op::Length { inode, length } => {
                    format!("length {length} of {}", self.paths[*inode].display())
                }
                Op::Sync { inode } => format!("SYNC {}", self.paths[*inode].display()),
                Op::Entry { to, .. } => format!("entry {}", self.paths[*to].display()),
                Op::Gone { folder, name } => {
                    format!("gone {}", self.paths[*folder].join(name).display())
                }
                Op::Rename { to, .. } => format!("rename to {}", self.paths[to.0].join(&to.1).display()),
                Op::Said(text) => format!("SAID {text}"),
            };
            format!("{} {text}", if cut.kept.contains(&at) { "+" } else { "-" })
        };
        let from = cut.before.saturating_sub(60);
        (from..cut.before).map(line).collect::<Vec<_>>().join("\n")
    }

    /// A name for what this state is on the disk, without putting it there.
    fn name(&self, cut: &Cut) -> u64 {
        let mut entries = BTreeMap::new();
        let mut written: BTreeMap<Inode, Vec<usize>> = BTreeMap::new();
        for at in &cut.kept {
            match &self.ops[*at] {
                Op::Write { inode, .. } | Op::Length { inode, .. } => {
                    written.entry(*inode).or_default().push(*at);
                }
                op @ (Op::Entry { .. }
                | Op::Gone { .. }
                | Op::Rename { .. }
                | Op::Sync { .. }
                | Op::Said(_)) => {
                    self.apply(op, &mut entries, &mut HashMap::new());
                }
            }
        }
        let mut hasher = DefaultHasher::new();
        entries.hash(&mut hasher);
        let named: HashSet<Inode> = entries.values().copied().collect();
        written.iter().filter(|(inode, _)| named.contains(inode)).for_each(|it| it.hash(&mut hasher));
        // what was promised by then is a part of the question
        self.said_before(cut).count().hash(&mut hasher);
        hasher.finish()
    }
}

impl Seen {
    fn note(&mut self, call: &Call) {
        match call.name.as_str() {
            "open" | "creat" => self.opened(call.bytes(0), call.word(1), call.result),
            "openat" => self.opened(call.bytes(1), call.word(2), call.result),
            "close" => {
                self.open.remove(&call.number(0));
                self.nowhere.remove(&call.number(0));
            }
            "dup" => self.copied(call.number(0), call.result),
            "fcntl" if call.word(1).starts_with("F_DUPFD") => self.copied(call.number(0), call.result),
            "write" => self.written(call),
            "pwrite64" => {
                if let Some((inode, _)) = self.open.get(&call.number(0)).copied() {
                    let bytes = call.bytes(1)[..call.result as usize].to_vec();
                    self.recording.ops.push(Op::Write { inode, at: call.number(3) as u64, bytes });
                }
            }
            "ftruncate" => {
                if let Some((inode, _)) = self.open.get(&call.number(0)).copied() {
                    self.recording.ops.push(Op::Length { inode, length: call.number(1) as u64 });
                }
            }
            "fsync" | "fdatasync" => {
                if let Some((inode, _)) = self.open.get(&call.number(0)).copied() {
                    self.recording.ops.push(Op::Sync { inode });
                }
            }
            "mkdir" => self.made(call.bytes(0), true),
            "mkdirat" => self.made(call.bytes(1), true),
            "rename" => self.renamed(call.bytes(0), call.bytes(1)),
            "renameat" | "renameat2" => self.renamed(call.bytes(1), call.bytes(3)),
            "unlink" | "rmdir" => self.removed(call.bytes(0)),
            "unlinkat" => self.removed(call.bytes(1)),
            _ => {
                let concerns = self.open.contains_key(&call.number(0));
                assert!(!concerns || call.name == "fcntl", "this disk does not know {call:?}");
            }
        }
    }

    fn path(&self, bytes: &[u8]) -> Option<PathBuf> {
        let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
        path.starts_with(&self.root).then_some(path)
    }

    fn opened(&mut self, path: &[u8], flags: &str, fd: i64) {
        self.open.remove(&fd);
        self.nowhere.remove(&fd);
        if path == b"/dev/null" {
            self.nowhere.insert(fd);
        }
        let Some(name) = self.path(path) else { return };
        if !self.entries.contains_key(&name) {
            self.made(path, false);
        }
        let inode = self.entries[&name];
        if flags.contains("O_TRUNC") {
            self.recording.ops.push(Op::Length { inode, length: 0 });
        }
        self.open.insert(fd, (inode, 0));
    }

    fn copied(&mut self, from: i64, to: i64) {
        if let Some(open) = self.open.get(&from).copied() {
            self.open.insert(to, open);
        }
    }

    fn written(&mut self, call: &Call) {
        let bytes = &call.bytes(1)[..(call.result as usize).min(call.bytes(1).len())];
        if let Some((inode, at)) = self.open.get_mut(&call.number(0)) {
            self.recording.ops.push(Op::Write { inode: *inode, at: *at, bytes: bytes.to_vec() });
            *at += bytes.len() as u64;
        } else if self.nowhere.contains(&call.number(0))
            && let Some(said) = str::from_utf8(bytes).ok().and_then(|text| text.strip_prefix(SAID))
        {
            self.recording.ops.push(Op::Said(said.trim().to_owned()));
        }
    }

    fn made(&mut self, path: &[u8], is_folder: bool) {
        let Some(path) = self.path(path).filter(|path| !self.entries.contains_key(path)) else { return };
        let to = self.recording.folders.len();
        self.recording.folders.push(is_folder);
        self.recording.paths.push(path.strip_prefix(&self.root).unwrap().to_owned());
        let (folder, name) = self.place(&path);
        self.entries.insert(path, to);
        self.recording.ops.push(Op::Entry { folder, name, to });
    }

    fn removed(&mut self, path: &[u8]) {
        let Some(path) = self.path(path) else { return };
        let (folder, name) = self.place(&path);
        self.entries.remove(&path);
        self.recording.ops.push(Op::Gone { folder, name });
    }

    fn renamed(&mut self, from: &[u8], to: &[u8]) {
        let (Some(from), Some(to)) = (self.path(from), self.path(to)) else { return };
        let (old, new) = (self.place(&from), self.place(&to));
        let inode = self.entries.remove(&from).unwrap();
        assert!(!self.recording.folders[inode], "this disk renames no folders");
        self.entries.insert(to, inode);
        self.recording.ops.push(Op::Rename { from: old, to: new, inode });
    }

    fn place(&self, path: &Path) -> (Inode, OsString) {
        (self.entries[path.parent().unwrap()], path.file_name().unwrap().to_owned())
    }
}

/// The states of a recording, each once.
pub struct States<'a> {
    recording: &'a Recording,
    /// Of so many unsettled changes every subset is a state; of more, every subset of the last so many with all,
    /// none, or some of those before.
    exhaustive: usize,
    /// So many mixtures of all unsettled changes are tried besides.
    mixtures: usize,
    seen: HashSet<u64>,
    rng: Rng,
}

impl<'a> States<'a> {
    pub fn new(recording: &'a Recording, exhaustive: usize, mixtures: usize) -> Self {
        Self { recording, exhaustive, mixtures, seen: HashSet::new(), rng: Rng::new("crash") }
    }

    /// Shows states, evenly from all moments where there are more than `most`, and counts them.
    pub fn each(&mut self, most: usize, mut show: impl FnMut(&Cut)) -> usize {
        let moments = self.recording.ops.len() + 1;
        let mut looked = 0;
        for before in 0..moments {
            let share = (most.saturating_sub(looked) / (moments - before)).max(1);
            let mut fresh = self.at(before);
            while fresh.len() > share {
                let at = self.rng.below(fresh.len() as u64) as usize;
                fresh.swap_remove(at);
            }
            fresh.iter().for_each(&mut show);
            looked += fresh.len();
        }
        looked
    }

    /// The states in which the disk may be if the power goes before this call, but for those seen before.
    fn at(&mut self, before: usize) -> Vec<Cut> {
        let (settled, open) = self.settled(before);
        let tail = open.len().saturating_sub(self.exhaustive);
        let (old, last) = open.split_at(tail);
        let mut kept: Vec<Vec<usize>> = Vec::new();
        for mask in 0..1_u64 << last.len() {
            let subset = |of: &[usize], mask: u64| -> Vec<usize> {
                of.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, at)| *at).collect()
            };
            let chosen = subset(last, mask);
            kept.push(chosen.clone());
            if !old.is_empty() {
                kept.push([old, &chosen].concat());
                let some: Vec<usize> = old.iter().copied().filter(|_| self.rng.below(2) == 1).collect();
                kept.push([some, chosen].concat());
            }
        }
        for _ in 0..if old.is_empty() { 0 } else { self.mixtures } {
            kept.push(open.iter().copied().filter(|_| self.rng.below(2) == 1).collect());
        }
        let cuts = kept.into_iter().map(|mut kept| {
            kept.extend(&settled);
            kept.sort_unstable();
            Cut { before, kept }
        });
        let (recording, seen) = (self.recording, &mut self.seen);
        cuts.filter(|cut| seen.insert(recording.name(cut))).collect()
    }

    /// What is certainly there, and what may be.
    fn settled(&self, before: usize) -> (Vec<usize>, Vec<usize>) {
        let ops = &self.recording.ops[..before];
        let changes = ops.iter().enumerate().filter(|(_, op)| !matches!(op, Op::Sync { .. } | Op::Said(_)));
        changes.map(|(at, _)| at).partition(|at| {
            let by = match &ops[*at] {
                Op::Entry { folder, .. } | Op::Gone { folder, .. } => *folder,
                Op::Rename { to, .. } => to.0,
                Op::Write { inode, .. } | Op::Length { inode, .. } | Op::Sync { inode } => *inode,
                Op::Said(_) => return false,
            };
            ops[*at..].iter().any(|op| matches!(op, Op::Sync { inode } if *inode == by))
        })
    }
}
