//! What comes in on a connection is looked over before any parser sees it.
//!
//! [`Inspected`] stands between a socket and the HTTP server. It lets through only requests whose every byte
//! means one thing to everybody (RFC 9112): whole heads, with CRLF at each line's end, one framing, one host;
//! chunked bodies whose sizes and line ends are exact. What hyper would repair or read generously (LF alone,
//! a repeated length, `chunked, chunked`, a fragment) is refused, because somebody behind us could read it
//! otherwise: that difference is what request smuggling lives on.
//!
//! A request that is refused is replaced by a harmless one, and the server, whose turn to answer it comes in
//! the order of the requests, learns from the [`Inspection`] what was wrong. Nothing behind it is read. A body
//! that breaks ends in a read error, and the inspection says why. A head that takes longer than
//! [`Limits::head_time`] from its first byte, or a body that is silent for [`Limits::body_silence`], is a
//! fault too; a connection on which nothing was begun is the server's own affair.
//!
//! Costs one pass over each head and over the lines between chunks; bodies with a length, and whatever follows
//! a `CONNECT` or an accepted upgrade, are not looked at. Knows nothing of doors, answers or caches.

mod body;
mod fault;
mod head;
mod line;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use fault::Fault;
pub use stream::Inspected;

/// How much one request may ask of us.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a head.
    pub head: usize,
    /// Fields in a head, and in the trailer section of a body.
    pub fields: usize,
    /// From the first byte of a head to its last.
    pub head_time: Duration,
    /// Between two parts of a body.
    pub body_silence: Duration,
}

/// What was found on one connection; a cheap clone for whoever answers.
#[derive(Debug, Clone, Default)]
pub struct Inspection(Arc<Found>);

#[derive(Debug, Default)]
struct Found {
    /// The request, counted from 1, that was refused, and why.
    fault: OnceLock<(usize, Fault)>,
    /// Requests that were answered or are being answered.
    served: AtomicUsize,
    /// What comes from now on is no HTTP.
    released: AtomicBool,
}

/// Whether these bytes are the whole head of one request that has no body, and nothing else, each of them as it must
/// be. What is no such thing may still be right: it is for [`Inspected`] to say.
pub fn is_bodiless(bytes: &[u8], limits: &Limits) -> bool {
    let read = head::Head::default().read(bytes, limits);
    matches!(read, Ok(Some((length, head::Framing::None))) if length == bytes.len())
}

impl Inspection {
    /// To be called once for each request, in order: what is wrong with it, if that is known already.
    pub fn enter(&self) -> Option<Fault> {
        self.0.served.fetch_add(1, Ordering::AcqRel);
        self.fault()
    }

    /// What is wrong with the request that is being answered, its body included.
    pub fn fault(&self) -> Option<Fault> {
        let served = self.0.served.load(Ordering::Acquire);
        self.0.fault.get().filter(|(number, _)| *number == served).map(|(_, fault)| *fault)
    }

    /// The answer to the last request changes the protocol: what comes is no longer looked at. To be called
    /// before that answer leaves.
    pub fn release(&self) {
        self.0.released.store(true, Ordering::Release);
    }

    fn is_released(&self) -> bool {
        self.0.released.load(Ordering::Acquire)
    }

    /// Only the first fault of a connection counts: nothing is read after it.
    fn note(&self, request: usize, fault: Fault) {
        let _first_one_stays = self.0.fault.set((request, fault));
    }
}
