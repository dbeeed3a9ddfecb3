//! What changes, as it is committed: server-sent events (WHATWG HTML, section 9.2) that a client can go on with
//! where it was cut off.
//!
//! An event is `change`, its data the record, the key and the row as it is now, or null where it is gone. Each
//! has a number; `Last-Event-ID` goes on after that one. What is too old to be known, or of another run of the
//! program, is answered by `missed` first: list again, then follow. Nothing is kept for a client but the number
//! it is at.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::field::{bad, key_text};
use super::format::one;
use super::question::decoded;
use super::select::Shown;
use super::{Api, Ask, Problem};
use crate::http::{Body, BodyError, boxed};
use crate::orm::{Change, Feed};
use crate::shutdown::Shutdown;

/// The most changes sent at once.
const AT_ONCE: usize = 256;
/// How often a client with nothing to hear hears that.
const STILL_HERE: Duration = Duration::from_secs(15);
/// The most clients that follow.
pub(super) const FOLLOWERS: usize = 64;

/// One client and where it is.
struct Follower {
    api: Arc<Api>,
    feed: Feed,
    newest: watch::Receiver<u64>,
    last: u64,
    /// Names of records; all if there are none.
    records: Vec<String>,
    /// What is said before anything else.
    greeting: Option<String>,
    stop: Shutdown,
    _place: OwnedSemaphorePermit,
}

impl Api {
    /// Whether a request for the path of the events wants to follow them.
    pub fn follows(ask: &Ask<'_>) -> bool {
        let accepts = ask.headers.get_all("accept").iter().filter_map(|field| field.to_str().ok());
        let named = ask.query.split('&').any(|pair| pair.split('=').next() == Some("record"));
        named || accepts.into_iter().any(|field| field.contains("text/event-stream"))
    }

    /// Answers with what changes from now on, or from where the client was, until it leaves or `stop`.
    pub fn events(self: &Arc<Self>, ask: &Ask<'_>, stop: Shutdown) -> Response<Body> {
        self.followed(ask, stop).unwrap_or_else(Problem::into_response)
    }

    fn followed(self: &Arc<Self>, ask: &Ask<'_>, stop: Shutdown) -> Result<Response<Body>, Problem> {
        if ask.method != Method::GET {
            return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Not by this method"));
        }
        let place = Arc::clone(&self.followers).try_acquire_owned().map_err(|_full| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "Somebody else is at it")
                .detail(format!("{FOLLOWERS} clients follow the events already"))
        })?;
        let feed = self.feed().clone();
        let seen = ask.headers.get("last-event-id").and_then(|field| field.to_str().ok());
        let newest = feed.watch();
        let (last, known) = match seen {
            None => (feed.last(), true),
            Some(text) => match number(&feed, text) {
                Some(number) => (number, !feed.after(number, 0).missed),
                None => (feed.last(), false),
            },
        };
        let last = if known { last } else { feed.last() };
        let word = if known { "ready" } else { "missed" };
        let greeting =
            Some(format!("retry: 1000\nid: {}-{last}\nevent: {word}\ndata: {{}}\n\n", feed.life()));
        let records = self.records(ask.query)?;
        let api = Arc::clone(self);
        let follower = Follower { api, feed, newest, last, records, greeting, stop, _place: place };
        let frames = stream::unfold(follower, |follower| follower.next());
        let mut response = Response::new(boxed(StreamBody::new(frames)));
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    /// The records that a query names.
    fn records(&self, query: &str) -> Result<Vec<String>, Problem> {
        let mut records = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
            if name != "record" {
                return Err(bad(name, "events are chosen by record").allowed(vec!["record".to_owned()]));
            }
            records.extend(decoded(text)?.split(',').map(str::to_owned));
        }
        let told = || self.resources().iter().filter(|resource| resource.is_told).map(super::Resource::name);
        match records.iter().find(|name| !told().any(|known| known == name.as_str())) {
            Some(unknown) => {
                Err(bad("record", format!("nothing is told of `{}`", super::field::shortened(unknown)))
                    .allowed(told().map(str::to_owned).collect()))
            }
            None => Ok(records),
        }
    }
}

/// The number in an id of ours; none if it is of another life.
fn number(feed: &Feed, id: &str) -> Option<u64> {
    let (life, number) = id.split_once('-')?;
    if life == feed.life() { number.parse().ok() } else { None }
}

type Next = Option<(Result<Frame<Bytes>, BodyError>, Follower)>;

impl Follower {
    async fn next(mut self) -> Next {
        if let Some(greeting) = self.greeting.take() {
            return self.say(greeting);
        }
        loop {
            // marked as seen before it is looked at, so that nothing slips in between
            self.newest.mark_unchanged();
            let news = self.feed.after(self.last, AT_ONCE);
            self.last = news.last;
            let mut text = String::new();
            if news.missed {
                text.push_str(&format!(
                    "id: {}-{}\nevent: missed\ndata: {{}}\n\n",
                    self.feed.life(),
                    self.last
                ));
            }
            for (number, change) in &news.changes {
                self.tell(*number, change, &mut text);
            }
            if !text.is_empty() {
                return self.say(text);
            }
            if !news.changes.is_empty() {
                continue;
            }
            tokio::select! {
                changed = self.newest.changed() => changed.ok()?,
                () = self.stop.requested() => return None,
                () = tokio::time::sleep(STILL_HERE) => return self.say(": still here\n\n".to_owned()),
            }
        }
    }

    fn say(self, text: String) -> Next {
        Some((Ok(Frame::data(Bytes::from(text))), self))
    }

    fn tell(&self, number: u64, change: &Change, to: &mut String) {
        let name = change.table.name;
        if !self.records.is_empty() && !self.records.iter().any(|record| record == name) {
            return;
        }
        let row = change.row.as_ref().zip(self.api.find(name)).map(|(row, (_, resource))| {
            String::from_utf8(one(change.table, &Shown::all(resource), row.as_slice(), &[]))
                .unwrap_or_default()
        });
        let (record, key) = (Value::from(name), Value::from(key_text(change.table, &change.key)));
        let row = row.as_deref().unwrap_or("null");
        to.push_str(&format!(
            "id: {}-{number}\nevent: change\ndata: {{\"record\":{record},\"key\":{key},\"row\":{row}}}\n\n",
            self.feed.life()
        ));
    }
}
