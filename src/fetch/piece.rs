//! Reading a body in pieces large enough to be worth a write.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;

use crate::http::{Body, BodyError};

/// Frames that are there already are joined up to this size.
const PIECE: usize = 256 * 1024;
/// A frame of this size is worth a write of its own.
const LARGE: usize = 64 * 1024;

/// A body, and what was read of it ahead.
pub(super) struct Pieces {
    body: Body,
    ahead: VecDeque<Result<Bytes, BodyError>>,
    ended: bool,
}

impl Pieces {
    pub(super) fn new(body: Body) -> Self {
        Self { body, ahead: VecDeque::new(), ended: false }
    }

    /// The next piece if that needs no waiting: `None` means that it would.
    pub(super) fn now(&mut self) -> Option<Result<Option<Bytes>, BodyError>> {
        self.next().now_or_never()
    }

    /// The next piece; none at the end. Cancelling loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        let first = match self.ahead.pop_front() {
            Some(ahead) => ahead?,
            None if self.ended => return Ok(None),
            None => match self.frame().await? {
                Some(data) => data,
                None => return Ok(None),
            },
        };
        if first.len() >= LARGE {
            return Ok(Some(first));
        }
        Ok(Some(self.join(first)))
    }

    async fn frame(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Ok(Some(data)),
                    Err(_trailers) => {}
                },
                Some(Err(error)) => return Err(error),
                None => {
                    self.ended = true;
                    return Ok(None);
                }
            }
        }
    }

    /// Adds small frames that are there already.
    fn join(&mut self, first: Bytes) -> Bytes {
        let mut joined: Option<BytesMut> = None;
        loop {
            let length = joined.as_ref().map_or(first.len(), BytesMut::len);
            if self.ended || length >= PIECE {
                break;
            }
            match self.frame().now_or_never() {
                Some(Ok(Some(data))) if length + data.len() <= PIECE => {
                    joined.get_or_insert_with(|| BytesMut::from(first.as_ref())).extend_from_slice(&data);
                }
                Some(Ok(Some(data))) => {
                    self.ahead.push_back(Ok(data));
                    break;
                }
                Some(Err(error)) => {
                    self.ahead.push_back(Err(error));
                    self.ended = true;
                    break;
                }
                Some(Ok(None)) | None => break,
            }
        }
        joined.map_or(first, BytesMut::freeze)
    }

    /// Puts bytes back in front.
    pub(super) fn put_back(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.ahead.push_front(Ok(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    fn body(frames: Vec<Result<&'static str, &'static str>>) -> Body {
        let frames =
            frames.into_iter().map(|f| f.map(|d| Frame::data(Bytes::from(d))).map_err(BodyError::from));
        crate::http::boxed(StreamBody::new(stream::iter(frames)))
    }

    #[tokio::test]
    async fn small_frames_are_joined_and_an_error_comes_after_them() {
        let mut pieces = Pieces::new(body(vec![Ok("ab"), Ok(""), Ok("cd"), Err("broken")]));
        assert_eq!(pieces.next().await.unwrap().unwrap(), "abcd");
        assert_eq!(pieces.next().await.unwrap_err().to_string(), "broken");
    }

    #[tokio::test]
    async fn what_was_put_back_comes_first_and_the_end_stays_the_end() {
        let mut pieces = Pieces::new(body(vec![Ok("cd")]));
        pieces.put_back(Bytes::from("ab"));
        let mut all = Vec::new();
        while let Some(piece) = pieces.next().await.unwrap() {
            all.extend_from_slice(&piece);
        }
        assert_eq!(all, b"abcd");
        assert!(pieces.next().await.unwrap().is_none());
    }
}
