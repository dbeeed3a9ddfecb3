//! An answer's body on its way out: in hand until its end, and sent from its file where that can be done.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Frame, SizeHint};

use super::listener::InHand;
use crate::http::{Body, BodyError, Piece};
use crate::net::sendfile::{Chunk, FileOutlet};

/// A body in hand.
pub(super) struct Outgoing {
    body: Body,
    in_hand: InHand,
    files: Option<FileOutlet>,
}

impl Outgoing {
    pub(super) const fn new(body: Body, in_hand: InHand, files: Option<FileOutlet>) -> Self {
        Self { body, in_hand, files }
    }
}

impl http_body::Body for Outgoing {
    type Data = Chunk;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BodyError>>> {
        let this = &mut *self;
        let piece = match &this.files {
            Some(_) => this.body.poll_piece(cx),
            None => Pin::new(&mut this.body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map(Piece::Frame))),
        };
        if piece.is_ready() {
            this.in_hand.moved();
        }
        piece.map(|piece| {
            piece.map(|piece| match (piece?, &this.files) {
                (Piece::Frame(frame), _) => Ok(frame.map_data(Chunk::Bytes)),
                (Piece::File(part), Some(files)) => Ok(Frame::data(files.give(part))),
                // only poll_piece names files
                (Piece::File(_), None) => Err("a file on a connection that sends none".into()),
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
