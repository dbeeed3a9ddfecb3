//! The mirror doors: what a request becomes on its way to the upstream, and an answer on its way back.
//!
//! A document whose links are led back is asked for packed with gzip, which is what stays in the store, and is
//! unpacked and rewritten as it goes out. It goes out with a length where it is small and quickly there, else in
//! chunks. It never carries the upstream's digests, ranges or its tag as they are.

mod body;
mod model;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};

use super::direct::sandbox;
use super::respond;
use super::stream::Abort;
use crate::digest::Digest;
use crate::http::{Body, Target, empty};
use crate::mirror::{Document, Entry, Links, Mirrors, Preset, Refusal, Rewriter};
use crate::rest::Problem;
use body::{Coding, Rewritten};

/// Fields that speak of the bytes as the upstream sent them.
const OF_BYTES: [&str; 8] = [
    "content-length",
    "accept-ranges",
    "content-md5",
    "digest",
    "repr-digest",
    "content-digest",
    "x-goog-hash",
    "content-range",
];

/// A request that came through a mirror.
#[derive(Debug)]
pub(super) struct Mirrored {
    entry: Entry,
    links: Links,
    /// Whether the answer may be a document whose links have to be led back.
    may_hold_links: bool,
}

impl Mirrored {
    /// The mirror that a path names; none if it is no mirror's path.
    pub(super) fn enter(
        mirrors: &Mirrors,
        path: &str,
        request: &HeaderMap,
        port: u16,
    ) -> Option<Result<Self, Problem>> {
        let entry = match mirrors.enter(path)? {
            Ok(entry) => entry,
            Err(refusal) => return Some(Err(refused(&refusal))),
        };
        let links = entry.place.links(&host_of(request, port), &entry.target);
        let may_hold_links = entry.place.may_hold_links(&entry.target);
        Some(Ok(Self { entry, links, may_hold_links }))
    }

    pub(super) fn target(&self) -> &Target {
        &self.entry.target
    }

    pub(super) fn digest(&self) -> Option<Digest> {
        self.entry.digest
    }

    /// Whether the operator wrote the upstream's address.
    pub(super) fn is_own(&self) -> bool {
        self.entry.is_own
    }

    /// Makes a client's fields those of a request to the upstream.
    pub(super) fn prepare(&self, request: &mut HeaderMap) {
        if self.entry.is_elsewhere {
            // they were meant for the server that sent the client there
            request.remove(header::AUTHORIZATION);
            request.remove(header::COOKIE);
        }
        if !self.may_hold_links {
            return;
        }
        request.remove(header::RANGE);
        request.remove(header::IF_RANGE);
        request.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if request.contains_key(header::IF_NONE_MATCH) {
            let stamp = self.links.stamp();
            let known: Vec<_> =
                request.get_all(header::IF_NONE_MATCH).iter().filter_map(|tags| stamp.unmark(tags)).collect();
            // a date says nothing where there are tags (RFC 9110 section 13.1.3)
            request.remove(header::IF_NONE_MATCH);
            request.remove(header::IF_MODIFIED_SINCE);
            for tags in known {
                request.append(header::IF_NONE_MATCH, tags);
            }
        }
    }

    /// Makes an answer lead back through the mirror.
    pub(super) async fn dress(
        self,
        mut response: Response<Body>,
        method: &Method,
        abort: &Abort,
    ) -> Result<Response<Body>, Problem> {
        if self.entry.place.preset() == Preset::Huggingface {
            model::settle(&mut response, method, &self.entry.target);
        }
        self.lead_fields(response.headers_mut());
        sandbox(&mut response);
        if !self.may_hold_links {
            return Ok(response);
        }
        let is_whole = response.status() == StatusCode::OK;
        let kind =
            response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
        let document = self.entry.place.preset().document(kind).filter(|_| is_whole);
        let Some(coding) = Coding::of(response.headers()) else {
            tracing::debug!(url = %self.entry.target, "not rewritten: packed in a way that was not asked for");
            return Ok(response);
        };
        if document.is_none() && coding == Coding::Plain && response.status() != StatusCode::NOT_MODIFIED {
            return Ok(response);
        }
        self.own_representation(response.headers_mut());
        if *method == Method::HEAD || response.status() == StatusCode::NOT_MODIFIED {
            return Ok(response.map(|_| empty()));
        }
        self.rewrite(response, document, coding, abort).await
    }

