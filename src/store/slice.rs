//! A part of a blob as a body: read where it has to be read, and otherwise named, so that it can be sent from
//! where it lies.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::buffer::{BufferPool, is_cached};
use crate::http::{BodyError, FileBody, Piece};
use crate::net::sendfile::{FilePart, LONGEST};

/// What is smaller is read: one write with the head before it costs less than two.
const SMALL: u64 = 64 * 1024;

/// A part of a file that goes out.
pub(super) struct Slice<F> {
    file: Arc<File>,
    pool: BufferPool,
    left: Range<u64>,
    took: F,
    waiting: Option<Reading>,
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

impl<F: Fn(u64)> Slice<F> {
    pub(super) fn new(file: Arc<File>, pool: BufferPool, range: Range<u64>, took: F) -> Self {
        Self { file, pool, left: range, took, waiting: None }
    }

    fn went(&mut self, length: usize) {
        self.left.start += length as u64;
        (self.took)(length as u64);
    }

    fn size(&self) -> u64 {
        self.left.end.saturating_sub(self.left.start)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if self.size() == 0 {
            return Poll::Ready(None);
        }
        let bytes = match &mut self.waiting {
            Some(waiting) => ready!(waiting.as_mut().poll(cx)),
            None => match self.pool.read_now(&self.file, self.left.start, self.size()) {
                Ok(Some(bytes)) => Ok(bytes),
                Err(error) => Err(error),
                Ok(None) => {
                    let (file, pool) = (Arc::clone(&self.file), self.pool.clone());
                    let (at, most) = (self.left.start, self.size());
                    let waiting =
                        self.waiting.insert(Box::pin(async move { pool.read(&file, at, most).await }));
                    ready!(waiting.as_mut().poll(cx))
                }
            },
        };
        self.waiting = None;
        let bytes = bytes.and_then(|bytes| {
            if bytes.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
        });
        if let Ok(bytes) = &bytes {
            self.went(bytes.len());
        }
        Poll::Ready(Some(bytes.map_err(BodyError::from)))
    }
}

impl<F: Fn(u64) + Send + Unpin> FileBody for Slice<F> {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyError>>> {
        let length = usize::try_from(self.size()).unwrap_or(LONGEST).min(LONGEST);
        let is_worth_it = self.size() > SMALL && self.waiting.is_none();
        if is_worth_it && is_cached(&self.file, self.left.start, length) {
            let part = FilePart { file: Arc::clone(&self.file), at: self.left.start, length };
            self.went(length);
            return Poll::Ready(Some(Ok(Piece::File(part))));
        }
        self.poll_read(cx).map(|read| read.map(|read| read.map(|bytes| Piece::Frame(Frame::data(bytes)))))
    }
}

impl<F: Fn(u64) + Send + Unpin> http_body::Body for Slice<F> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.poll_read(cx).map(|read| read.map(|read| read.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.size() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.size())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::http::Body;

    fn slice(length: usize, range: Range<u64>, took: &Arc<AtomicU64>) -> (Body, Vec<u8>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..length).map(|i| u8::try_from(i % 249).unwrap()).collect();
        std::fs::write(folder.path().join("f"), &content).unwrap();
        let file = Arc::new(File::open(folder.path().join("f")).unwrap());
        let took = Arc::clone(took);
        let count = move |length| {
            took.fetch_add(length, Ordering::Relaxed);
        };
        (Body::of_file(Slice::new(file, BufferPool::default(), range, count)), content, folder)
    }

    #[tokio::test]
    async fn read_or_named_it_is_the_same_and_counted() {
        for range in [0..10, 5..3_000_000, 2_999_999..3_000_000, 7..7] {
            let took = Arc::default();
            let (mut body, content, _folder) = slice(3_000_000, range.clone(), &took);
            let mut got = Vec::new();
            while let Some(piece) = std::future::poll_fn(|cx| body.poll_piece(cx)).await {
                match piece.unwrap() {
                    Piece::Frame(frame) => got.extend_from_slice(&frame.into_data().unwrap()),
                    Piece::File(part) => {
                        let at = usize::try_from(part.at).unwrap();
                        got.extend_from_slice(&content[at..at + part.length]);
                    }
                }
            }
            let wanted = &content[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
            assert!(got == wanted, "{range:?}");
            assert_eq!(took.load(Ordering::Relaxed), range.end - range.start);
            let (body, ..) = slice(3_000_000, range.clone(), &Arc::default());
            assert!(body.collect().await.unwrap().to_bytes() == *wanted, "{range:?}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_shorter_ends_with_an_error() {
        let (body, ..) = slice(100, 50..200, &Arc::default());
        assert!(body.collect().await.is_err());
    }
}
