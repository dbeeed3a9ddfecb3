//! From the path of a request to the upstream's target: `/m/<name>/…`, `/m/@/<scheme>/<host>/…`, `/v2/…`.

use super::config::{Mirror, Mirrors};
use super::place::{ELSEWHERE, Place};
use super::preset::Preset;
use crate::digest::Digest;
use crate::ecosystem;
use crate::http::{Scheme, Target, TargetError};

/// A request that came through a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What is asked of the upstream.
    pub target: Target,
    /// The digest in our own path.
    pub digest: Option<Digest>,
    /// The way back.
    pub place: Place,
    /// Whether the client's credentials stay here, because they are for another server.
    pub is_elsewhere: bool,
    /// Whether the operator wrote the upstream's URL, wherever it leads.
    pub is_own: bool,
}

/// Why a request finds no mirror.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such mirror; these there are.
    #[error("there is no mirror called `{name}`; there are: {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// No registry is mirrored at all.
    #[error("this node mirrors no container registry")]
    NoRegistry,
    /// The path could leave the part of the server that is mirrored.
    #[error("the path holds `..`, which could lead out of the mirror")]
    Dots,
    /// What stands behind `/m/@` is no digest.
    #[error("what follows /m/@ is neither `/` nor `sha256:` and 64 hexadecimal characters")]
    Digest,
    /// Nothing that can be fetched.
    #[error("{0}")]
    Target(#[from] TargetError),
}

impl Mirrors {
    /// Where a path leads; none if it is no mirror's.
    pub fn enter(&self, path: &str) -> Option<Result<Entry, Refusal>> {
        // some programs write every path percent-encoded
        if let Some(rest) = path.strip_prefix(ELSEWHERE).or_else(|| path.strip_prefix("/m/%40")) {
            return Some(elsewhere(rest));
        }
        let entry = if let Some(rest) = path.strip_prefix("/m/") {
            self.by_name(rest)
        } else if path == "/m" {
            self.by_name("")
        } else if path == "/v2" || path.starts_with("/v2/") || path.starts_with("/v2?") {
            self.by_registry(path)
        } else {
            return None;
        };
        let stays = entry.and_then(|entry| match has_dots(entry.target.path()) {
            true => Err(Refusal::Dots),
            false => Ok(entry),
        });
        Some(stays)
    }

    fn by_name(&self, rest: &str) -> Result<Entry, Refusal> {
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (name, path) = rest.split_at(at);
        let known = || self.names().into_iter().map(str::to_owned).collect();
        let mirror = self.all.iter().find(|mirror| mirror.name == name);
        let mirror = mirror.ok_or_else(|| Refusal::Unknown { name: name.to_owned(), known: known() })?;
        mirror.entry(path, format!("/m/{name}"))
    }

    /// The registry that `ns=` names, as containerd does, else the default one. Every other registry is there
    /// under its own name, as it is under the URL prefix.
    fn by_registry(&self, path: &str) -> Result<Entry, Refusal> {
        let (path, namespace) = without_namespace(path);
        let default = self.default_oci();
        let Some(namespace) = namespace else {
            return default.ok_or(Refusal::NoRegistry)?.entry(&path, String::new());
        };
        let is_it = |mirror: &&std::sync::Arc<Mirror>| mirror.registry.as_deref() == Some(namespace.as_str());
        match self.all.iter().find(is_it) {
            Some(mirror) if default == Some(mirror) => mirror.entry(&path, String::new()),
            Some(mirror) => mirror.entry(&path, format!("/m/{}", mirror.name)),
            None if default.is_none() => Err(Refusal::NoRegistry),
            None => {
                let base = Target::new(Scheme::Https, &namespace, "")?;
                let here = format!("/https/{}", base.authority());
                let mirror =
                    Mirror { name: String::new(), preset: Preset::Oci, base, registry: None, is_own: false };
                mirror.entry(&path, here)
            }
        }
    }
}

impl Mirror {
    fn entry(&self, path: &str, here: String) -> Result<Entry, Refusal> {
        let whole = format!("{}{path}", self.base.path().trim_end_matches('/'));
        let target = Target::new(self.base.scheme(), &self.base.authority(), &whole)?;
        let named = ecosystem::classify(&target).digest.filter(|_| self.preset == Preset::Oci);
        let digest = named.and_then(|named| named.sha256());
        let place = Place { preset: self.preset, base: Some(self.base.clone()), here, digest };
        Ok(Entry { target, digest: None, place, is_elsewhere: false, is_own: self.is_own })
    }
}

/// Behind `/m/@`: another server, perhaps with the digest that the thing must have.
fn elsewhere(rest: &str) -> Result<Entry, Refusal> {
    let at = rest.find('/').ok_or(Refusal::Digest)?;
    let (digest, rest) = rest.split_at(at);
    let digest: Option<Digest> = match digest {
        "" => None,
        digest => {
            let digest = digest.replace("%3A", ":").replace("%3a", ":");
            Some(digest.parse().map_err(|_ignored| Refusal::Digest)?)
        }
    };
    let target = Target::from_prefix(rest)?;
    let place = Place { preset: Preset::Generic, base: None, here: String::new(), digest };
    Ok(Entry { target, digest, place, is_elsewhere: true, is_own: false })
}

