//! What the engine gives back.

use std::fmt;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::again::Again;
use super::delivery::{self, Cuts};
use super::ledger::{From, Ledger};
use super::line::{self, Going, Line};
use super::running::Running;
use crate::digest::Digest;
use crate::http::{Body, StoredHead};
use crate::store::{Blob, Follower, Growing};

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// An answer and how it came about.
#[derive(Debug)]
pub struct Reply {
    /// The answer.
    pub given: Given,
    /// How it came about.
    pub status: CacheStatus,
}

/// An answer.
#[derive(Debug)]
pub enum Given {
    /// A thing that is held or arriving: conditions and ranges are for the door to apply.
    Held(Box<Held>),
    /// The origin's own answer to the client's own request.
    Passed(http::Response<Body>),
}

/// What became of a request for another protocol.
#[derive(Debug)]
pub enum Switched {
    /// The origin agreed: its head, and the stream of what follows.
    To(http::Response<()>, hyper::upgrade::Upgraded),
    /// It answered as to any request.
    Not(Box<Reply>),
}

/// A thing that is held or arriving.
#[derive(Debug)]
pub struct Held {
    /// Its head.
    pub head: Head,
    /// How old it is; none if it just came.
    pub age: Option<Duration>,
    /// Its size, if known.
    pub size: Option<u64>,
    /// Its digest, if known.
    pub digest: Option<Digest>,
    /// Its bytes.
    pub bytes: Bytes,
    /// Only these of its bytes are here, and they are the answer to the range that was asked for.
    pub slice: Option<Slice>,
    /// What the log says of it once its body has gone.
    pub(super) line: Option<Arc<Line>>,
}

/// A held thing as a file, for whoever can use one in the place of bytes.
#[derive(Debug)]
pub struct HeldFile {
    blob: Blob,
    ledger: Ledger,
    going: Option<Going>,
}

/// A head as it is kept, and perhaps as it goes out.
#[derive(Debug, Clone)]
pub struct Head {
    kept: Arc<StoredHead>,
    ready: Option<Arc<Ready>>,
}

/// What is the same in all answers made of a head.
#[derive(Debug)]
struct Ready {
    fields: HeaderMap,
    /// How the head of a whole answer begins on the wire; none where the server has something to add.
    lines: Option<Vec<u8>>,
}

/// Which bytes of a thing answer a range, where not all of the thing is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The answer.
    pub range: Range<u64>,
    /// The first byte that is here.
    pub first: u64,
}

/// Where the bytes of a held thing are.
#[derive(Debug)]
pub enum Bytes {
    /// There are none.
    None,
    /// In the store.
    Blob(Blob, Ledger),
    /// Arriving; the follower reads nothing, it shows that somebody is interested.
    Growing(Arc<Running>, Cuts, Follower, Again),
    /// In the store, being proved again.
    Proving(Growing, Cuts, Ledger),
}

impl Reply {
    /// With the line that the log gets at the end of its body.
    pub(super) fn lined(mut self, line: Line) -> Self {
        match &mut self.given {
            Given::Held(held) => held.line = Some(Arc::new(line.told(&self.status, held.head.status))),
            Given::Passed(response) => {
                let line = Arc::new(line.told(&self.status, response.status().as_u16()));
                let body = std::mem::take(response.body_mut());
                let wanted = http_body::Body::size_hint(&body).exact();
                *response.body_mut() = line::watched(body, &line, wanted, None);
            }
        }
        self
    }
}

impl HeldFile {
    /// Open for reading alone.
    pub fn file(&self) -> &std::fs::File {
        self.blob.file()
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.blob.size()
    }

    /// Its reader has it.
    pub fn delivered(self) {
        self.ledger.delivered(From::Cache, self.blob.size());
        if let Some(going) = &self.going {
            going.took(self.blob.size());
        }
    }
}

impl Head {
    /// With its fields made ready for many answers.
    pub(super) fn prepared(head: StoredHead, digest: Digest) -> Self {
        let fields = ready(&head, Some(digest));
        let lines = lines(&head, &fields);
        Self { kept: Arc::new(head), ready: Some(Arc::new(Ready { fields, lines })) }
    }
}

impl std::convert::From<StoredHead> for Head {
    fn from(head: StoredHead) -> Self {
        Self { kept: Arc::new(head), ready: None }
    }
}

impl std::ops::Deref for Head {
    type Target = StoredHead;

    fn deref(&self) -> &StoredHead {
        &self.kept
    }
}

/// The fields that are the same whoever asks for whatever of a thing.
fn ready(head: &StoredHead, digest: Option<Digest>) -> HeaderMap {
    let mut fields = head.headers();
    fields.remove(header::CONTENT_LENGTH);
    fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(Ok(digest)) = digest.map(|digest| HeaderValue::try_from(digest.repr_digest())) {
        fields.insert(REPR_DIGEST, digest);
    }
    fields
}

