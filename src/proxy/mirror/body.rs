//! The body of a rewritten document: unpacked and rewritten piece by piece, as it is asked for.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http::header;
use http_body::Frame;
use http_body_util::BodyExt as _;

use crate::http::{Body, BodyError, boxed};
use crate::mirror::Rewriter;

/// Bytes taken at once.
const PIECE: usize = 64 * 1024;
/// Packed ones: what a thousandfold packing makes of them still fits into memory.
const PACKED: usize = 4 * 1024;
/// Up to this size a document goes out with a length, if it is there soon.
const WHOLE: usize = 1024 * 1024;
/// How soon.
const SOON: Duration = Duration::from_secs(2);

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Not at all.
    Plain,
    /// With gzip.
    Gzip,
}

impl Coding {
    /// What a head says; none for a coding we cannot undo.
    pub(super) fn of(fields: &HeaderMap) -> Option<Self> {
        let mut codings = fields.get_all(header::CONTENT_ENCODING).iter();
        let first = codings.next().map(|value| value.as_bytes().trim_ascii().to_ascii_lowercase());
        match (first.as_deref(), codings.next()) {
            (None | Some(b"" | b"identity"), None) => Some(Self::Plain),
            (Some(b"gzip" | b"x-gzip"), None) => Some(Self::Gzip),
            _ => None,
        }
    }
}

/// A document on its way out.
pub(super) struct Rewritten {
    body: Body,
    unpacker: Option<MultiGzDecoder<Vec<u8>>>,
    rewriter: Option<Rewriter>,
    /// What came in and was not looked at yet.
    waiting: Bytes,
    ended: bool,
}

/// A document, or the beginning of one.
pub(super) enum Gathered {
    /// All of it.
    Whole(Bytes),
    /// It is long, or takes its time.
    Begun(Body),
}

impl Rewritten {
    pub(super) fn new(body: Body, coding: Coding, rewriter: Option<Rewriter>) -> Self {
        let unpacker = (coding == Coding::Gzip).then(|| MultiGzDecoder::new(Vec::new()));
        Self { body, unpacker, rewriter, waiting: Bytes::new(), ended: false }
    }

    /// What becomes of a piece.
    fn step(&mut self, piece: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        let Some(unpacker) = &mut self.unpacker else {
            rewrite(self.rewriter.as_mut(), piece, out);
            return Ok(());
        };
        unpacker.write_all(piece)?;
        let plain = std::mem::take(unpacker.get_mut());
        rewrite(self.rewriter.as_mut(), &plain, out);
        Ok(())
    }

    /// What was held until the end; a packed body that ends early is an error.
    fn finish(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        if let Some(unpacker) = &mut self.unpacker {
            unpacker.try_finish()?;
            let plain = std::mem::take(unpacker.get_mut());
            rewrite(self.rewriter.as_mut(), &plain, out);
        }
        if let Some(rewriter) = &mut self.rewriter {
            rewriter.finish(out);
        }
        Ok(())
    }
}

fn rewrite(rewriter: Option<&mut Rewriter>, plain: &[u8], out: &mut Vec<u8>) {
    match rewriter {
        Some(rewriter) => rewriter.push(plain, out),
        None => out.extend_from_slice(plain),
    }
}

impl http_body::Body for Rewritten {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let mut out = Vec::new();
            let stepped = if !self.waiting.is_empty() {
                let most = if self.unpacker.is_some() { PACKED } else { PIECE };
                let size = self.waiting.len().min(most);
                let piece = self.waiting.split_to(size);
                self.step(&piece, &mut out)
            } else if self.ended {
                return Poll::Ready(None);
            } else {
                match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        // trailers speak of the bytes as they came
                        self.waiting = frame.into_data().unwrap_or_default();
                        continue;
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => {
                        self.ended = true;
                        self.finish(&mut out)
                    }
                }
            };
            match stepped {
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
                Ok(()) if out.is_empty() => {}
                Ok(()) => return Poll::Ready(Some(Ok(Frame::data(out.into())))),
            }
        }
    }
}

/// Reads a small document to its end, so that it gets a length, and so that one that breaks off is an error
/// instead of half an answer.
pub(super) async fn gather(mut body: Rewritten) -> Result<Gathered, BodyError> {
    let mut begun = BytesMut::new();
    let read = async {
        while begun.len() <= WHOLE {
            let Some(frame) = body.frame().await else { return Ok(true) };
            if let Ok(data) = frame?.into_data() {
                begun.extend_from_slice(&data);
            }
        }
        Ok::<_, BodyError>(false)
    };
    let is_whole = match tokio::time::timeout(SOON, read).await {
        Ok(read) => read?,
        Err(_elapsed) => false,
    };
    let begun = begun.freeze();
    if is_whole {
        return Ok(Gathered::Whole(begun));
    }
    Ok(Gathered::Begun(boxed(Resumed { begun: Some(begun).filter(|begun| !begun.is_empty()), body })))
}

/// A body whose beginning was read already.
struct Resumed {
    begun: Option<Bytes>,
    body: Rewritten,
}

impl http_body::Body for Resumed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.begun.take() {
            Some(begun) => Poll::Ready(Some(Ok(Frame::data(begun)))),
            None => Pin::new(&mut self.body).poll_frame(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::full;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    async fn whole(body: Rewritten) -> Result<Vec<u8>, BodyError> {
        match gather(body).await? {
            Gathered::Whole(bytes) => Ok(bytes.to_vec()),
            Gathered::Begun(body) => Ok(body.collect().await?.to_bytes().to_vec()),
        }
    }

    #[tokio::test]
    async fn packed_bodies_come_out_plain() {
        for size in [0, 10, 100_000, 5_000_000] {
            let text: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
            let mut twice = packed(&text);
            twice.extend(packed(b"more"));
            let out = whole(Rewritten::new(full(twice), Coding::Gzip, None)).await.unwrap();
            assert_eq!(out.len(), text.len() + 4);
            assert!(out.starts_with(&text) && out.ends_with(b"more"));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_cut_or_wrong_is_an_error() {
        let good = packed(&[7; 50_000]);
        for bad in [&good[..good.len() - 1], &good[..good.len() / 2], b"not gzip at all".as_slice()] {
            assert!(whole(Rewritten::new(full(bad.to_vec()), Coding::Gzip, None)).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_body_packed_a_thousandfold_is_never_held_whole() {
        let mut body = Rewritten::new(full(packed(&vec![0; 64 << 20])), Coding::Gzip, None);
        let (mut sum, mut largest) = (0, 0);
        while let Some(frame) = body.frame().await {
            let length = frame.unwrap().into_data().unwrap().len();
            sum += length;
            largest = largest.max(length);
        }
        assert_eq!(sum, 64 << 20);
        assert!(largest <= 8 << 20, "{largest}");
    }

    #[test]
    fn codings_are_read_off_the_head() {
        for (value, want) in [
            ("gzip", Some(Coding::Gzip)),
            ("GZIP", Some(Coding::Gzip)),
            ("identity", Some(Coding::Plain)),
            ("br", None),
            ("gzip, br", None),
        ] {
            let fields = HeaderMap::from_iter([(header::CONTENT_ENCODING, value.parse().unwrap())]);
            assert_eq!(Coding::of(&fields), want, "{value}");
        }
        assert_eq!(Coding::of(&HeaderMap::new()), Some(Coding::Plain));
    }
}
