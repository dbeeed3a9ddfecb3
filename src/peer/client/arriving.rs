//! Reading what a neighbour is itself still receiving, and what it says of it.

use std::time::Duration;

use http::header::{self, HeaderMap};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::{Ask, Client, PullError};
use crate::digest::unhex;
use crate::http::{Body, Watched, boxed, length};
use crate::peer::{Holder, wire};
use crate::range::ContentRange;
use crate::seal::{GrantId, Thing};

/// How long the next bytes may take: the neighbour's own source may be silent. Whether the neighbour itself is alive
/// is for the caller to ask.
const STALL: Duration = Duration::from_secs(30);

/// What comes from a neighbour that is receiving it.
#[derive(Debug)]
pub struct Arrived {
    /// The size of the whole, if the neighbour knows it.
    pub total: Option<u64>,
    /// Which version it says this is.
    pub resource: Option<[u8; 32]>,
    /// The byte that comes first: the one asked for, or the first of all where no size is known.
    pub from: u64,
    /// The bytes, not proved; its errors are [`PullError`].
    pub body: Body,
}

impl Client {
    /// Reads a thing that the neighbour may still be receiving, from the byte `from` to its end.
    pub async fn pull_arriving(
        &self,
        holder: &Holder,
        grant: GrantId,
        thing: Thing,
        from: u64,
    ) -> Result<Arrived, PullError> {
        let ask = Ask { thing, from, bytes: true, pieces: 0 };
        let (response, lease) = self.ask(holder, grant, ask).await?;
        let told = match judge_arriving(&response, from) {
            Ok(told) => told,
            Err(error) => return Err(self.refused(response, lease, error).await),
        };
        let stated = response.headers().get(wire::RESOURCE).and_then(|field| field.to_str().ok());
        let resource = stated.and_then(|hex| unhex(hex).ok()?.try_into().ok());
        let part = told.map(|total| total - from);
        let (inner, end) = (response.into_body(), move || lease.give_back());
        let body = match part {
            Some(part) => Watched::new(inner, part, STALL, end),
            None => Watched::until_trailer(inner, STALL, end),
        };
        let body = body.counted(self.0.tally.received(holder.node)).map_err(PullError::from);
        Ok(Arrived { total: told, resource, from: told.map_or(0, |_| from), body: boxed(body) })
    }
}

/// The size of the whole, where the answer is one that can be read.
fn judge_arriving(response: &Response<Incoming>, from: u64) -> Result<Option<u64>, PullError> {
    let headers = response.headers();
    let wrong = |what: &str| Err(PullError::Protocol(what.to_owned()));
    match (response.status(), length(headers)) {
        (StatusCode::OK, Some(total)) if from == 0 => Ok(Some(total)),
        (StatusCode::OK, Some(_)) => wrong("the whole came where a part was asked for"),
        // chunks that end with a trailer
        (StatusCode::OK, None) if is_chunked(headers) => Ok(None),
        (StatusCode::PARTIAL_CONTENT, Some(part)) => {
            let told = headers.get(header::CONTENT_RANGE);
            let told = told.and_then(|field| ContentRange::parse(field.to_str().ok()?));
            match told {
                Some(ContentRange { bytes, size: Some(size) })
                    if bytes == (from..size) && part == size - from =>
                {
                    Ok(Some(size))
                }
                _ => wrong("it does not say which bytes it sends"),
            }
        }
        (StatusCode::OK | StatusCode::PARTIAL_CONTENT, None) => wrong("it does not say how its end is told"),
        (StatusCode::RANGE_NOT_SATISFIABLE, _) => wrong("what it receives is shorter than what is here"),
        (other, _) => Err(PullError::of_status(other)),
    }
}

fn is_chunked(headers: &HeaderMap) -> bool {
    headers.get(header::TRANSFER_ENCODING) == Some(&HeaderValue::from_static("chunked"))
}
