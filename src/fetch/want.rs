//! A request in our own words.

use std::net::IpAddr;

use http::Method;
use http::header::{self, HeaderMap, HeaderName};

use crate::digest::Stated;
use crate::http::{Background, Interim, Target};
use crate::origin::Reach;
use crate::range::RangeRequest;

/// Fields by which a client makes its request conditional (RFC 9110 section 13.1).
const CONDITIONS: [HeaderName; 4] =
    [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE];

/// What a door asks of the engine: GET or HEAD of one target.
#[derive(Debug, Clone)]
pub struct Want {
    /// What is wanted.
    pub target: Target,
    /// GET or HEAD.
    pub method: Method,
    /// The end-to-end fields of the request.
    pub headers: HeaderMap,
    /// The digest that the client stated for this request.
    pub stated: Option<Stated>,
    /// Who asks.
    pub client: IpAddr,
    /// Where the request may go.
    pub reach: Reach,
    /// Whether neighbours may be asked.
    pub ask_peers: bool,
    /// Nobody waits for it: it yields to what somebody waits for.
    pub background: Option<Background>,
    /// Where interim answers of the origin go.
    pub interim: Option<Interim>,
}

impl Want {
    /// The range asked for, if it is one we honour.
    pub fn range(&self) -> Option<RangeRequest> {
        if self.method != Method::GET {
            return None;
        }
        let mut fields = self.headers.get_all(header::RANGE).iter();
        let field = fields.next().filter(|_| fields.next().is_none());
        RangeRequest::parse(field?.to_str().ok()?)
    }

    /// Whether the client has a copy and asks for a newer one.
    pub(super) fn is_conditional(&self) -> bool {
        CONDITIONS.iter().any(|name| self.headers.contains_key(name))
    }

    /// Whether the client wants nothing but what is kept (RFC 9111 section 5.2.1.7).
    pub(super) fn is_from_cache_alone(&self) -> bool {
        let lines = self.headers.get_all(header::CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|it| it.trim().eq_ignore_ascii_case("only-if-cached"))
    }

    /// Whether the client showed who it is to the origin.
    pub(super) fn is_authorized(&self) -> bool {
        self.headers.contains_key(header::AUTHORIZATION)
    }

    /// Whether the answer may be meant for this client alone.
    pub(super) fn is_private(&self) -> bool {
        self.is_authorized() || self.headers.contains_key(header::COOKIE)
    }

    /// The fields for a request of the whole thing, from the client's own.
    pub(super) fn headers_for_whole(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.remove(header::RANGE);
        headers.remove(header::IF_RANGE);
        headers
    }

    /// The same whatever the client has of it already.
    pub(super) fn headers_for_anybody(&self) -> HeaderMap {
        let mut headers = self.headers_for_whole();
        drop_conditions(&mut headers);
        headers
    }
}

/// Takes the client's own conditions out.
pub(super) fn drop_conditions(headers: &mut HeaderMap) {
    for name in CONDITIONS {
        headers.remove(name);
    }
}
