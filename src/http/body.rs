//! The one body type.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

use crate::net::sendfile::FilePart;

/// Why a body ended early.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A stream of frames, of whatever origin.
pub struct Body(Kind);

enum Kind {
    Boxed(UnsyncBoxBody<Bytes, BodyError>),
    /// Bytes at hand, until they are taken.
    Whole(Option<Bytes>),
    File(Box<dyn FileBody>),
}

/// A body that lies in a file, so that whoever can send files need not read it.
pub trait FileBody: http_body::Body<Data = Bytes, Error = BodyError> + Send + Unpin {
    /// What comes next: bytes that were read, or where they lie.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyError>>>;
}

/// What comes next of a body.
#[derive(Debug)]
pub enum Piece {
    /// A frame as any.
    Frame(Frame<Bytes>),
    /// Bytes that lie there, and in memory: sending them waits for no disk.
    File(FilePart),
}

/// No bytes.
pub fn empty() -> Body {
    Body(Kind::Whole(None))
}

/// Bytes at hand.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    let bytes = bytes.into();
    Body(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
}

/// Any body as the one body type.
pub fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    Body(Kind::Boxed(body.map_err(Into::into).boxed_unsync()))
}

impl Body {
    /// What lies in a file.
    pub fn of_file(body: impl FileBody + 'static) -> Self {
        Self(Kind::File(Box::new(body)))
    }

    /// The bytes, where they are at hand.
    pub const fn whole(&self) -> Option<&Bytes> {
        if let Kind::Whole(Some(bytes)) = &self.0 { Some(bytes) } else { None }
    }

    /// What comes next, for somebody who can send files.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyError>>> {
        match &mut self.0 {
            Kind::File(body) => body.poll_piece(cx),
            Kind::Boxed(_) | Kind::Whole(_) => {
                Pin::new(self).poll_frame(cx).map(|frame| frame.map(|frame| frame.map(Piece::Frame)))
            }
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        empty()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Kind::Boxed(body) => Pin::new(body).poll_frame(cx),
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::File(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Boxed(body) => body.is_end_stream(),
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::File(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Boxed(body) => body.size_hint(),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::File(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("size", &self.size_hint()).finish_non_exhaustive()
    }
}
