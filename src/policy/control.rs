//! `Cache-Control` of requests and responses (RFC 9111 section 5.2, RFC 5861, RFC 8246).
//!
//! Directives are read without regard to case; unknown ones are ignored. Of a directive that is repeated the
//! stricter value holds, and a span of time that cannot be read counts as the strictest there is.

use http::header::{self, HeaderMap};

use super::list;
use crate::http::StoredHead;

/// What a response says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResponseControl {
    pub(super) no_store: bool,
    /// Without field names: the whole answer is meant.
    pub(super) no_cache: bool,
    /// Without field names: the whole answer is meant.
    pub(super) private: bool,
    pub(super) public: bool,
    pub(super) must_revalidate: bool,
    pub(super) proxy_revalidate: bool,
    pub(super) must_understand: bool,
    pub(super) immutable: bool,
    pub(super) max_age: Option<u64>,
    pub(super) s_maxage: Option<u64>,
    pub(super) stale_while_revalidate: Option<u64>,
    pub(super) stale_if_error: Option<u64>,
    /// Fields that `no-cache="…"` and `private="…"` keep out of a shared cache, in lower case.
    pub(super) withheld: Vec<String>,
}

/// What a request says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestControl {
    pub(super) no_store: bool,
    pub(super) no_cache: bool,
    pub(super) only_if_cached: bool,
    pub(super) max_age: Option<u64>,
    pub(super) min_fresh: Option<u64>,
    pub(super) max_stale: Option<u64>,
    pub(super) stale_if_error: Option<u64>,
}

/// One directive: its name in lower case, and what stands behind `=`.
struct Directive {
    name: String,
    argument: Argument,
}

enum Argument {
    None,
    Text(Vec<u8>),
    Malformed,
}

impl ResponseControl {
    /// Of a response as it came.
    pub(super) fn of(response: &HeaderMap) -> Self {
        Self::read(response.get_all(header::CACHE_CONTROL).iter().map(|value| value.as_bytes()))
    }

    /// Of a kept head.
    pub(super) fn kept(head: &StoredHead) -> Self {
        let lines = head.fields.iter().filter(|(name, _)| name == "cache-control");
        Self::read(lines.map(|(_, value)| value.as_bytes()))
    }

    fn read<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut said = Self::default();
        for Directive { name, argument } in lines.flat_map(directives) {
            match name.as_str() {
                "no-store" => said.no_store = true,
                "no-cache" => said.no_cache |= argument.is_unqualified(&mut said.withheld),
                "private" => said.private |= argument.is_unqualified(&mut said.withheld),
                "public" => said.public = true,
                "must-revalidate" => said.must_revalidate = true,
                "proxy-revalidate" => said.proxy_revalidate = true,
                "must-understand" => said.must_understand = true,
                "immutable" => said.immutable = true,
                "max-age" => at_most(&mut said.max_age, argument.seconds().unwrap_or(0)),
                "s-maxage" => at_most(&mut said.s_maxage, argument.seconds().unwrap_or(0)),
                "stale-while-revalidate" => {
                    at_most(&mut said.stale_while_revalidate, argument.seconds().unwrap_or(0));
                }
                "stale-if-error" => at_most(&mut said.stale_if_error, argument.seconds().unwrap_or(0)),
                _ => {}
            }
        }
        said
    }

    /// Whether a shared cache may keep the answer to a request with `Authorization` (RFC 9111 section 3.5).
    pub(super) const fn allows_authorized(&self) -> bool {
        self.public || self.must_revalidate || self.s_maxage.is_some()
    }

    /// Whether the answer may never be used stale. `s-maxage` forbids it like `proxy-revalidate`
    /// (section 5.2.2.10), unless the origin itself opened a window beside it.
    pub(super) const fn forbids_stale(&self, window: Option<u64>) -> bool {
        self.must_revalidate
            || self.proxy_revalidate
            || self.no_cache
            || (self.s_maxage.is_some() && window.is_none())
    }
}

impl RequestControl {
    /// Of a request. `Pragma: no-cache` counts where there is no `Cache-Control` (section 5.4).
    pub(super) fn of(request: &HeaderMap) -> Self {
        let mut asked = Self::default();
        let lines = request.get_all(header::CACHE_CONTROL);
        for Directive { name, argument } in lines.iter().flat_map(|value| directives(value.as_bytes())) {
            match name.as_str() {
                "no-store" => asked.no_store = true,
                "no-cache" => asked.no_cache = true,
                "only-if-cached" => asked.only_if_cached = true,
                "max-age" => at_most(&mut asked.max_age, argument.seconds().unwrap_or(0)),
                "min-fresh" => {
                    let wanted = argument.seconds().unwrap_or(list::FOREVER);
                    asked.min_fresh = Some(asked.min_fresh.map_or(wanted, |other| other.max(wanted)));
                }
                "max-stale" => match (&argument, argument.seconds()) {
                    (Argument::None, _) => at_most(&mut asked.max_stale, u64::MAX),
                    (_, seconds) => at_most(&mut asked.max_stale, seconds.unwrap_or(0)),
                },
                "stale-if-error" => at_most(&mut asked.stale_if_error, argument.seconds().unwrap_or(0)),
                _ => {}
            }
        }
        if !request.contains_key(header::CACHE_CONTROL) {
            let pragma = request.get_all(header::PRAGMA);
            let mut elements = pragma.iter().flat_map(|value| list::elements(value.as_bytes()));
            asked.no_cache = elements.any(|element| element.eq_ignore_ascii_case(b"no-cache"));
        }
        asked
    }
}

impl Argument {
    fn seconds(&self) -> Option<u64> {
        match self {
            Self::Text(text) => list::seconds(text),
            Self::None | Self::Malformed => None,
        }
    }

    /// Whether the directive stands for the whole answer; else the fields it names go to `named`.
    fn is_unqualified(&self, named: &mut Vec<String>) -> bool {
        let Self::Text(text) = self else { return true };
        let before = named.len();
        named.extend(
            text.split(|byte| *byte == b',')
                .map(<[u8]>::trim_ascii)
                .filter(|name| !name.is_empty())
                .map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()),
        );
        named.len() == before
    }
}

fn directives(line: &[u8]) -> impl Iterator<Item = Directive> {
    list::elements(line).map(|element| {
        let (name, argument) =
            match element.iter().position(|byte| *byte == b'=').map(|at| element.split_at(at)) {
                None => (element, Argument::None),
                Some((name, value)) => (name, argument(name, value.strip_prefix(b"=").unwrap_or(value))),
            };
        let name = String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase();
        Directive { name, argument }
    })
}

/// White space beside `=` is not in the grammar: the name still counts, what it says does not.
fn argument(name: &[u8], value: &[u8]) -> Argument {
    if name.trim_ascii().len() != name.len() || value.trim_ascii().len() != value.len() {
        return Argument::Malformed;
    }
    list::unquoted(value).map_or(Argument::Malformed, Argument::Text)
}

fn at_most(slot: &mut Option<u64>, seconds: u64) {
    *slot = Some(slot.map_or(seconds, |other| other.min(seconds)));
}

#[cfg(test)]
mod tests;
