//! `[[mirror]]`: the mirrors of this node, those that are there by themselves included.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::preset::Preset;
use crate::http::Target;

/// The name in `/m/<name>/…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

/// The URL under which an upstream's paths begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base(Target);

/// Why a `[[mirror]]` is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// Not a name.
    #[error(
        "`{0}` is no name for a mirror: write small letters, digits, `-`, `_` and `.`, a letter or digit first"
    )]
    Name(String),
    /// Not a URL that can be a base.
    #[error(
        "`{0}` is no base of a mirror: write http:// or https://, a host, perhaps a path, and nothing behind"
    )]
    Url(String),
    /// Credentials would stand in the configuration and in links.
    #[error("the URL of a mirror carries user information, which would be shown: let the client send it")]
    UserInfo,
    /// Two with one name.
    #[error("two mirrors are called `{0}`")]
    Twice(String),
    /// Two for one registry.
    #[error("two mirrors are for the registry `{0}`")]
    SameRegistry(String),
    /// A generic mirror of nothing.
    #[error("the mirror `{0}` needs a `url`: there is no usual one for its preset")]
    NoUrl(String),
    /// A registry's name where there is no registry.
    #[error("the mirror `{0}` has a `registry`, which only the preset \"oci\" knows")]
    NoRegistry(String),
}

/// One `[[mirror]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The name in its path; the name of a preset replaces the mirror that is there by itself.
    pub name: Name,
    /// What kind of upstream it is; that of its name where it is not given, else "generic".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Where the upstream's paths begin; the public one of the preset where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Base>,
    /// Of a registry, the name by which programs call it (`ns=`); its host where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Whether it is there at all.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// A mirror as it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    pub(super) name: String,
    pub(super) preset: Preset,
    pub(super) base: Target,
    /// Of a registry, the name by which programs call it.
    pub(super) registry: Option<String>,
    /// The operator wrote its URL.
    pub(super) is_own: bool,
}

/// All mirrors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Config>", into = "Vec<Config>")]
pub struct Mirrors {
    written: Vec<Config>,
    pub(super) all: Vec<Arc<Mirror>>,
}

fn yes() -> bool {
    true
}

impl Mirrors {
    /// The written ones, and those that are there by themselves.
    pub fn new(written: Vec<Config>) -> Result<Self, MirrorError> {
        let mut all: Vec<Arc<Mirror>> = Vec::new();
        for (at, config) in written.iter().enumerate() {
            if written.iter().take(at).any(|other| other.name == config.name) {
                return Err(MirrorError::Twice(config.name.to_string()));
            }
            let mirror = Mirror::of(config)?;
            if let Some(registry) = &mirror.registry
                && all.iter().any(|other| other.registry.as_ref() == Some(registry))
            {
                return Err(MirrorError::SameRegistry(registry.clone()));
            }
            if config.enabled {
                all.push(Arc::new(mirror));
            }
        }
        for preset in Preset::ALL {
            let name = Name(preset.as_str().to_owned());
            if preset.upstream().is_some() && !written.iter().any(|config| config.name == name) {
                let config = Config { name, preset: None, url: None, registry: None, enabled: true };
                all.push(Arc::new(Mirror::of(&config)?));
            }
        }
        Ok(Self { written, all })
    }

    /// The names, for those who ask for another.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.all.iter().map(|mirror| mirror.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Where each leads, by its name.
    pub fn upstreams(&self) -> impl Iterator<Item = (&str, &Target)> {
        self.all.iter().map(|mirror| (mirror.name.as_str(), &mirror.base))
    }

    /// The mirror of a preset that a client setting should name: the one called like it, else the first.
    pub fn name_for(&self, preset: Preset) -> Option<&str> {
        let mut of_it = self.all.iter().filter(|mirror| mirror.preset == preset);
        let called = self.all.iter().find(|m| m.name == preset.as_str() && m.preset == preset);
        called.or_else(|| of_it.next()).map(|mirror| mirror.name.as_str())
    }

    /// The registry that `/v2/` leads to where the client names none, by the name programs call it.
    pub fn default_registry(&self) -> Option<&str> {
        self.default_oci().and_then(|mirror| mirror.registry.as_deref())
    }

    pub(super) fn default_oci(&self) -> Option<&Arc<Mirror>> {
        let is_oci = |mirror: &&Arc<Mirror>| mirror.preset == Preset::Oci;
        let called = self.all.iter().filter(is_oci).find(|mirror| mirror.name == Preset::Oci.as_str());
        called.or_else(|| self.all.iter().find(is_oci))
    }
}

impl Default for Mirrors {
    fn default() -> Self {
        // the built-in URLs are right: a test reads them
        Self::new(Vec::new()).unwrap_or(Self { written: Vec::new(), all: Vec::new() })
    }
}

impl TryFrom<Vec<Config>> for Mirrors {
    type Error = MirrorError;

    fn try_from(written: Vec<Config>) -> Result<Self, MirrorError> {
        Self::new(written)
    }
}

impl From<Mirrors> for Vec<Config> {
    fn from(mirrors: Mirrors) -> Self {
        mirrors.written
    }
}

