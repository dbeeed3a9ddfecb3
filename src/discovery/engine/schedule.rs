//! What is to be done later, in order of time.

use std::collections::BTreeMap;
use std::time::Instant;

use super::answer::AskedKey;
use super::contact::ContactKey;
use crate::discovery::message::QueryId;

/// Something to be done later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Hello,
    Greet(ContactKey),
    Answer(AskedKey),
    /// A find has waited long enough.
    Deadline(QueryId),
    /// Who has not answered by now is silent.
    Judge(QueryId),
    Sweep,
}

/// The tasks; each kind is bounded by whoever adds it.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    tasks: BTreeMap<(Instant, u64), Task>,
    count: u64,
}

impl Schedule {
    pub(super) fn at(&mut self, time: Instant, task: Task) {
        self.count += 1;
        self.tasks.insert((time, self.count), task);
    }

    /// Adds a task in the place of an equal one.
    pub(super) fn instead(&mut self, time: Instant, task: Task) {
        self.tasks.retain(|_, other| *other != task);
        self.at(time, task);
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.tasks.first_key_value().map(|((time, _), _)| *time)
    }

    /// The next task whose time has come.
    pub(super) fn due(&mut self, now: Instant) -> Option<Task> {
        self.next().filter(|time| *time <= now)?;
        self.tasks.pop_first().map(|(_, task)| task)
    }
}
