//! From a file and an environment to a [`Config`].
//!
//! The file is read alone first, so that every complaint has its line: what cannot be read is noted, cut out
//! of the tree, and the rest is read again until it fits. Variables are laid over what is left. Relative paths
//! of the file are read from the file's folder, those of variables from the working folder.

mod tree;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::check;
use super::complaint::{Complaint, Complaints, Place};
use super::{Config, Environment, SYSTEM_FILE};
use tree::{cut, explain, note_places, place};

/// A configuration and where it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings, folders and names filled in.
    pub config: Config,
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// Where each value came from.
    pub sources: Sources,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Complaint>,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// A file or a variable.
    At(Place),
    /// Found out when loading, by this means.
    Found(&'static str),
}

/// Where each value came from, by dotted key.
#[derive(Debug, Clone, Default)]
pub struct Sources(BTreeMap<String, Source>);

impl Sources {
    /// Where the value of a dotted key came from.
    pub fn of(&self, key: &str) -> &Source {
        self.0.get(key).unwrap_or(&Source::Default)
    }

    /// Whether somebody set it.
    pub fn is_set(&self, key: &str) -> bool {
        matches!(self.of(key), Source::At(_))
    }

    /// Every key that somebody set or that was found out, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.0.iter().map(|(key, source)| (key.as_str(), source))
    }

    pub(super) fn place(&self, key: &str) -> Option<Place> {
        match self.of(key) {
            Source::At(place) => Some(place.clone()),
            Source::Default | Source::Found(_) => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::At(place) => place.fmt(f),
            Self::Found(means) => f.write_str(means),
        }
    }
}

/// Loads a named file, or the first of `$LARDER_CONFIG`, `/etc/larder/larder.toml` and
/// `$XDG_CONFIG_HOME/larder/larder.toml` that exists, or no file.
pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Loaded, Complaints> {
    let file = find(file, environment);
    let mut work = Work::default();
    if let Some(path) = &file {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        work.read_file(path, &text)?;
    }
    work.read_variables(environment);
    let mut config = Config::deserialize(work.table.clone().into_deserializer()).map_err(|error| {
        // Each part fitted on its own; only parts that forbid each other could get here.
        Complaints(vec![Complaint::about("", error.message())])
    })?;
    work.fill_in(&mut config, file.as_deref(), environment);
    let (clashes, warnings) = check::check(&config, &work.sources);
    let failed: Vec<String> = work.complaints.iter().map(|complaint| complaint.key.clone()).collect();
    work.complaints.extend(clashes.into_iter().filter(|clash| !failed.contains(&clash.key)));
    if !work.complaints.is_empty() {
        work.complaints.sort_by_key(|complaint| complaint.place.as_ref().map(Place::line));
        return Err(Complaints(work.complaints));
    }
    work.warnings.extend(warnings);
    Ok(Loaded { config, file, sources: work.sources, warnings: work.warnings })
}

fn find(named: Option<&Path>, environment: &Environment) -> Option<PathBuf> {
    if let Some(path) = named {
        return Some(path.to_owned());
    }
    if let Some(path) = environment.get("LARDER_CONFIG") {
        return Some(path.into());
    }
    let users =
        environment.user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("larder.toml"));
    [Some(PathBuf::from(SYSTEM_FILE)), users].into_iter().flatten().find(|path| path.exists())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Complaints {
    let complaint = Complaint::about("", format!("cannot read the configuration: {error}"));
    let hint = if error.kind() == std::io::ErrorKind::NotFound {
        "`larder config default` prints a file to start from"
    } else {
        "name another file with --config, or make this one readable"
    };
    Complaints(vec![complaint.at(Place::Whole(path.to_owned())).hint(hint)])
}

#[derive(Default)]
struct Work {
    table: toml::Table,
    sources: Sources,
    complaints: Vec<Complaint>,
    warnings: Vec<Complaint>,
}

impl Work {
    /// Reads what can be read; only broken TOML ends it, for then nothing else can be said.
    fn read_file(&mut self, path: &Path, text: &str) -> Result<(), Complaints> {
        let (tree, errors) = DeTable::parse_recoverable(text);
        let place = |at: Option<Range<usize>>| {
            at.map_or(Place::Whole(path.to_owned()), |at| place(path, text, at.start))
        };
        if !errors.is_empty() {
            let broken =
                |error: &toml::de::Error| Complaint::about("", error.message()).at(place(error.span()));
            return Err(Complaints(errors.iter().map(broken).collect()));
        }
        let span = tree.span();
        let mut tree = tree.into_inner();
        while let Err(error) =
            Config::deserialize(Deserializer::from(Spanned::new(span.clone(), tree.clone())))
        {
            let cut = error.span().and_then(|at| cut(&mut tree, at.start));
            let key = cut.clone().unwrap_or_default();
            self.complaints.push(explain(&key, error.message()).at(place(error.span())));
            if cut.is_none() {
                tree.clear();
            }
        }
        note_places(&tree, "", &mut |key, at| {
            self.sources.0.insert(key, Source::At(place(Some(at))));
        });
        if let Ok(table) = toml::Table::deserialize(Deserializer::from(Spanned::new(span, tree))) {
            self.table = table;
        }
        Ok(())
    }

