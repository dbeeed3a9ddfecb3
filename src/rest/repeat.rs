//! The same question again: its answer is kept while the rows it was made of stay as they are.
//!
//! Kept are whole answers to questions about one resource, where the engine can tell without waiting that nothing
//! changed. A question that is answered from here costs no look at the disk, so it may be asked on any thread.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hashbrown::HashTable;
use http::header::{ACCEPT, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use http::{Method, Response, StatusCode};

use super::{Api, Ask, Resource};
use crate::http::{Body, full};

/// The bytes of all answers that are kept; when there are more, all are forgotten.
const BYTES: usize = 4 << 20;
/// The most bytes of one.
const EACH: usize = 64 << 10;

/// Answers that were given.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    hasher: RandomState,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    answers: HashTable<Answer>,
    bytes: usize,
}

#[derive(Debug)]
struct Answer {
    path: String,
    query: String,
    /// Of the engine, before its rows were looked at.
    state: u64,
    fields: HeaderMap,
    body: Bytes,
}

impl Api {
    /// The answer to a question that was asked before, if it is still the right one. Never waits.
    pub fn at_hand(&self, below: &str, ask: &Ask<'_>) -> Option<Response<Body>> {
        let state = self.repeatable(below, ask)?;
        self.repeats.find(ask, state)
    }

    /// The state of the rows that a question is about, where its answer depends on nothing else.
    pub(super) fn repeatable(&self, below: &str, ask: &Ask<'_>) -> Option<u64> {
        let plain = ask.method == Method::GET
            && ![IF_MATCH, IF_NONE_MATCH].iter().any(|name| ask.headers.contains_key(name))
            && !ask.headers.contains_key("prefer")
            && ask.headers.get(ACCEPT).is_none_or(|accepted| accepted == "*/*");
        let name = below.trim_start_matches('/').split('/').next().unwrap_or_default();
        let (_, resource) = self.find(name).filter(|_| plain)?;
        is_of_it_alone(resource, ask.query).then(|| resource.rows.state())?
    }

    /// Keeps the answer to a question of that kind.
    pub(super) fn keep(&self, ask: &Ask<'_>, state: u64, response: &Response<Body>) {
        if response.status() == StatusCode::OK
            && let Some(body) = response.body().whole().filter(|body| body.len() <= EACH)
        {
            self.repeats.put(Answer {
                path: ask.path.to_owned(),
                query: ask.query.to_owned(),
                state,
                fields: response.headers().clone(),
                body: body.clone(),
            });
        }
    }
}

/// Whether a query asks for the rows of this resource and no others, by nothing but their fields.
fn is_of_it_alone(resource: &Resource, query: &str) -> bool {
    // other resources stand in brackets, and a name by which rows are found may mean another one after a reload
    let embeds = query.contains('(') || query.contains('%');
    !embeds && !resource.lookups.iter().any(|lookup| query.contains(lookup.name))
}

impl Repeats {
    fn find(&self, ask: &Ask<'_>, state: u64) -> Option<Response<Body>> {
        let kept = self.lock();
        let answer = kept.answers.find(self.hash(ask.path, ask.query), |answer| answer.is_to(ask))?;
        if answer.state != state {
            return None;
        }
        let mut response = Response::new(full(answer.body.clone()));
        *response.headers_mut() = answer.fields.clone();
        Some(response)
    }

    fn put(&self, answer: Answer) {
        let mut kept = self.lock();
        kept.bytes += answer.size();
        if kept.bytes > BYTES {
            kept.answers.clear();
            kept.bytes = answer.size();
        }
        let hash = self.hash(&answer.path, &answer.query);
        let same = |other: &Answer| other.path == answer.path && other.query == answer.query;
        if let Ok(known) = kept.answers.find_entry(hash, same) {
            let (before, _) = known.remove();
            kept.bytes = kept.bytes.saturating_sub(before.size());
        }
        kept.answers.insert_unique(hash, answer, |other| self.hash(&other.path, &other.query));
    }

    fn hash(&self, path: &str, query: &str) -> u64 {
        self.hasher.hash_one((path, query))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answer {
    fn is_to(&self, ask: &Ask<'_>) -> bool {
        self.path == ask.path && self.query == ask.query
    }

    /// About what it takes in memory.
    fn size(&self) -> usize {
        self.path.len() + self.query.len() + self.body.len() + 1024
    }
}
