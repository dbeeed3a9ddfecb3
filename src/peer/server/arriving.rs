//! Giving what this node is itself still receiving: the bytes go out as they come, proved or not, and whoever reads
//! them judges them as it judges any neighbour's bytes.
//!
//! With a known size it is an ordinary answer with ranges, whose end waits for what is still to come; without one it
//! comes in chunks and ends with the trailer `Repr-Digest`: where that is missing, it was cut short. `Larder-Resource`
//! names the version.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};

use super::answer::{problem, set, unavailable, with_type};
use super::{Coming, Server};
use crate::http::{Body, empty};
use crate::peer::wire;
use crate::range::{ContentRange, RangeRequest};
use crate::seal::Thing;
use crate::tls::NodeId;

impl Server {
    /// The answer for what is still arriving; none if nothing of this name is.
    pub(super) fn arriving(
        &self,
        thing: Thing,
        asker: NodeId,
        method: &Method,
        asked: &HeaderMap,
    ) -> Option<Response<Body>> {
        let range = asked.get(header::RANGE).and_then(|range| RangeRequest::parse(range.to_str().ok()?));
        let Ok(coming) = (self.0.shelf.arriving)(thing, asker)? else {
            return Some(unavailable("others read from here already"));
        };
        if method == Method::HEAD {
            return Some(with_type(Response::new(empty()), wire::BLOB_TYPE));
        }
        let Some(place) = self.0.uplink.place() else {
            return Some(unavailable("all places are taken"));
        };
        let Coming { total, resource, body } = coming;
        let upload = |length, body| {
            let relay = self.0.uplink.relay(body, length, place).counted(self.0.tally.given(asker));
            let mut response = with_type(Response::new(crate::http::boxed(relay)), wire::BLOB_TYPE);
            if let Some(resource) = resource {
                set(&mut response, wire::RESOURCE, &crate::digest::hex(&resource));
            }
            response
        };
        let Some(total) = total else {
            let mut response = upload(None, body(0..u64::MAX));
            response.headers_mut().insert(header::TRAILER, HeaderValue::from_static("repr-digest"));
            return Some(response);
        };
        let wanted = match range.map(|range| range.resolve(total)) {
            None => 0..total,
            Some(Ok(range)) => range,
            Some(Err(_outside)) => {
                let mut response = problem(StatusCode::RANGE_NOT_SATISFIABLE, "it is shorter");
                set(&mut response, header::CONTENT_RANGE, &ContentRange::unsatisfied(total));
                return Some(response);
            }
        };
        let content_range = range.map(|_| ContentRange::satisfied(&wanted, total));
        let length = wanted.end - wanted.start;
        let mut response = upload(Some(length), body(wanted));
        set(&mut response, header::CONTENT_LENGTH, &length.to_string());
        set(&mut response, header::ACCEPT_RANGES, "bytes");
        if let Some(content_range) = content_range {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            set(&mut response, header::CONTENT_RANGE, &content_range);
        }
        Some(response)
    }
}
