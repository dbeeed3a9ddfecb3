//! Answers that were given out of the store lately, ready to be given again.
//!
//! What a rule says of a URL, what kind of thing it is, how long its answer is fresh: none of it changes between two
//! requests for the same thing, and reckoning it costs more than sending a small file. So an answer that was
//! served with no word but its own is remembered with all that was found out about it, and given again as long as
//! everything it rested on stands: the rules, the stored answer as the only one of its URL, its freshness, and that
//! nobody has stated anything about the URL. Whatever is not as plain as that goes the whole way.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{self, HeaderMap};

use super::engine::{Case, Engine};
use super::line::Line;
use super::outcome::{Bytes, Head, Held};
use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::ecosystem::{self, Document, Lasts, Passing};
use crate::http::Target;
use crate::index::ResourceRecord;
use crate::policy::{self, Caching, Rules, UrlKey};

/// So many answers are remembered in each of two halves.
const HALF: usize = 512;

/// Answers by target; those that were not asked for lately go.
#[derive(Debug, Default)]
pub(super) struct KnownAnswers(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    young: HashMap<Target, Arc<Known>>,
    old: HashMap<Target, Arc<Known>>,
}

/// An answer and what was found out about it.
#[derive(Debug)]
struct Known {
    record: Arc<ResourceRecord>,
    digest: Digest,
    url: UrlKey,
    /// Where something stated of its URL would stand.
    statement: UrlKey,
    rules: Arc<Rules>,
    /// When it was how old.
    seen: (Timestamp, Duration),
    lifetime: Duration,
    head: Head,
}

impl Engine {
    /// The answer that this target led to the last time, if nothing has changed. The request must be a GET or HEAD
    /// that states no digest, shows no credentials, controls no caches, and has no condition but those that a
    /// stored answer can judge. Nothing larger than `most` is given.
    pub fn again(&self, target: &Target, request: &HeaderMap, client: IpAddr, most: u64) -> Option<Held> {
        let known = self.0.known.get(target).filter(|known| known.record.size <= most)?;
        let now = self.0.clock.now();
        let Some(age) = known.age(now).filter(|_| self.stands(&known, now)) else {
            self.0.known.forget(target);
            return None;
        };
        let index = self.0.cache.index();
        if request.contains_key(header::RANGE) && index.cut(client, &known.url, now).is_some() {
            return None;
        }
        let blob = self.0.cache.open_kept(&known.digest)?;
        Some(Held {
            head: known.head.clone(),
            age: Some(age),
            size: Some(blob.size()),
            digest: Some(known.digest),
            bytes: Bytes::Blob(blob, self.0.ledger.clone()),
            slice: None,
            line: Line::of_known(target, &self.0.clock),
        })
    }

    /// Remembers what was just served because it is fresh.
    pub(super) fn remember(&self, case: &Case, record: &Arc<ResourceRecord>) {
        let (want, kind) = (&case.want, ecosystem::classify(&case.want.target));
        let head = &record.answer.head;
        let is_document = [false, true]
            .into_iter()
            .any(|is_packument| Document::of(Passing { target: &want.target, head, is_packument }).is_some());
        let is_plain = !case.judge.is_set()
            && kind.digest.is_none()
            && !matches!(kind.lasts, Lasts::Set | Lasts::Moment)
            && !is_document
            && head.status == 200
            && record.variance.fields().next().is_none()
            && case.rule.cache != Caching::Never;
        let Some(digest) = record.digest.filter(|_| is_plain) else { return };
        let (rules, now) = (self.0.rules.load_full(), self.0.clock.now());
        // the rules may be others than those the case was judged by
        if *rules.for_target(&want.target) != case.rule {
            return;
        }
        let known = Known {
            digest,
            url: case.url,
            statement: self.statement_key(&want.target),
            rules,
            seen: (now, policy::age(&record.answer, now)),
            lifetime: policy::freshness_lifetime(&record.answer, &case.rule),
            head: Head::prepared(head.clone(), digest),
            record: Arc::clone(record),
        };
        if known.age(now).is_some() && self.stands(&known, now) {
            self.0.known.put(want.target.clone(), known);
        }
    }

    fn stands(&self, known: &Known, now: Timestamp) -> bool {
        let index = self.0.cache.index();
        Arc::ptr_eq(&known.rules, &self.0.rules.load())
            && index.is_only_variant(&known.record)
            && index.expectation(&known.statement, now).is_none()
    }
}

impl Known {
    /// How old it is, while it is fresh; none where the clock went back.
    fn age(&self, now: Timestamp) -> Option<Duration> {
        let (then, age) = self.seen;
        let age = age.saturating_add(now.since(then));
        (now >= then && age < self.lifetime).then_some(age)
    }
}

impl KnownAnswers {
    fn get(&self, target: &Target) -> Option<Arc<Known>> {
        let mut halves = self.lock();
        if let Some(known) = halves.young.get(target) {
            return Some(Arc::clone(known));
        }
        let (target, known) = halves.old.remove_entry(target)?;
        halves.keep(target, Arc::clone(&known));
        Some(known)
    }

    fn put(&self, target: Target, known: Known) {
        self.lock().keep(target, Arc::new(known));
    }

    fn forget(&self, target: &Target) {
        let mut halves = self.lock();
        halves.young.remove(target);
        halves.old.remove(target);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Halves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Halves {
    fn keep(&mut self, target: Target, known: Arc<Known>) {
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(target, known);
    }
}
