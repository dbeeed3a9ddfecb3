//! Statements, and the one gate they all pass: who may say what of whom.

use super::scope::{speaks_for, spelling};
use crate::digest::{Algorithm, Stated};
use crate::http::Target;

/// One document says no more than this.
const MOST: usize = 100_000;

/// What a document or a head says of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The URL, in the spelling under which statements are looked up.
    pub target: Target,
    /// The digest that its bytes have.
    pub digest: Stated,
    /// Their number, where that is stated too.
    pub size: Option<u64>,
}

/// Why a document was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The bytes could not be read or unpacked, or are more than is read.
    #[error("it cannot be read: {0}")]
    Bytes(#[from] std::io::Error),
    /// It is not what it should be.
    #[error("it is not well formed: {0}")]
    Form(#[from] serde_json::Error),
    /// Whoever listens has heard enough, or it says more than one document may.
    #[error("it says more than is heard")]
    Enough,
}

/// Takes statements as a document makes them and passes on those it may make.
pub(super) struct Speaker<'a> {
    by: &'a Target,
    /// What it speaks for on its own origin.
    root: String,
    left: usize,
    hear: &'a mut dyn FnMut(Statement) -> bool,
}

impl<'a> Speaker<'a> {
    /// Speaks for nothing on its own origin yet; `hear` says whether it wants to hear more.
    pub(super) fn new(by: &'a Target, hear: &'a mut dyn FnMut(Statement) -> bool) -> Self {
        Self { by, root: String::new(), left: MOST, hear }
    }

    /// What it is the index of: a folder of its own origin, with the slash at its end.
    pub(super) fn within(&mut self, root: &str) {
        let spelled = self.by.join(root).map(|target| spelling(&target).path().to_owned());
        self.root = spelled.unwrap_or_default();
    }

    /// The document that speaks.
    pub(super) const fn by(&self) -> &Target {
        self.by
    }

    /// Passes a statement on, if it may be made.
    pub(super) fn say(&mut self, target: &Target, digest: Stated, size: Option<u64>) -> Result<(), Unread> {
        let target = spelling(target);
        let own = self.by.origin() == target.origin();
        let in_root = !self.root.is_empty() && target.path().starts_with(&self.root);
        if !speaks_for(self.by, &target) || (own && !in_root) {
            return Ok(());
        }
        self.left = self.left.checked_sub(1).ok_or(Unread::Enough)?;
        if (self.hear)(Statement { target, digest, size }) { Ok(()) } else { Err(Unread::Enough) }
    }
}

/// Of two digests of the same bytes the one that is of more use: SHA-256 names what is stored, and what is weak can
/// only be compared.
pub(super) fn better(one: Stated, other: Stated) -> Stated {
    let rank = |stated: Stated| {
        let algorithm = stated.algorithm();
        (algorithm.is_strong(), algorithm == Algorithm::Sha256, algorithm.length())
    };
    if rank(other) > rank(one) { other } else { one }
}

/// The best of several.
pub(super) fn best(all: impl IntoIterator<Item = Stated>) -> Option<Stated> {
    all.into_iter().reduce(better)
}