impl Mirror {
    fn of(config: &Config) -> Result<Self, MirrorError> {
        let name = config.name.to_string();
        let preset = config.preset.or_else(|| name.parse().ok()).unwrap_or(Preset::Generic);
        let base = match (&config.url, preset.upstream()) {
            (Some(url), _) => url.0.clone(),
            (None, Some(usual)) => usual.parse::<Base>()?.0,
            (None, None) => return Err(MirrorError::NoUrl(name)),
        };
        let registry = match (&config.registry, preset) {
            (Some(registry), Preset::Oci) => Some(registry.to_ascii_lowercase()),
            (Some(_), _) => return Err(MirrorError::NoRegistry(name)),
            // what programs call docker.io answers under another name
            (None, Preset::Oci) if base.host() == "registry-1.docker.io" => Some("docker.io".to_owned()),
            (None, Preset::Oci) => Some(base.authority()),
            (None, _) => None,
        };
        Ok(Self { name, preset, base, registry, is_own: config.url.is_some() })
    }
}

impl FromStr for Name {
    type Err = MirrorError;

    fn from_str(text: &str) -> Result<Self, MirrorError> {
        let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = |c: u8| is_plain(c) || b"-_.".contains(&c);
        let right = text.len() <= 64 && text.bytes().next().is_some_and(is_plain) && text.bytes().all(fits);
        if right { Ok(Self(text.to_owned())) } else { Err(MirrorError::Name(text.to_owned())) }
    }
}

impl FromStr for Base {
    type Err = MirrorError;

    fn from_str(text: &str) -> Result<Self, MirrorError> {
        if text.contains('@') {
            return Err(MirrorError::UserInfo);
        }
        let wrong = || MirrorError::Url(text.to_owned());
        let uri: http::Uri = text.parse().map_err(|_ignored| wrong())?;
        let target = Target::from_uri(&uri).map_err(|_ignored| wrong())?;
        if target.path().contains('?') || text.contains('#') {
            return Err(wrong());
        }
        let path = target.path().trim_end_matches('/').to_owned();
        let base = Target::new(target.scheme(), &target.authority(), &path);
        base.map(Self).map_err(|_ignored| wrong())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.url())
    }
}

/// Both are written as text.
macro_rules! as_text {
    ($($kind:ty),*) => {$(
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    )*};
}
as_text!(Name, Base);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Mirrors, String> {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            mirror: Mirrors,
        }
        toml::from_str::<File>(text).map(|file| file.mirror).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn some_are_there_by_themselves() {
        let mirrors = read("").unwrap();
        assert_eq!(mirrors.names(), ["apt", "crates", "huggingface", "npm", "oci", "pypi"]);
        assert_eq!(mirrors.default_registry(), Some("docker.io"));
        assert_eq!(mirrors, Mirrors::default());
    }

    #[test]
    fn a_written_one_replaces_its_namesake_or_switches_it_off() {
        let text = "[[mirror]]\nname = \"pypi\"\nurl = \"http://index:3141/root/pypi/\"\n\
                    [[mirror]]\nname = \"npm\"\nenabled = false\n\
                    [[mirror]]\nname = \"quay\"\npreset = \"oci\"\nurl = \"https://quay.io\"\n";
        let mirrors = read(text).unwrap();
        assert_eq!(mirrors.names(), ["apt", "crates", "huggingface", "oci", "pypi", "quay"]);
        let pypi = mirrors.all.iter().find(|mirror| mirror.name == "pypi").unwrap();
        assert_eq!(
            (pypi.base.url().as_str(), pypi.preset, pypi.is_own),
            ("http://index:3141/root/pypi", Preset::Pypi, true)
        );
        let quay = mirrors.all.iter().find(|mirror| mirror.name == "quay").unwrap();
        assert_eq!(quay.registry.as_deref(), Some("quay.io"));
        assert_eq!(mirrors.default_registry(), Some("docker.io"));
        assert_eq!((mirrors.name_for(Preset::Npm), mirrors.name_for(Preset::Oci)), (None, Some("oci")));
        let again =
            toml::to_string(&std::collections::BTreeMap::from([("mirror", mirrors.clone())])).unwrap();
        assert_eq!(read(&again).unwrap(), mirrors);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("name = \"Py\"", "no name for a mirror"),
            ("name = \"@\"", "no name for a mirror"),
            ("name = \"\"", "no name for a mirror"),
            ("name = \"x\"", "needs a `url`"),
            ("name = \"x\"\nurl = \"ftp://h\"", "no base of a mirror"),
            ("name = \"x\"\nurl = \"https://h/?q\"", "no base of a mirror"),
            ("name = \"x\"\nurl = \"https://u:p@h/\"", "user information"),
            ("name = \"x\"\nurl = \"https://h\"\nregistry = \"h\"", "only the preset \"oci\""),
            (
                "name = \"x\"\nurl = \"https://h\"\n[[mirror]]\nname = \"x\"\nurl = \"https://h\"",
                "two mirrors are called",
            ),
            (
                "name = \"x\"\npreset = \"oci\"\n[[mirror]]\nname = \"y\"\npreset = \"oci\"",
                "for the registry",
            ),
            ("name = \"x\"\npreset = \"rubygems\"", "unknown variant"),
            ("name = \"x\"\nulr = \"https://h\"", "unknown field"),
        ] {
            let error = read(&format!("[[mirror]]\n{text}\n")).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
            assert!(!error.contains(":p@"), "{error}");
        }
    }
}