/// The path without `ns=`, and what it said. It is for us: the upstream's answer is the same without it.
fn without_namespace(path: &str) -> (String, Option<String>) {
    let Some((before, query)) = path.split_once('?') else { return (path.to_owned(), None) };
    let (mut kept, mut namespace) = (Vec::new(), None);
    for pair in query.split('&') {
        match pair.strip_prefix("ns=") {
            Some(value) if !value.is_empty() => {
                namespace = Some(value.replace("%3A", ":").replace("%3a", ":").to_ascii_lowercase());
            }
            Some(_) => {}
            None => kept.push(pair),
        }
    }
    let kept = if kept.is_empty() { before.to_owned() } else { format!("{before}?{}", kept.join("&")) };
    (kept, namespace)
}

/// Whether a server could take a part of the path as "one up".
fn has_dots(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or("").to_ascii_lowercase();
    path.replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "/")
        .split(['/', '\\'])
        .any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mirrors() -> Mirrors {
        let list = [
            ("own", Some(Preset::Pypi), Some("http://index:81/root/pypi"), None),
            ("quay", Some(Preset::Oci), Some("https://quay.io"), None),
            ("lab", Some(Preset::Oci), Some("http://10.0.0.5:5000"), Some("lab.example:5000")),
        ];
        let list = list.map(|(name, preset, url, registry)| super::super::Config {
            name: name.parse().unwrap(),
            preset,
            url: url.map(|url| url.parse().unwrap()),
            registry: registry.map(str::to_owned),
            enabled: true,
        });
        Mirrors::new(list.to_vec()).unwrap()
    }

    #[test]
    fn paths_lead_upstream_byte_for_byte() {
        for (path, url, here) in [
            ("/m/pypi/simple/", "https://pypi.org/simple/", "/m/pypi"),
            ("/m/pypi", "https://pypi.org/", "/m/pypi"),
            ("/m/npm/@scope%2fname?x=%2F", "https://registry.npmjs.org/@scope%2fname?x=%2F", "/m/npm"),
            ("/m/own/+simple//a%20b/", "http://index:81/root/pypi/+simple//a%20b/", "/m/own"),
            ("/m/own?x", "http://index:81/root/pypi?x", "/m/own"),
            (
                "/m/apt/debian/dists/sid/InRelease",
                "http://deb.debian.org/debian/dists/sid/InRelease",
                "/m/apt",
            ),
            ("/v2/", "https://registry-1.docker.io/v2/", ""),
            ("/v2/a/tags/list?n=2&last=b", "https://registry-1.docker.io/v2/a/tags/list?n=2&last=b", ""),
            ("/v2/a/manifests/x?ns=docker.io", "https://registry-1.docker.io/v2/a/manifests/x", ""),
            ("/v2/a/manifests/x?ns=quay.io&n=1", "https://quay.io/v2/a/manifests/x?n=1", "/m/quay"),
            ("/v2/a/manifests/x?ns=lab.example%3A5000", "http://10.0.0.5:5000/v2/a/manifests/x", "/m/lab"),
            ("/v2/a/manifests/x?ns=ghcr.io", "https://ghcr.io/v2/a/manifests/x", "/https/ghcr.io"),
            ("/m/@/https/h/a%2Fb?c", "https://h/a%2Fb?c", ""),
            ("/m/%40/https/h%3A81/a", "https://h:81/a", ""),
        ] {
            let entry = mirrors().enter(path).unwrap().unwrap();
            assert_eq!((entry.target.url().as_str(), entry.place.here.as_str()), (url, here), "{path}");
        }
        for path in ["/", "/https/h/", "/mirror/x", "/v2x", "/v1/a"] {
            assert!(mirrors().enter(path).is_none(), "{path}");
        }
    }

    #[test]
    fn what_is_refused_says_why() {
        for (path, said) in [
            ("/m/nope/x", "there are: apt, crates, huggingface, lab, npm, oci, own, pypi, quay"),
            ("/m/", "there is no mirror called ``"),
            ("/m", "there is no mirror called ``"),
            ("/m/own/../secret", "`..`"),
            ("/m/own/%2e%2E/secret", "`..`"),
            ("/m/own/a/..%2fsecret", "`..`"),
            ("/v2/a/manifests/x?ns=u@h", "user information"),
            ("/v2/a/manifests/x?ns=%00", "host"),
            ("/m/@", "neither"),
            ("/m/@sha256:00/https/h/", "neither"),
            ("/m/@/ftp/h/", "scheme"),
            ("/m/@/https//x", "host"),
        ] {
            let refusal = mirrors().enter(path).unwrap().unwrap_err();
            assert!(refusal.to_string().contains(said), "{path}: {refusal}");
        }
    }

    #[test]
    fn k13_a_blob_named_by_its_digest_keeps_it_over_a_redirect() {
        let digest = Digest::of(b"x");
        let entry = mirrors().enter(&format!("/v2/a/blobs/{digest}")).unwrap().unwrap();
        assert_eq!((entry.place.digest, entry.digest), (Some(digest), None));
        let entry = mirrors().enter(&format!("/m/@{digest}/https/cdn/x?sig")).unwrap().unwrap();
        assert_eq!((entry.digest, entry.is_elsewhere), (Some(digest), true));
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "/\\PC{0,40}|(/m|/v2|/@|/|@|sha256:|\\?ns=|%2e|\\.|https|h)*") {
            let _unused = mirrors().enter(&path);
        }
    }
}
