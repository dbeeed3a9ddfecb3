//! Entity tags: which state of a row somebody has seen (RFC 9110 sections 8.8.3 and 13.1).

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH};

use super::{Problem, Resource};
use crate::digest::Digest;
use crate::orm::Cell;

/// What a request says about the state its sender has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing.
    Unsaid,
    /// Any state.
    Any,
    /// One of these.
    Tags(Vec<String>),
}

/// The tag of a row: its version, or a digest of its cells.
pub(super) fn of_row(resource: &Resource, row: &[Cell<'_>]) -> String {
    if let Some(version) = version(resource, row) {
        return format!("\"v{version}\"");
    }
    let mut bytes = Vec::new();
    for (column, cell) in resource.table.columns.iter().zip(row) {
        column.shape.write_json(cell, &mut bytes);
        bytes.push(0);
    }
    let short: String = Digest::of(&bytes).hex().chars().take(24).collect();
    format!("\"{short}\"")
}

pub(super) fn version(resource: &Resource, row: &[Cell<'_>]) -> Option<u64> {
    let cells = resource.table.columns.iter().zip(row);
    cells.into_iter().find(|(column, _)| column.is_version).and_then(|(_, cell)| match cell {
        Cell::Integer(number) => Some(number.cast_unsigned()),
        Cell::Null | Cell::Real(_) | Cell::Text(_) | Cell::Blob(_) => None,
    })
}

impl Seen {
    pub(super) fn if_match(request: &HeaderMap) -> Self {
        Self::of(request, IF_MATCH)
    }

    pub(super) fn if_none_match(request: &HeaderMap) -> Self {
        Self::of(request, IF_NONE_MATCH)
    }

    fn of(request: &HeaderMap, name: HeaderName) -> Self {
        let fields: Vec<&str> =
            request.get_all(name).iter().filter_map(|field| field.to_str().ok()).collect();
        if fields.is_empty() {
            return Self::Unsaid;
        }
        let tags: Vec<String> =
            fields.iter().flat_map(|field| field.split(',')).map(|tag| tag.trim().to_owned()).collect();
        if tags.iter().any(|tag| tag == "*") { Self::Any } else { Self::Tags(tags) }
    }

    /// Whether this state is among those (RFC 9110 section 8.8.3.2, weak comparison).
    pub(super) fn has(&self, tag: &str) -> bool {
        match self {
            Self::Unsaid => false,
            Self::Any => true,
            Self::Tags(tags) => tags.iter().any(|seen| seen.strip_prefix("W/").unwrap_or(seen) == tag),
        }
    }

    /// The same, strong: a weak tag is none.
    pub(super) fn is(&self, tag: &str) -> bool {
        match self {
            Self::Tags(tags) => tags.iter().any(|seen| seen == tag),
            Self::Unsaid | Self::Any => self.has(tag),
        }
    }
}

/// The row is in another state than the sender has seen.
pub(super) fn changed() -> Problem {
    Problem::new(StatusCode::PRECONDITION_FAILED, "changed", "It was changed meanwhile")
        .detail("the row is not in the state that the request names")
        .hint("GET it again and decide anew")
}
