//! What is known of each kind of upstream: where the public one is, and which of its answers hold links.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Python packages.
    Pypi,
    /// JavaScript packages.
    Npm,
    /// A sparse index of Rust crates.
    Crates,
    /// A Debian archive.
    Apt,
    /// A container registry.
    Oci,
    /// Models and data sets.
    Huggingface,
    /// Anything: no document is rewritten.
    Generic,
}

/// A document whose links are led back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// A page of links: `href` of `a`, and of `base`.
    Html,
    /// PyPI's JSON: `url` below `files`, `urls` and `releases`.
    PypiJson,
    /// npm's: `dist.tarball`.
    NpmJson,
    /// Cargo's `config.json`: `dl` and `api`.
    CratesJson,
}

impl Preset {
    /// All of them; each but the last is the name of a mirror that is there without configuration.
    pub const ALL: [Self; 7] =
        [Self::Pypi, Self::Npm, Self::Crates, Self::Apt, Self::Oci, Self::Huggingface, Self::Generic];

    /// The word in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pypi => "pypi",
            Self::Npm => "npm",
            Self::Crates => "crates",
            Self::Apt => "apt",
            Self::Oci => "oci",
            Self::Huggingface => "huggingface",
            Self::Generic => "generic",
        }
    }

    /// The public upstream, if there is one.
    pub const fn upstream(self) -> Option<&'static str> {
        match self {
            Self::Pypi => Some("https://pypi.org"),
            Self::Npm => Some("https://registry.npmjs.org"),
            Self::Crates => Some("https://index.crates.io"),
            // apt proves what it gets by signatures, and its usual way there is http: both share what is held
            Self::Apt => Some("http://deb.debian.org"),
            Self::Oci => Some("https://registry-1.docker.io"),
            Self::Huggingface => Some("https://huggingface.co"),
            Self::Generic => None,
        }
    }

    /// Whether the answer at this path, seen from the upstream's own base, may be a document with links; a
    /// package never is.
    pub fn may_hold_links(self, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or("");
        let last = path.rsplit('/').next().unwrap_or("");
        match self {
            Self::Pypi => {
                let page = [".html", ".htm", ".json"].iter().any(|end| last.ends_with(end));
                last.is_empty() || page || !last.contains('.')
            }
            Self::Npm => !path.contains("/-/") && !last.ends_with(".tgz"),
            Self::Crates => path == "/config.json",
            Self::Apt | Self::Oci | Self::Huggingface | Self::Generic => false,
        }
    }

    /// The document that an answer with this media type is.
    pub fn document(self, content_type: &str) -> Option<Document> {
        let kind = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        let is_json =
            kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
        match self {
            Self::Pypi if kind == "text/html" || kind == "application/vnd.pypi.simple.v1+html" => {
                Some(Document::Html)
            }
            Self::Pypi if is_json => Some(Document::PypiJson),
            Self::Npm if is_json => Some(Document::NpmJson),
            // a folder of files is often served without the right type
            Self::Crates => Some(Document::CratesJson),
            Self::Pypi | Self::Npm | Self::Apt | Self::Oci | Self::Huggingface | Self::Generic => None,
        }
    }

    /// Whether its programs send their credentials wherever the index points, so that links to other servers
    /// must keep them.
    pub(super) const fn sends_credentials_on(self) -> bool {
        matches!(self, Self::Crates)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_from_packages() {
        for (preset, path, want) in [
            (Preset::Pypi, "/simple/", true),
            (Preset::Pypi, "/simple/zope.interface/", true),
            (Preset::Pypi, "/simple/pip", true),
            (Preset::Pypi, "/simple/pip/?format=application/vnd.pypi.simple.v1%2Bjson", true),
            (Preset::Pypi, "/pypi/pip/json", true),
            (Preset::Pypi, "/packages/pip-1.0-py3-none-any.whl", false),
            (Preset::Pypi, "/packages/pip-1.0-py3-none-any.whl.metadata", false),
            (Preset::Pypi, "/packages/pip-1.0.tar.gz", false),
            (Preset::Npm, "/react", true),
            (Preset::Npm, "/@types%2fnode", true),
            (Preset::Npm, "/react/-/react-18.0.0.tgz", false),
            (Preset::Npm, "/-/v1/search?text=x", false),
            (Preset::Crates, "/config.json", true),
            (Preset::Crates, "/se/rd/serde", false),
            (Preset::Apt, "/debian/dists/sid/InRelease", false),
            (Preset::Oci, "/v2/a/manifests/latest", false),
        ] {
            assert_eq!(preset.may_hold_links(path), want, "{preset} {path}");
        }
    }

    #[test]
    fn media_types_name_the_document() {
        for (preset, kind, want) in [
            (Preset::Pypi, "text/html; charset=UTF-8", Some(Document::Html)),
            (Preset::Pypi, "application/vnd.pypi.simple.v1+html", Some(Document::Html)),
            (Preset::Pypi, "application/vnd.pypi.simple.v1+json", Some(Document::PypiJson)),
            (Preset::Pypi, "application/octet-stream", None),
            (Preset::Npm, "application/vnd.npm.install-v1+json", Some(Document::NpmJson)),
            (Preset::Npm, "application/JSON", Some(Document::NpmJson)),
            (Preset::Npm, "application/octet-stream", None),
            (Preset::Generic, "text/html", None),
        ] {
            assert_eq!(preset.document(kind), want, "{preset} {kind}");
        }
    }

    #[test]
    fn every_preset_reads_back() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
    }
}