    /// Fields that hold references.
    fn lead_fields(&self, fields: &mut HeaderMap) {
        let lead = |value: &str| self.links.lead(value);
        replace(fields, &header::LOCATION, lead);
        replace(fields, &header::CONTENT_LOCATION, lead);
        replace(fields, &header::LINK, |value| self.links.lead_link_field(value));
        replace(fields, &header::WWW_AUTHENTICATE, |value| self.links.lead_realm(value));
        replace(fields, &header::SET_COOKIE, |value| Some(self.links.keep_cookie(value)));
    }

    /// What is said of the upstream's bytes does not hold for others.
    fn own_representation(&self, fields: &mut HeaderMap) {
        for name in OF_BYTES {
            fields.remove(name);
        }
        let sums: Vec<HeaderName> =
            fields.keys().filter(|name| name.as_str().starts_with("x-amz-checksum-")).cloned().collect();
        for name in sums {
            fields.remove(name);
        }
        fields.remove(header::CONTENT_ENCODING);
        if let Some(tag) = fields.remove(header::ETAG)
            && let Some(own) = self.links.stamp().mark(&tag)
        {
            fields.insert(header::ETAG, own);
        }
    }

    async fn rewrite(
        self,
        response: Response<Body>,
        document: Option<Document>,
        coding: Coding,
        abort: &Abort,
    ) -> Result<Response<Body>, Problem> {
        let rewriter = document.map(|document| Rewriter::new(document, self.links));
        let (mut parts, body) = response.into_parts();
        let body = match body::gather(Rewritten::new(body, coding, rewriter)).await {
            Ok(body) => body,
            Err(error) => {
                // nothing went out yet: the connection is still good for an answer
                abort.clear();
                tracing::debug!(%error, url = %self.entry.target, "a document broke off");
                return Err(respond::broken_document());
            }
        };
        let body = match body {
            body::Gathered::Whole(bytes) => {
                parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
                crate::http::full(bytes)
            }
            body::Gathered::Begun(body) => respond::unbounded(body, abort),
        };
        Ok(Response::from_parts(parts, body))
    }
}

/// How a client calls us; what HTTP/1.0 leaves out is made up.
pub(super) fn host_of(request: &HeaderMap, port: u16) -> String {
    let host = request.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::trim);
    host.filter(|host| !host.is_empty()).map_or_else(|| format!("localhost:{port}"), str::to_owned)
}

/// Puts something else in the place of every value of a field, where there is something else.
fn replace(fields: &mut HeaderMap, name: &HeaderName, new: impl Fn(&str) -> Option<String>) {
    let led = |value: &HeaderValue| HeaderValue::try_from(new(value.to_str().ok()?)?).ok();
    let values: Vec<HeaderValue> =
        fields.get_all(name).iter().map(|value| led(value).unwrap_or_else(|| value.clone())).collect();
    fields.remove(name);
    for value in values {
        fields.append(name, value);
    }
}

fn refused(refusal: &Refusal) -> Problem {
    let problem = match refusal {
        Refusal::Unknown { .. } => Problem::new(StatusCode::NOT_FOUND, "no-such-mirror", "No such mirror")
            .hint("ask for /m/<name>/path, or add a [[mirror]] to the configuration"),
        Refusal::NoRegistry => Problem::new(StatusCode::NOT_FOUND, "no-such-mirror", "No such mirror")
            .hint("add a [[mirror]] with preset = \"oci\" to the configuration"),
        Refusal::Digest | Refusal::Dots | Refusal::Target(_) => {
            Problem::new(StatusCode::BAD_REQUEST, "bad-target", "Bad target")
                .hint("ask for /m/<name>/path or /m/@/https/host/path")
        }
    };
    problem.detail(refusal.to_string())
}
