//! What the room counts.

use serde::Serialize;

/// Frames since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Datagrams that came, this node's own left out.
    pub received: u64,
    /// Of these, not 244 bytes long.
    pub length: u64,
    /// Of these, noise or under another secret.
    pub checksum: u64,
    /// Of these, refused by the cipher.
    pub forged: u64,
    /// Of these, of a sort that nobody knows.
    pub unknown: u64,
    /// Pings of others.
    pub pings: u64,
    /// Questions of others.
    pub requests: u64,
    /// Answers to this node, in time.
    pub answers: u64,
    /// Answers to this node that came too late.
    pub late: u64,
    /// Answers that this node did not ask for.
    pub stray: u64,
    /// Pings and questions not answered because there were too many.
    pub limited: u64,
    /// Frames sent.
    pub sent: u64,
    /// Questions asked.
    pub asked: u64,
}
