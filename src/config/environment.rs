//! What the configuration takes from the process it runs in: variables, and whether it is root.
//!
//! A value of its own, so that tests can have any environment without touching the process's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The environment a configuration is loaded in.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    root: bool,
    host_name: String,
}

/// The system's configuration.
pub const SYSTEM_FILE: &str = "/etc/larder/larder.toml";
/// Where the shipped unit has the secret from.
const CREDENTIAL_STORE: &str = "/etc/credstore";
/// The variable by which systemd says where it has put that.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// `LARDER_…` variables that name no key.
const NO_KEYS: [&str; 3] = ["LARDER_SECRET", "LARDER_MORMOT_SECRET", "LARDER_CONFIG"];

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: variables.collect(), root: is_root(), host_name: host_name() }
    }

    /// The same for commands that root gives about the system's own node, whose configuration this is: its secret is
    /// where its unit has it from, though systemd has handed this process nothing.
    #[must_use]
    pub fn of_service(mut self, file: Option<&Path>) -> Self {
        if file == Some(Path::new(SYSTEM_FILE)) && self.get(CREDENTIALS).is_none() {
            self.variables.insert(CREDENTIALS.to_owned(), CREDENTIAL_STORE.to_owned());
        }
        self
    }

    /// The folder with systemd's credentials.
    pub(super) fn credentials(&self) -> Option<&Path> {
        self.get(CREDENTIALS).map(Path::new)
    }

    /// A made-up one, of a plain user on a machine called `host`.
    pub fn of(variables: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self { variables: variables.collect(), root: false, host_name: "host".to_owned() }
    }

    /// A variable, unless it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The name of this machine.
    pub fn host_name(&self) -> &str {
        &self.host_name
    }

    /// Variables that lay a value over a key: the variable, the dotted key, the value.
    pub(super) fn overrides(&self) -> impl Iterator<Item = (&str, String, &str)> {
        self.variables.iter().filter_map(|(name, value)| {
            let key = name.strip_prefix("LARDER_")?;
            let key = key.to_ascii_lowercase().replace("__", ".");
            (!NO_KEYS.contains(&name.as_str())).then_some((name.as_str(), key, value.as_str()))
        })
    }

    /// The folder of systemd's variable, of root, or of a plain user.
    pub(super) fn folder(
        &self,
        systemd: &str,
        of_root: &str,
        xdg: &str,
        below_home: &str,
    ) -> Option<PathBuf> {
        if let Some(first) = self.get(systemd).and_then(|folders| folders.split(':').next()) {
            return Some(PathBuf::from(first));
        }
        if self.root {
            return Some(PathBuf::from(of_root));
        }
        self.user_folder(xdg, below_home)
    }

    /// A plain user's folder for Larder.
    pub fn user_folder(&self, xdg: &str, below_home: &str) -> Option<PathBuf> {
        let base = match self.get(xdg).map(PathBuf::from).filter(|base| base.is_absolute()) {
            Some(base) => base,
            None => PathBuf::from(self.get("HOME")?).join(below_home),
        };
        Some(base.join("larder"))
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(unix)]
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "larder".to_owned() } else { name }
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_unset| "larder".to_owned())
}
