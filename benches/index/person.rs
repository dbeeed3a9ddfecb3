//! The record of the original's benchmark.

use larder::clock::Timestamp;
use larder::orm::{Record as _, Schema};

larder::record! {
    /// A person of the original's benchmark.
    #[derive(Debug, Clone, PartialEq)]
    pub(crate) struct Person in "people", columns PersonColumns {
        key {
            /// Its number.
            id: i64,
        }
        /// First name.
        first: String,
        /// Last name.
        last: String,
        /// An amount in ten-thousandths.
        amount: i64,
        /// A date in days.
        date: i64,
        /// When it was made.
        created: Timestamp,
        /// When it was changed.
        changed: Timestamp,
    }
}

pub(crate) static PEOPLE: Schema = Schema { application_id: 21, tables: &[Person::TABLE], steps: &[] };

pub(crate) const RAW_TABLE: &str = "CREATE TABLE people (id INTEGER NOT NULL PRIMARY KEY, first TEXT NOT NULL, \
    last TEXT NOT NULL, amount INTEGER NOT NULL, date INTEGER NOT NULL, created INTEGER NOT NULL, \
    changed INTEGER NOT NULL) STRICT";

impl Person {
    pub(crate) fn number(id: i64) -> Self {
        let now = Timestamp(1_796_040_000_000);
        let (first, last) = (format!("first name {id}"), format!("last name {id}"));
        Self { id, first, last, amount: id * 100, date: 20_000 + id % 1000, created: now, changed: now }
    }
}
