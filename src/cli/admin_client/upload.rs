//! A body that is read from a file while it is sent: a few pieces ahead, never the whole.

use std::io::Read;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::sync::mpsc;

use crate::http::{Body, BodyError, boxed};

/// The size of a piece.
const PIECE: usize = 256 * 1024;
/// Pieces read ahead.
const AHEAD: usize = 4;

type Piece = Result<Bytes, BodyError>;

/// The body, and where its pieces go in.
pub(super) fn body(size: u64) -> (Sized, mpsc::Sender<Piece>) {
    let (sender, receiver) = mpsc::channel::<Piece>(AHEAD);
    let frames = stream::unfold(receiver, async |mut receiver| {
        let piece = receiver.recv().await?;
        Some((piece.map(Frame::data), receiver))
    });
    (Sized { inner: boxed(StreamBody::new(Box::pin(frames))), left: size }, sender)
}

/// Reads and hands over until all is sent, the source fails or nobody listens any more. Reading blocks the
/// thread, which has nothing else to do.
pub(super) async fn feed(from: &mut dyn Read, size: u64, to: mpsc::Sender<Piece>) {
    let (mut left, mut buffer) = (size, vec![0; PIECE]);
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let piece = match buffer.get_mut(..want).map(|space| from.read(space)) {
            Some(Ok(0)) | None => Err("it ended early".into()),
            Some(Ok(read)) => {
                left = left.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
                Ok(Bytes::copy_from_slice(buffer.get(..read).unwrap_or_default()))
            }
            Some(Err(error)) => Err(error.into()),
        };
        let ends = piece.is_err();
        if to.send(piece).await.is_err() || ends {
            return;
        }
    }
}

/// A body whose length is known.
pub(super) struct Sized {
    inner: Body,
    left: u64,
}

impl http_body::Body for Sized {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = std::pin::Pin::new(&mut self.inner).poll_frame(cx);
        if let std::task::Poll::Ready(Some(Ok(frame))) = &polled {
            let length = frame.data_ref().map_or(0, Bytes::len);
            self.left = self.left.saturating_sub(u64::try_from(length).unwrap_or(u64::MAX));
        }
        polled
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.left)
    }
}
