//! Heads and bodies of requests: what goes through, and what is found wrong, does not depend on how the bytes are cut;
//! where nothing is wrong they go through as they came.
#![no_main]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use larder::http::inspect::{Fault, Inspected, Limits};
use tokio::io::{AsyncRead, ReadBuf};

const LIMITS: Limits = Limits {
    head: 1024,
    fields: 20,
    head_time: Duration::from_secs(30),
    body_silence: Duration::from_secs(30),
};

/// A connection that brings so many bytes at once, then its end.
struct Pieces<'a>(std::slice::Chunks<'a, u8>);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buf.put_slice(self.0.next().unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

/// What the server behind sees, and what is found wrong with which request.
fn through(bytes: &[u8], piece: usize) -> (Vec<u8>, Option<(usize, Fault)>) {
    let (mut stream, inspection) = Inspected::new(Pieces(bytes.chunks(piece)), LIMITS);
    let (mut seen, mut space) = (Vec::new(), vec![0; 8192]);
    loop {
        let mut buf = ReadBuf::new(&mut space);
        match Pin::new(&mut stream).poll_read(&mut Context::from_waker(Waker::noop()), &mut buf) {
            Poll::Ready(Ok(())) if !buf.filled().is_empty() => seen.extend_from_slice(buf.filled()),
            // the end, a body that broke, or nothing more for ever
            _ => break,
        }
    }
    // each request takes bytes
    let fault = (1..=bytes.len() + 1).find_map(|number| Some((number, inspection.enter()?)));
    (seen, fault)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (seen, fault) = through(bytes, 4096);
    for piece in [1, 7] {
        let (seen_in_pieces, fault_in_pieces) = through(bytes, piece);
        assert_eq!(fault, fault_in_pieces, "in pieces of {piece}");
        // of a body that breaks, more or less of its good part goes through
        let same = seen.len().min(seen_in_pieces.len());
        assert_eq!(seen[..same], seen_in_pieces[..same], "in pieces of {piece}");
    }
    if fault.is_none() {
        assert!(bytes.starts_with(&seen), "what goes through was not sent");
    }
});
