//! What administrators did: an audit that is bounded and ages away.

use std::time::Duration;

use crate::clock::Timestamp;

/// More events than this are not kept; the oldest go first.
pub(super) const EVENTS: usize = 10_000;
/// How long an event is remembered.
pub(super) const REMEMBERED: Duration = Duration::from_secs(90 * 86_400);

crate::record! {
    /// Something an administrator did, or tried to do.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EventRecord in "events" [without_rowid], columns EventColumns {
        key {
            /// Its number; later ones are larger.
            id: u64,
        }
        /// When.
        at: Timestamp [index],
        /// By which door: `socket`, or `port` with the token.
        door: String,
        /// Who: `token`, the name of an administrator, or the user at the socket.
        who: String,
        /// How: the method of the request.
        method: String,
        /// On what: the path of the request.
        path: String,
        /// What came of it: the status of the answer.
        status: u32,
    }
}
