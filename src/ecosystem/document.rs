//! Which passing answers are documents that state digests, and how each is read.

use std::io::{BufRead, Read};

use super::statement::{Speaker, Statement, Unread};
use super::{apt, cargo, checksums, nix, npm, oci, pypi, root_before, unpack};
use crate::http::{StoredHead, Target};

/// A document that states digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// `Release`, `InRelease`: the index files of a Debian archive.
    Release,
    /// `Packages`, `Sources`: the files of a Debian archive.
    Packages,
    /// A page of a Python index in HTML.
    SimplePage,
    /// The same as JSON.
    SimpleJson,
    /// A project in PyPI's own JSON.
    Project,
    /// A JavaScript package with its versions.
    Packument,
    /// A crate with its versions, a line each.
    Crate,
    /// A manifest or an index of manifests of a container registry.
    Manifest,
    /// What a Nix cache says of a store path.
    NarInfo,
    /// A list of checksums, or the checksum of one file.
    Checksums,
}

/// What is known of an answer besides its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Passing<'a> {
    /// What was asked for.
    pub target: &'a Target,
    /// The head of the answer.
    pub head: &'a StoredHead,
    /// Whether the client asked for a package with its versions: registries that answer plain JSON are known by
    /// what their clients ask for.
    pub is_packument: bool,
}

impl Document {
    /// What a whole answer is, if it states digests.
    pub fn of(passing: Passing<'_>) -> Option<Self> {
        if passing.head.status != 200 {
            return None;
        }
        let path = super::path_of(passing.target);
        let kind = passing.media_type();
        let json = kind == "application/json" || kind.ends_with("+json");
        match kind.as_str() {
            "application/vnd.pypi.simple.v1+json" => return Some(Self::SimpleJson),
            "application/vnd.pypi.simple.v1+html" => return Some(Self::SimplePage),
            "application/vnd.npm.install-v1+json" => return Some(Self::Packument),
            kind if oci::is_manifest(kind) => return Some(Self::Manifest),
            _ => {}
        }
        let by_path = apt::document(path)
            .or_else(|| nix::is_info(path).then_some(Self::NarInfo))
            .or_else(|| cargo::is_index_line(path).then_some(Self::Crate))
            .or_else(|| checksums::is_name(path).then_some(Self::Checksums));
        by_path.or_else(|| match () {
            () if kind == "text/html" && pypi::is_page(path) => Some(Self::SimplePage),
            () if json && pypi::is_page(path) => Some(Self::SimpleJson),
            () if json && pypi::is_project(path) => Some(Self::Project),
            () if json && passing.is_packument() => Some(Self::Packument),
            () => None,
        })
    }

    /// The most bytes worth reading of it, as they came.
    pub const fn most(self) -> u64 {
        const MIB: u64 = 1024 * 1024;
        match self {
            Self::Packages => 128 * MIB,
            Self::Release | Self::Packument | Self::SimplePage | Self::SimpleJson | Self::Project => 64 * MIB,
            Self::Crate | Self::Manifest | Self::Checksums => 8 * MIB,
            Self::NarInfo => MIB,
        }
    }

    /// Another document without which this one cannot be understood.
    pub fn companion(self, target: &Target) -> Option<Target> {
        match self {
            Self::Crate => cargo::config_of(target),
            Self::Release
            | Self::Packages
            | Self::SimplePage
            | Self::SimpleJson
            | Self::Project
            | Self::Packument
            | Self::Manifest
            | Self::NarInfo
            | Self::Checksums => None,
        }
    }

    /// Reads it and tells `hear` each statement that it may make, until `hear` says no. `input` is the body as it
    /// came, `companion` the head and body of the document that was asked for, as far as it is at hand.
    pub fn read<'a>(
        self,
        passing: Passing<'a>,
        input: impl Read + 'a,
        companion: Option<(&StoredHead, &[u8])>,
        hear: &mut dyn FnMut(Statement) -> bool,
    ) -> Result<(), Unread> {
        /// What an index may grow to: the largest Debian has is a third of it.
        const GROWTH: u64 = 4;
        let most = self.most().saturating_mul(GROWTH);
        let body: Box<dyn BufRead + 'a> =
            unpack::unpack(input.take(self.most()), is_brotli(passing.head), most)?;
        let companion = companion.map(|(head, bytes)| unpack::unpack(bytes, is_brotli(head), COMPANION));
        let mut speaker = Speaker::new(passing.target, hear);
        let path = super::path_of(passing.target);
        match self {
            Self::Release => apt::read_release(path, body, &mut speaker),
            Self::Packages => apt::read_packages(path, body, &mut speaker),
            Self::SimplePage => pypi::read_page(path, body, &mut speaker),
            Self::SimpleJson => pypi::read_json(path, body, &mut speaker),
            Self::Project => pypi::read_project(path, body, &mut speaker),
            Self::Packument => npm::read_packument(path, body, &mut speaker),
            Self::Crate => cargo::read_lines(companion.transpose()?, body, &mut speaker),
            Self::Manifest => oci::read_manifest(body, &mut speaker),
            Self::NarInfo => nix::read_info(path, body, &mut speaker),
            Self::Checksums => checksums::read_list(path, body, &mut speaker),
        }
    }
}

/// The most that is read of a companion, unpacked.
const COMPANION: u64 = 256 * 1024;

fn is_brotli(head: &StoredHead) -> bool {
    head.get("content-encoding").is_some_and(|coding| coding.trim().eq_ignore_ascii_case("br"))
}

impl Passing<'_> {
    fn media_type(&self) -> String {
        let kind = self.head.get("content-type").and_then(|kind| kind.split(';').next());
        kind.unwrap_or_default().trim().to_ascii_lowercase()
    }

    fn is_packument(&self) -> bool {
        self.is_packument || super::classify(self.target).name == "npm"
    }
}

/// The folder that an index of a registry speaks for: what stands before a part of its path, else its own folder.
pub(super) fn root_or_folder<'a>(path: &'a str, part: &str) -> &'a str {
    root_before(path, part).unwrap_or_else(|| super::folder_of(path))
}
