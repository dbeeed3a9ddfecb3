//! A body that is written down while it passes, and never waits for that.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::{mpsc, oneshot};

use super::joining::Mark;
use crate::http::{Body, BodyError, boxed};
use crate::store::Ingest;

/// So many pieces wait to be written; when there are more, the disk is too slow for it.
const WAITING: usize = 32;

/// The body as it passes.
pub(super) struct Tee {
    body: Body,
    copy: Option<Copy>,
    left: u64,
}

struct Copy {
    pieces: mpsc::Sender<Bytes>,
    /// Told when the body ended as it should, or is not what was announced.
    whole: oneshot::Sender<Option<Mark>>,
    /// Made of a body that ended well, before its client can know that and ask again.
    mark: Box<dyn FnOnce() -> Mark + Send + Sync>,
}

/// Where the pieces are written down.
pub(super) struct Writing {
    pieces: mpsc::Receiver<Bytes>,
    whole: oneshot::Receiver<Option<Mark>>,
}

/// What came of a body.
pub(super) struct Written {
    pub(super) ingest: Ingest,
    pub(super) length: u64,
    /// That it came to its end and is about to be found: else these are the first bytes of it.
    pub(super) whole: Option<Mark>,
}

impl Tee {
    /// Of a body of at most this length; a longer one is not what was announced.
    pub(super) fn of(
        body: Body,
        most: u64,
        mark: impl FnOnce() -> Mark + Send + Sync + 'static,
    ) -> (Body, Writing) {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let (whole, ended) = oneshot::channel();
        let tee = Self { body, copy: Some(Copy { pieces, whole, mark: Box::new(mark) }), left: most };
        (boxed(tee), Writing { pieces: waiting, whole: ended })
    }

    fn copy(&mut self, bytes: &Bytes) {
        let length = bytes.len() as u64;
        let fits = length <= self.left;
        self.left = self.left.saturating_sub(length);
        let sent = self.copy.as_ref().is_some_and(|copy| copy.pieces.try_send(bytes.clone()).is_ok());
        if !fits {
            self.end(false);
        } else if !sent {
            self.copy = None;
        }
    }

    fn end(&mut self, well: bool) {
        if let Some(Copy { whole, mark, .. }) = self.copy.take()
            && whole.send(well.then(mark)).is_err()
        {
            tracing::trace!("nobody writes this part any more");
        }
    }
}

impl http_body::Body for Tee {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(bytes) = frame.data_ref() {
                    self.copy(bytes);
                }
            }
            Poll::Ready(Some(Err(_))) => self.copy = None,
            Poll::Ready(None) => self.end(true),
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Tee {
    /// Whoever knows the length does not ask for an end.
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.end(true);
        }
    }
}

impl Writing {
    /// Writes what comes, and says how much is written; none where that is nothing, or the disk refused.
    pub(super) async fn into(mut self, mut ingest: Ingest, came: impl Fn(u64)) -> Option<Written> {
        let mut batch = Vec::new();
        loop {
            batch.clear();
            if self.pieces.recv_many(&mut batch, WAITING).await == 0 {
                break;
            }
            let pieces = std::mem::take(&mut batch);
            let appended = tokio::task::spawn_blocking(move || {
                let written = pieces.iter().try_for_each(|piece| ingest.append(piece));
                written.map(|()| ingest)
            });
            ingest = appended
                .await
                .ok()?
                .inspect_err(|error| tracing::debug!(%error, "a part is not kept"))
                .ok()?;
            came(ingest.length());
        }
        let whole = match self.whole.try_recv() {
            Ok(None) => return None,
            Ok(mark @ Some(_)) => mark,
            Err(_) => None,
        };
        let length = ingest.length();
        (length > 0).then_some(Written { ingest, length, whole })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::{BodyExt as _, StreamBody};

    use super::super::joining::Joining;
    use super::*;
    use crate::policy::UrlKey;

    fn body(pieces: Vec<Result<&'static [u8], &'static str>>) -> Body {
        let frames = pieces.into_iter().map(|piece| match piece {
            Ok(bytes) => Ok(Frame::data(Bytes::from_static(bytes))),
            Err(why) => Err(BodyError::from(why)),
        });
        boxed(StreamBody::new(futures_util::stream::iter(frames)))
    }

    async fn passed(pieces: Vec<Result<&'static [u8], &'static str>>, most: u64) -> (usize, bool) {
        let all = Arc::new(Joining::default());
        let mark = move || all.begin(UrlKey::from_bytes([1; 32]), 0..most, most);
        let (body, mut writing) = Tee::of(body(pieces), most, mark);
        let passed = body.collect().await.map_or(0, |body| body.to_bytes().len());
        (passed, matches!(writing.whole.try_recv(), Ok(Some(_))))
    }

    #[tokio::test]
    async fn what_ends_as_it_should_is_whole() {
        assert_eq!(passed(vec![Ok(b"ab"), Ok(b"c")], 3).await, (3, true));
        assert_eq!(passed(vec![Ok(b"ab")], 3).await, (2, true));
    }

    #[tokio::test]
    async fn what_breaks_off_or_is_too_long_is_not() {
        assert_eq!(passed(vec![Ok(b"ab"), Err("cut")], 3).await, (0, false));
        assert_eq!(passed(vec![Ok(b"ab"), Ok(b"cd")], 3).await, (4, false));
    }

    #[tokio::test]
    async fn a_slow_disk_does_not_hold_the_client_up() {
        let pieces = vec![Ok(b"x".as_slice()); WAITING + 1];
        assert_eq!(passed(pieces, 1000).await, (WAITING + 1, false));
    }
}
