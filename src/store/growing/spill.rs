//! The window in memory through which the rest of a thing passes when the disk has given out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// How much may wait in memory for the slowest reader.
const WINDOW: u64 = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Spill {
    active: AtomicBool,
    window: Mutex<Window>,
    moved: Notify,
}

#[derive(Debug, Default)]
struct Window {
    /// Offset of the first byte in the window; what lies before it is in the file or gone.
    base: u64,
    /// Where the window began: what lies before is in the file.
    first: u64,
    bytes: u64,
    pieces: VecDeque<Bytes>,
}

/// Where a reader finds its next byte.
#[derive(Debug)]
pub(super) enum Place {
    /// In the file, up to this offset.
    File(u64),
    /// Here.
    Memory(Bytes),
    /// The window has moved past it.
    Gone,
}

impl Spill {
    /// From `offset` on nothing goes to the file any more.
    pub(super) fn open(&self, offset: u64) {
        let mut window = self.lock();
        window.base = offset;
        window.first = offset;
        self.active.store(true, Ordering::Release);
    }

    pub(super) fn is_open(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    pub(super) fn push(&self, piece: Bytes) {
        let mut window = self.lock();
        window.bytes += piece.len() as u64;
        window.pieces.push_back(piece);
    }

    /// Lets go of what all readers have passed; true if there is room again.
    pub(super) fn trim(&self, slowest: u64) -> bool {
        let mut window = self.lock();
        while let Some(length) = window.pieces.front().map(|piece| piece.len() as u64) {
            if window.base + length > slowest {
                break;
            }
            window.drop_front(length);
        }
        window.bytes < WINDOW
    }

    /// Lets go of the oldest piece whoever waits for it.
    pub(super) fn force(&self) {
        let mut window = self.lock();
        if let Some(length) = window.pieces.front().map(|piece| piece.len() as u64) {
            window.drop_front(length);
        }
    }

    pub(super) fn place(&self, at: u64) -> Place {
        if !self.active.load(Ordering::Acquire) {
            return Place::File(u64::MAX);
        }
        let window = self.lock();
        if at < window.first {
            return Place::File(window.first);
        }
        let mut base = window.base;
        if at < base {
            return Place::Gone;
        }
        for piece in &window.pieces {
            let end = base + piece.len() as u64;
            if at < end {
                let skip = usize::try_from(at - base).unwrap_or(usize::MAX).min(piece.len());
                return Place::Memory(piece.slice(skip..));
            }
            base = end;
        }
        Place::Gone
    }

    /// A reader moved or left.
    pub(super) fn moved(&self) {
        if self.active.load(Ordering::Acquire) {
            self.moved.notify_one();
        }
    }

    /// Waits for a reader to move; a move between the look and this call is not lost.
    pub(super) async fn wait(&self) {
        self.moved.notified().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn drop_front(&mut self, length: u64) {
        self.pieces.pop_front();
        self.base += length;
        self.bytes -= length;
    }
}
