//! The connection itself: bytes go through when they are known to be good.

use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::body::{Body, Chunks};
use super::head::{Framing, Head};
use super::{Fault, Inspection, Limits};

/// What the server sees in place of a request that is refused: it answers what the inspection says.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n";
/// The same for a request whose answer has no body.
const STAND_IN_HEAD: &[u8] = b"HEAD / HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n";
/// How much is read at once of a head that comes in parts.
const PART: usize = 4 * 1024;

/// A connection whose requests are looked over as they come.
#[derive(Debug)]
pub struct Inspected<S> {
    inner: S,
    inspection: Inspection,
    limits: Limits,
    stage: Stage,
    /// Heads let through.
    heads: usize,
    /// The part of a head that is there.
    held: BytesMut,
    /// Looked over, and not yet taken.
    ready: Bytes,
    /// A body broke: the next read says so.
    broken: Option<Fault>,
    timer: Option<Pin<Box<Sleep>>>,
}

/// What comes next.
#[derive(Debug)]
enum Stage {
    Head(Head),
    Body(Body),
    /// No HTTP any more.
    Opaque,
    /// Nothing: what is behind a refused request is not read.
    Over,
}

impl<S> Inspected<S> {
    /// Looks over what comes from `inner`.
    pub fn new(inner: S, limits: Limits) -> (Self, Inspection) {
        let inspection = Inspection::default();
        let stream = Self {
            inner,
            inspection: inspection.clone(),
            limits,
            stage: Stage::Head(Head::default()),
            heads: 0,
            held: BytesMut::new(),
            ready: Bytes::new(),
            broken: None,
            timer: None,
        };
        (stream, inspection)
    }

    /// How many of these bytes may go on. They begin where the stage begins, or for a head that came in parts,
    /// where the head begins.
    fn look(&mut self, bytes: &[u8]) -> usize {
        let mut good = 0;
        loop {
            let rest = bytes.get(good..).unwrap_or_default();
            match &mut self.stage {
                Stage::Over => return good,
                Stage::Opaque => return bytes.len(),
                _ if rest.is_empty() => return good,
                Stage::Head(head) => match head.read(rest, &self.limits) {
                    Ok(None) => return good,
                    Ok(Some((length, framing))) => {
                        good += length;
                        self.heads += 1;
                        self.stage = Stage::behind(framing);
                    }
                    Err(fault) => {
                        self.refuse(fault, rest.starts_with(b"HEAD "));
                        return good;
                    }
                },
                Stage::Body(body) => match body.take(rest, &self.limits) {
                    Ok((taken, ended)) => {
                        good += taken;
                        if ended {
                            self.stage = Stage::Head(Head::default());
                        }
                    }
                    Err(fault) => {
                        self.break_off(fault);
                        return good;
                    }
                },
            }
        }
    }

    /// The request whose head is being read is not served.
    fn refuse(&mut self, fault: Fault, is_head: bool) {
        self.inspection.note(self.heads + 1, fault);
        self.held.clear();
        self.stage = Stage::Over;
        self.ready = Bytes::from_static(if is_head { STAND_IN_HEAD } else { STAND_IN });
    }

    /// The request whose body is being read cannot be completed.
    fn break_off(&mut self, fault: Fault) {
        self.inspection.note(self.heads, fault);
        self.stage = Stage::Over;
        self.broken = Some(fault);
    }

    /// What is behind the good bytes is kept if it is the beginning of a head.
    fn hold(&mut self, rest: &[u8]) {
        if matches!(self.stage, Stage::Head(_)) {
            self.held.extend_from_slice(rest);
        }
    }

    /// How long whoever sends may be silent now.
    fn patience(&self) -> Option<Duration> {
        match self.stage {
            Stage::Head(_) => (!self.held.is_empty()).then_some(self.limits.head_time),
            Stage::Body(_) => Some(self.limits.body_silence),
            Stage::Opaque | Stage::Over => None,
        }
    }

    /// Nothing came: pending, until patience ends.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(patience) = self.patience() else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(timer.as_mut().poll(cx));
        self.timer = None;
        if matches!(self.stage, Stage::Head(_)) {
            let is_head = self.held.starts_with(b"HEAD ");
            self.refuse(Fault::SlowHead, is_head);
        } else {
            self.break_off(Fault::SlowBody);
        }
        Poll::Ready(())
    }

    /// Gives what is ready; none when that is nothing.
    fn give(&mut self, buf: &mut ReadBuf<'_>) -> Option<Poll<io::Result<()>>> {
        if !self.ready.is_empty() {
            let count = self.ready.len().min(buf.remaining());
            buf.put_slice(self.ready.get(..count).unwrap_or_default());
            self.ready.advance(count);
            return Some(Poll::Ready(Ok(())));
        }
        if let Some(fault) = self.broken {
            return Some(Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault))));
        }
        matches!(self.stage, Stage::Over).then_some(Poll::Pending)
    }
}

impl<S: AsyncRead + Unpin> Inspected<S> {
    /// Reads straight into the server's buffer, and takes back what may not go on. Gives how much went on.
    fn poll_straight(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Option<usize>>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let new = buf.filled().get(before..).unwrap_or_default();
        if new.is_empty() {
            return Poll::Ready(Ok(None));
        }
        self.timer = None;
        let good = self.look(new);
        let (_, rest) = new.split_at(good.min(new.len()));
        self.hold(rest);
        buf.set_filled(before + good);
        Poll::Ready(Ok(Some(good)))
    }

    /// Reads more of a head that came in parts.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        let mut part = [0; PART];
        let mut part = ReadBuf::new(&mut part);
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut part))?;
        if part.filled().is_empty() {
            return Poll::Ready(Ok(None));
        }
        self.held.extend_from_slice(part.filled());
        let mut held = std::mem::take(&mut self.held);
        let good = self.look(&held);
        if good > 0 {
            self.timer = None;
            let good = held.split_to(good.min(held.len())).freeze();
            // a refusal behind good requests comes after them
            let after = std::mem::take(&mut self.ready);
            self.ready = if after.is_empty() { good } else { [good, after].concat().into() };
        }
        self.hold(&held);
        Poll::Ready(Ok(Some(0)))
    }
}

impl Stage {
    fn behind(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Head(Head::default()),
            Framing::Length(length) => Self::Body(Body::Length(length)),
            Framing::Chunked => Self::Body(Body::Chunked(Chunks::default())),
            Framing::Tunnel => Self::Opaque,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Inspected<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if matches!(this.stage, Stage::Head(_)) && this.inspection.is_released() {
                this.stage = Stage::Opaque;
                this.ready = [&*this.ready, &*std::mem::take(&mut this.held)].concat().into();
            }
            if let Some(given) = this.give(buf) {
                return given;
            }
            let read = if this.held.is_empty() { this.poll_straight(cx, buf) } else { this.poll_part(cx) };
            match read? {
                Poll::Ready(Some(0)) => {}
                Poll::Ready(Some(_) | None) => return Poll::Ready(Ok(())),
                Poll::Pending => ready!(this.poll_patience(cx)),
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Inspected<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