/// The beginning of a whole answer's head.
fn lines(head: &StoredHead, fields: &HeaderMap) -> Option<Vec<u8>> {
    // what has no date gets one when it is sent (RFC 9110 section 6.6.1)
    if head.status != http::StatusCode::OK || !fields.contains_key(header::DATE) {
        return None;
    }
    let mut lines = b"HTTP/1.1 200 OK\r\n".to_vec();
    for (name, value) in fields.iter().filter(|(name, _)| *name != header::AGE) {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    Some(lines)
}

impl Held {
    /// All that goes on the wire for a plain GET of the whole, put in the place of what is in `out`, if that needs
    /// no waiting; `door` are the lines that the door adds to the head. What is given back is to be told when all
    /// has gone.
    pub fn at_once(&self, out: &mut Vec<u8>, door: &[u8]) -> Option<HeldFile> {
        let ready = self.head.ready.as_ref()?;
        let (file, age) = (self.file()?, self.age?.as_secs().min(1 << 31));
        out.clear();
        out.extend_from_slice(ready.lines.as_ref()?);
        write!(out, "content-length: {}\r\nage: {age}\r\n", file.size()).ok()?;
        out.extend_from_slice(door);
        out.extend_from_slice(b"\r\n");
        file.blob.add_cached(out).then_some(file)
    }

    /// The fields of an answer made of it, but for those that depend on what of it is sent.
    pub fn fields(&self) -> HeaderMap {
        let mut fields = match &self.head.ready {
            Some(ready) => ready.fields.clone(),
            None => ready(&self.head, self.digest),
        };
        if let Some(age) = self.age {
            fields.insert(header::AGE, HeaderValue::from(age.as_secs().min(1 << 31)));
        }
        fields
    }

    /// A slice of it as a body, counted in the ledger as it goes out.
    pub fn body(&self, range: Range<u64>) -> Body {
        let first = self.slice.as_ref().map_or(0, |slice| slice.first);
        let range = range.start.saturating_sub(first)..range.end.saturating_sub(first);
        match &self.bytes {
            Bytes::None => crate::http::empty(),
            Bytes::Blob(blob, ledger) => {
                let wanted = range.end.saturating_sub(range.start);
                let going = self.line.as_ref().map(|line| Going::new(line, Some(wanted)));
                delivery::of_blob(blob, range, ledger.clone(), going)
            }
            Bytes::Growing(running, cuts, _, again) => {
                let (from, wanted) = (range.start, range.end.saturating_sub(range.start));
                let body =
                    delivery::of_growing(running, (from, Some(range.end)), cuts.clone(), again.clone());
                self.watched(body, Some(wanted), Some(running))
            }
            Bytes::Proving(growing, cuts, ledger) => {
                let (from, wanted) = (range.start, range.end.saturating_sub(range.start));
                let body = delivery::of_proof(growing, from, Some(range.end), cuts.clone(), ledger.clone());
                self.watched(body, Some(wanted), None)
            }
        }
    }

    fn watched(&self, body: Body, wanted: Option<u64>, running: Option<&Arc<Running>>) -> Body {
        match &self.line {
            Some(line) => line::watched(body, line, wanted, running),
            None => body,
        }
    }

    /// The whole as a file, where it lies in the store and needs no proof.
    pub fn file(&self) -> Option<HeldFile> {
        match &self.bytes {
            Bytes::Blob(blob, ledger)
                if self.slice.is_none() && self.head.status == 200 && blob.is_read_only() =>
            {
                Some(HeldFile {
                    blob: blob.clone(),
                    ledger: ledger.clone(),
                    going: self.line.as_ref().map(|line| Going::new(line, Some(blob.size()))),
                })
            }
            Bytes::Blob(..) | Bytes::None | Bytes::Growing(..) | Bytes::Proving(..) => None,
        }
    }

    /// Waits until what is arriving is here, holding on to it.
    pub(super) async fn settled(&self) {
        if let Bytes::Growing(running, ..) = &self.bytes {
            running.growing().ended().await;
        }
    }

    /// All of it as a body, whatever its size turns out to be.
    pub fn whole(&self) -> Body {
        match &self.bytes {
            Bytes::Growing(running, cuts, _, again) => {
                let body = delivery::of_growing(running, (0, None), cuts.clone(), again.clone());
                self.watched(body, self.size, Some(running))
            }
            Bytes::None | Bytes::Blob(..) | Bytes::Proving(..) => self.body(0..self.size.unwrap_or(0)),
        }
    }
}

/// How an answer came about, as `Cache-Status` says it (RFC 9211).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Answered without going forward.
    pub hit: bool,
    /// Why it went forward: `uri-miss`, `vary-miss`, `stale`, `bypass`, `method`, `request`, `partial`.
    pub fwd: Option<&'static str>,
    /// The status the origin answered with, where it differs from ours.
    pub fwd_status: Option<u16>,
    /// What came is being stored.
    pub stored: bool,
    /// It is read from a transfer that another request began.
    pub collapsed: bool,
    /// Whose bytes: `origin`, `peer 10.0.0.7`, or another remark.
    pub detail: Option<String>,
}

impl CacheStatus {
    /// From the store.
    pub fn hit() -> Self {
        Self { hit: true, ..Self::default() }
    }

    /// From somewhere else, for this reason.
    pub fn forwarded(why: &'static str, detail: impl Into<String>) -> Self {
        Self { fwd: Some(why), detail: Some(detail.into()), ..Self::default() }
    }

    /// With another remark.
    #[must_use]
    pub fn remarked(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

impl fmt::Display for CacheStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("larder")?;
        if self.hit {
            f.write_str("; hit")?;
        }
        if let Some(why) = self.fwd {
            write!(f, "; fwd={why}")?;
        }
        if let Some(status) = self.fwd_status {
            write!(f, "; fwd-status={status}")?;
        }
        if self.stored {
            f.write_str("; stored")?;
        }
        if self.collapsed {
            f.write_str("; collapsed")?;
        }
        match &self.detail {
            Some(detail) => write!(f, "; detail=\"{}\"", detail.replace(['"', '\\'], "'")),
            None => Ok(()),
        }
    }
}

/// Whose bytes, in `Cache-Status` words.
pub(super) fn detail(from: From, peer: Option<std::net::IpAddr>) -> String {
    match (from, peer) {
        (From::Peer, Some(address)) => format!("peer {address}"),
        (From::Peer, None) => "peer".to_owned(),
        (From::Origin, _) => "origin".to_owned(),
        (From::Cache, _) => "cache".to_owned(),
    }
}
