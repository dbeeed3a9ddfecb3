//! Documents that wait to be read: one at a time, a bounded number, none twice within a day.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::ecosystem::{Document, speaks_for};
use crate::http::{StoredHead, Target};
use crate::policy::UrlKey;

/// How many documents wait at most.
const WAITING: usize = 32;
/// How long a document that was read is not read again while it stays the same.
const AGAIN: Duration = Duration::from_secs(86_400);
/// Of how many documents this is remembered.
const REMEMBERED: usize = 8192;
/// How long a want waits for an index that is being read.
const PATIENCE: Duration = Duration::from_millis(250);

/// A document to be read.
pub(in crate::fetch) struct Lesson {
    pub(super) document: Document,
    pub(super) target: Target,
    pub(super) head: StoredHead,
    pub(super) is_packument: bool,
    pub(super) blob: Digest,
    /// When its origin last said that this is what the URL leads to.
    pub(super) said_at: Timestamp,
}

/// What waits and what was read; a cheap clone.
#[derive(Debug, Clone)]
pub(in crate::fetch) struct Lessons(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    turn: Semaphore,
    over: Notify,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Target>,
    read: HashMap<UrlKey, (Digest, Timestamp)>,
}

/// A place in the queue; given up when dropped.
pub(in crate::fetch) struct Ticket {
    lessons: Lessons,
    target: Target,
}

impl Lessons {
    pub(in crate::fetch) fn new() -> Self {
        Self(Arc::new(Inner { turn: Semaphore::new(1), over: Notify::new(), state: Mutex::default() }))
    }

    /// A place in the queue, unless it is full or this was read lately.
    pub(super) fn enter(&self, url: UrlKey, lesson: &Lesson) -> Option<Ticket> {
        let mut state = self.lock();
        let is_known = state
            .read
            .get(&url)
            .is_some_and(|(blob, at)| *blob == lesson.blob && lesson.said_at.since(*at) < AGAIN);
        if is_known || state.waiting.len() >= WAITING {
            return None;
        }
        if state.read.len() >= REMEMBERED {
            state.read.clear();
        }
        state.read.insert(url, (lesson.blob, lesson.said_at));
        state.waiting.push(lesson.target.clone());
        Some(Ticket { lessons: self.clone(), target: lesson.target.clone() })
    }

    /// Waits a moment for the documents that may speak for a target; false if there are none.
    pub(super) async fn over(&self, target: &Target) -> bool {
        let is_awaited = || self.lock().waiting.iter().any(|by| speaks_for(by, target));
        if !is_awaited() {
            return false;
        }
        let all = async {
            loop {
                let over = self.0.over.notified();
                if !is_awaited() {
                    return;
                }
                over.await;
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            tracing::trace!(url = %target, "an index takes long to read");
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Waits until nobody else is read.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.lessons.0.turn.acquire().await.ok()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.lessons.lock();
        if let Some(at) = state.waiting.iter().position(|target| *target == self.target) {
            state.waiting.swap_remove(at);
        }
        drop(state);
        self.lessons.0.over.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lesson(url: &str, blob: &[u8], at: u64) -> Lesson {
        Lesson {
            document: Document::Checksums,
            target: target(url),
            head: StoredHead::default(),
            is_packument: false,
            blob: Digest::of(blob),
            said_at: Timestamp::from_seconds(at),
        }
    }

    fn target(url: &str) -> Target {
        Target::from_uri(&url.parse().unwrap()).unwrap()
    }

    fn key(number: u8) -> UrlKey {
        UrlKey::from_bytes([number; 32])
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_read_twice_and_no_more_than_fits_waits() {
        let lessons = Lessons::new();
        let first = lessons.enter(key(0), &lesson("http://h/a", b"a", 0));
        assert!(first.is_some());
        assert!(lessons.enter(key(0), &lesson("http://h/a", b"a", 60)).is_none());
        assert!(lessons.enter(key(0), &lesson("http://h/a", b"b", 60)).is_some());
        assert!(lessons.enter(key(0), &lesson("http://h/a", b"b", 90_000)).is_some());
        let all: Vec<_> = (1..=100).map(|n| lessons.enter(key(n), &lesson("http://h/b", b"a", 0))).collect();
        assert_eq!(all.iter().flatten().count(), WAITING - 1);
        let turn = first.as_ref().unwrap().turn().await;
        assert!(turn.is_some());
        let other = all.first().and_then(Option::as_ref).unwrap();
        assert!(tokio::time::timeout(PATIENCE, other.turn()).await.is_err(), "one at a time");
    }

    #[tokio::test(start_paused = true)]
    async fn who_wants_a_file_waits_for_its_own_index_and_not_for_ever() {
        let lessons = Lessons::new();
        assert!(!lessons.over(&target("http://h/x")).await);
        let ticket = lessons.enter(key(1), &lesson("http://h/a", b"a", 0));
        assert!(!lessons.over(&target("http://other/x")).await);
        assert!(lessons.over(&target("http://h/x")).await);
        let waiting = tokio::spawn({
            let lessons = lessons.clone();
            async move { lessons.over(&target("http://h/x")).await }
        });
        tokio::task::yield_now().await;
        drop(ticket);
        assert!(waiting.await.unwrap());
        assert!(!lessons.over(&target("http://h/x")).await);
    }
}