    fn read_variables(&mut self, environment: &Environment) {
        let known: Vec<String> = known_keys();
        for (name, key, raw) in environment.overrides() {
            let place = Place::Variable(name.to_owned());
            if !known.contains(&key) {
                let what = format!("{name} names no key of the configuration and is ignored");
                self.warnings.push(Complaint::about("", what));
                continue;
            }
            match variable(&key, raw) {
                Ok(value) => {
                    insert(&mut self.table, &key, value);
                    self.sources.0.insert(key, Source::At(place));
                }
                Err(why) => self.complaints.push(explain(&key, &why).at(place)),
            }
        }
    }

    fn fill_in(&mut self, config: &mut Config, file: Option<&Path>, environment: &Environment) {
        let folder = file.and_then(Path::parent);
        for (key, path) in config.paths() {
            let in_file = matches!(self.sources.of(&key), Source::At(Place::File { .. }));
            if let (true, Some(folder), false) = (in_file, folder, path.as_os_str().is_empty()) {
                *path = folder.join(&*path);
            }
        }
        let state =
            environment.folder("STATE_DIRECTORY", "/var/lib/larder", "XDG_STATE_HOME", ".local/state");
        let cache = environment.folder("CACHE_DIRECTORY", "/var/cache/larder", "XDG_CACHE_HOME", ".cache");
        self.folder("state_dir", &mut config.state_dir, state, "found from $STATE_DIRECTORY, root or XDG");
        self.folder("cache.dir", &mut config.cache.dir, cache, "found from $CACHE_DIRECTORY, root or XDG");
        let runtime = environment.get("RUNTIME_DIRECTORY").and_then(|folders| folders.split(':').next());
        let beside = runtime.map_or_else(|| config.state_dir.clone(), PathBuf::from).join("admin.sock");
        self.folder(
            "admin.socket",
            &mut config.admin.socket,
            Some(beside),
            "found from $RUNTIME_DIRECTORY or state_dir",
        );
        if config.node_name.is_empty() {
            config.node_name = environment.host_name().to_owned();
            self.sources.0.insert("node_name".to_owned(), Source::Found("the host name"));
        }
    }

    fn folder(&mut self, key: &str, path: &mut PathBuf, found: Option<PathBuf>, means: &'static str) {
        if self.sources.is_set(key) && !path.as_os_str().is_empty() {
            return;
        }
        match found {
            Some(found) => {
                *path = found;
                self.sources.0.insert(key.to_owned(), Source::Found(means));
            }
            None => self.complaints.push(
                Complaint::about(key, "there is no usual place for it here").hint("set it, or set $HOME"),
            ),
        }
    }
}

/// A variable's value: TOML if that fits the key, else the text itself.
fn variable(key: &str, raw: &str) -> Result<toml::Value, String> {
    let fits = |value: &toml::Value| {
        let mut table = toml::Table::new();
        insert(&mut table, key, value.clone());
        Config::deserialize(table.into_deserializer()).map_err(|error| error.message().to_owned())
    };
    let as_toml = toml::de::ValueDeserializer::parse(raw).and_then(toml::Value::deserialize).ok();
    let text = toml::Value::String(raw.to_owned());
    match as_toml {
        Some(value) if fits(&value).is_ok() => Ok(value),
        Some(value @ (toml::Value::Array(_) | toml::Value::Table(_))) => fits(&value).map(|_| value),
        _ => fits(&text).map(|_| text),
    }
}

fn insert(table: &mut toml::Table, key: &str, value: toml::Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((section, key)) => {
            let section = table.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let toml::Value::Table(section) = section {
                section.insert(key.to_owned(), value);
            }
        }
    }
}

/// All dotted keys there are, read off the defaults.
fn known_keys() -> Vec<String> {
    let mut keys = Vec::new();
    for (name, value) in toml::Table::try_from(Config::default()).unwrap_or_default() {
        if let toml::Value::Table(section) = value {
            keys.extend(section.keys().map(|key| format!("{name}.{key}")));
        } else {
            keys.push(name);
        }
    }
    keys
}
