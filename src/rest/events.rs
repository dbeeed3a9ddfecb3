//! What changes, as it is committed: server-sent events (WHATWG HTML, section 9.2) that a client can go on with
//! where it was cut off; the same over WebSocket stands in `socket`.
//!
//! An event is `change`, its data the record, the key and the row as it is now, or null where it is gone. Each
//! has a number; `Last-Event-ID`, or `last_event_id` in the query, goes on after that one. What is too old to be known, or of another run of the
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

/// The last event that a client has seen: a field of the request, and a name in its query.
const LAST_FIELD: &str = "last-event-id";
const LAST: &str = "last_event_id";

/// One client and where it is.
pub(super) struct Follower {
    api: Arc<Api>,
    feed: Feed,
    newest: watch::Receiver<u64>,
    last: u64,
    /// Names of records; all if there are none.
    records: Vec<String>,
    /// What is said before anything else.
    greeting: Option<&'static str>,
    stop: Shutdown,
    _place: OwnedSemaphorePermit,
}

/// What a client hears.
pub(super) enum Heard {
    Events(Vec<Event>),
    /// For a while there was nothing.
    Nothing,
}

/// One event: its number, its kind, and its data as JSON.
pub(super) struct Event {
    id: String,
    kind: &'static str,
    data: String,
}

impl Api {
    /// Whether a request for the path of the events wants to follow them.
    pub fn follows(ask: &Ask<'_>) -> bool {
        let accepts = ask.headers.get_all("accept").iter().filter_map(|field| field.to_str().ok());
        let named = |name| ask.query.split('&').any(|pair| pair.split('=').next() == Some(name));
        let asked = named("record") || named(LAST) || Self::wants_socket(ask.headers);
        asked || accepts.into_iter().any(|field| field.contains("text/event-stream"))
    }

    /// Answers with what changes from now on, or from where the client was, until it leaves or `stop`.
    pub fn events(self: &Arc<Self>, ask: &Ask<'_>, stop: Shutdown) -> Response<Body> {
        self.follower(ask, stop).map_or_else(Problem::into_response, |follower| {
            let frames = stream::unfold(follower, |mut follower| async move {
                let text = follower.heard().await?.as_events();
                Some((Ok::<_, BodyError>(Frame::data(Bytes::from(text))), follower))
            });
            let mut response = Response::new(boxed(StreamBody::new(frames)));
            let fields = response.headers_mut();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        })
    }

    /// Somebody who follows from now on, or from where it was.
    pub(super) fn follower(self: &Arc<Self>, ask: &Ask<'_>, stop: Shutdown) -> Result<Follower, Problem> {
        if ask.method != Method::GET {
            return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Not by this method"));
        }
        let place = Arc::clone(&self.followers).try_acquire_owned().map_err(|_full| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "Somebody else is at it")
                .detail(format!("{FOLLOWERS} clients follow the events already"))
        })?;
        let feed = self.feed().clone();
        let (records, named) = self.chosen(ask.query)?;
        // a browser's WebSocket cannot send a field: the query may say it
        let seen = ask.headers.get(LAST_FIELD).and_then(|field| field.to_str().ok());
        let newest = feed.watch();
        let (last, known) = match seen.or(named.as_deref()) {
            None => (feed.last(), true),
            Some(text) => match number(&feed, text) {
                Some(number) => (number, !feed.after(number, 0).missed),
                None => (feed.last(), false),
            },
        };
        let last = if known { last } else { feed.last() };
        let greeting = Some(if known { "ready" } else { "missed" });
        let api = Arc::clone(self);
        Ok(Follower { api, feed, newest, last, records, greeting, stop, _place: place })
    }

    /// The records that a query names, and the event that it goes on after.
    fn chosen(&self, query: &str) -> Result<(Vec<String>, Option<String>), Problem> {
        let (mut records, mut last) = (Vec::new(), None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "record" => records.extend(decoded(text)?.split(',').map(str::to_owned)),
                LAST => last = Some(decoded(text)?),
                _ => {
                    let known = vec!["record".to_owned(), LAST.to_owned()];
                    return Err(bad(name, "events are chosen by record").allowed(known));
                }
            }
        }
        let told = || self.resources().iter().filter(|resource| resource.is_told).map(super::Resource::name);
        match records.iter().find(|name| !told().any(|known| known == name.as_str())) {
            Some(unknown) => {
                Err(bad("record", format!("nothing is told of `{}`", super::field::shortened(unknown)))
                    .allowed(told().map(str::to_owned).collect()))
            }
            None => Ok((records, last)),
        }
    }
}

/// The number in an id of ours; none if it is of another life.
fn number(feed: &Feed, id: &str) -> Option<u64> {
    let (life, number) = id.split_once('-')?;
    if life == feed.life() { number.parse().ok() } else { None }
}

impl Follower {
    /// What is heard next; none when it is time to stop. Dropping the future loses nothing.
    pub(super) async fn heard(&mut self) -> Option<Heard> {
        if let Some(greeting) = self.greeting.take() {
            return Some(Heard::Events(vec![self.event(self.last, greeting, "{}".to_owned())]));
        }
        loop {
            // marked as seen before it is looked at, so that nothing slips in between
            self.newest.mark_unchanged();
            let news = self.feed.after(self.last, AT_ONCE);
            self.last = news.last;
            let mut events = Vec::new();
            if news.missed {
                events.push(self.event(self.last, "missed", "{}".to_owned()));
            }
            events.extend(news.changes.iter().filter_map(|(number, change)| self.told(*number, change)));
            if !events.is_empty() {
                return Some(Heard::Events(events));
            }
            if !news.changes.is_empty() {
                continue;
            }
            tokio::select! {
                changed = self.newest.changed() => changed.ok()?,
                () = self.stop.requested() => return None,
                () = tokio::time::sleep(STILL_HERE) => return Some(Heard::Nothing),
            }
        }
    }

    /// A change as an event, if it is of a record that was asked for.
    fn told(&self, number: u64, change: &Change) -> Option<Event> {
        let name = change.table.name;
        if !self.records.is_empty() && !self.records.iter().any(|record| record == name) {
            return None;
        }
        let row = change.row.as_ref().zip(self.api.find(name)).map(|(row, (_, resource))| {
            String::from_utf8(one(change.table, &Shown::all(resource), row.as_slice(), &[]))
                .unwrap_or_default()
        });
        let (record, key) = (Value::from(name), Value::from(key_text(change.table, &change.key)));
        let row = row.as_deref().unwrap_or("null");
        Some(self.event(number, "change", format!("{{\"record\":{record},\"key\":{key},\"row\":{row}}}")))
    }

    fn event(&self, number: u64, kind: &'static str, data: String) -> Event {
        Event { id: format!("{}-{number}", self.feed.life()), kind, data }
    }
}

impl Heard {
    /// As server-sent events.
    fn as_events(&self) -> String {
        let Self::Events(events) = self else { return ": still here\n\n".to_owned() };
        let each = events.iter().map(|Event { id, kind, data }| {
            // said once, with the first event
            let retry = if *kind == "ready" || *kind == "missed" { "retry: 1000\n" } else { "" };
            format!("{retry}id: {id}\nevent: {kind}\ndata: {data}\n\n")
        });
        each.collect()
    }
}

impl Event {
    /// As one JSON text.
    pub(super) fn as_json(&self) -> String {
        let Self { id, kind, data } = self;
        format!("{{\"id\":\"{id}\",\"event\":\"{kind}\",\"data\":{data}}}")
    }
}
