//! Parts of files that go from the page cache to a socket without passing through this process.
//!
//! An HTTP server writes slices of memory. Where the body is a file it is given a [`Chunk`] that stands for the
//! part: as long as the part, but with nothing behind it. The connection below, which holds the same
//! [`FileOutlet`], knows such a slice by its address, and sends the part itself (`sendfile`) in its place.
//!
//! Promises: parts leave in the order in which they were given out, and a slice that stands for a part is never
//! written as what it is: it shows only in a vectored write, and whoever would copy a chunk finds it empty, so
//! that the answer breaks off and is never wrong. A file that turned out shorter ends the connection with an
//! error. Knows nothing of HTTP.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rustix::io::Errno;
use rustix::net::SendFlags;
use tokio::io::{AsyncWrite as _, Interest};
use tokio::net::TcpStream;

/// The longest part. Between two of them other connections have their turn.
pub const LONGEST: usize = 1 << 20;

/// Part of an open file; at most [`LONGEST`] bytes.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// The file.
    pub file: Arc<File>,
    /// Where the part begins.
    pub at: u64,
    /// How long it is.
    pub length: usize,
}

/// Memory that is never touched: its addresses mean that a file goes here.
#[derive(Debug, Clone)]
pub struct Standin(Arc<Vec<u8>>);

/// Where the parts for one connection wait until their turn comes; a cheap clone.
#[derive(Debug, Clone)]
pub struct FileOutlet {
    standin: Standin,
    waiting: Arc<Mutex<VecDeque<FilePart>>>,
}

/// What is written: bytes, or what stands for part of a file.
#[derive(Debug)]
pub enum Chunk {
    /// Bytes.
    Bytes(Bytes),
    /// So much of the part whose turn it is.
    File(usize, Standin),
}

impl Standin {
    /// One is enough for all connections. Zeroed memory that nobody looks at costs addresses only.
    pub fn new() -> Self {
        Self(Arc::new(vec![0; LONGEST]))
    }

    fn is(&self, slice: &[u8]) -> bool {
        self.0.as_ptr_range().contains(&slice.as_ptr())
    }

    fn slice(&self, length: usize) -> &[u8] {
        self.0.get(..length.min(LONGEST)).unwrap_or_default()
    }
}

impl Default for Standin {
    fn default() -> Self {
        Self::new()
    }
}

impl FileOutlet {
    /// For one connection.
    pub fn new(standin: Standin) -> Self {
        Self { standin, waiting: Arc::default() }
    }

    /// Takes a part and gives what is written in its place.
    pub fn give(&self, part: FilePart) -> Chunk {
        let length = part.length.min(LONGEST);
        self.lock().push_back(FilePart { length, ..part });
        Chunk::File(length, self.standin.clone())
    }

    /// Writes slices, and parts where slices stand for them.
    pub fn poll_write_vectored(
        &self,
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut waiting = self.lock();
        if waiting.is_empty() {
            drop(waiting);
            return Pin::new(stream).poll_write_vectored(cx, slices);
        }
        let mut slices = slices.iter().filter(|slice| !slice.is_empty());
        let Some(first) = slices.next() else { return Poll::Ready(Ok(0)) };
        if self.standin.is(first) {
            return poll_send(stream, cx, |stream| send_part(stream, &mut waiting, first.len()));
        }
        let next = slices.next();
        // more is coming: what is written now need not travel alone
        let flags = if next.is_some() { SendFlags::MORE } else { SendFlags::empty() };
        let sent = ready!(poll_send(stream, cx, |stream| {
            Ok(rustix::net::send(stream, first, flags | SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
        }))?;
        let Some(next) = next.filter(|next| sent == first.len() && self.standin.is(next)) else {
            return Poll::Ready(Ok(sent));
        };
        // what goes wrong now goes wrong again when nothing else is written
        let more = stream.try_io(Interest::WRITABLE, || send_part(stream, &mut waiting, next.len()));
        Poll::Ready(Ok(sent + more.unwrap_or(0)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<FilePart>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tries until it succeeds, or has to wait for room.
fn poll_send(
    stream: &TcpStream,
    cx: &mut Context<'_>,
    mut send: impl FnMut(&TcpStream) -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(cx))?;
        match stream.try_io(Interest::WRITABLE, || send(stream)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => return Poll::Ready(sent),
        }
    }
}

/// Sends of the part whose turn it is.
fn send_part(stream: &TcpStream, waiting: &mut VecDeque<FilePart>, most: usize) -> io::Result<usize> {
    let Some(part) = waiting.front_mut() else { return Err(io::ErrorKind::InvalidData.into()) };
    let mut at = part.at;
    let sent = rustix::fs::sendfile(stream, &part.file, Some(&mut at), most.min(part.length));
    let sent = match sent {
        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Err(Errno::AGAIN) => return Err(io::ErrorKind::WouldBlock.into()),
        sent => sent?,
    };
    part.at += sent as u64;
    part.length = part.length.saturating_sub(sent);
    if part.length == 0 {
        waiting.pop_front();
    }
    Ok(sent)
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(left, _) => *left,
        }
    }

    /// Empty where it stands for a file: there is nothing to copy.
    fn chunk(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::File(..) => &[],
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let slice = match self {
            Self::Bytes(bytes) => &**bytes,
            Self::File(left, standin) => standin.slice(*left),
        };
        match slices.first_mut() {
            Some(first) if !slice.is_empty() => {
                *first = IoSlice::new(slice);
                1
            }
            Some(_) | None => 0,
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Self::Bytes(bytes) => bytes.advance(count),
            Self::File(left, _) => *left = left.saturating_sub(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, listener.accept().await.unwrap().0)
    }

    fn file(folder: &tempfile::TempDir, content: &[u8]) -> Arc<File> {
        let path = folder.path().join("f");
        std::fs::write(&path, content).unwrap();
        Arc::new(File::open(path).unwrap())
    }

    /// Writes all of it, as a server does.
    async fn write(
        outlet: &FileOutlet,
        stream: &mut TcpStream,
        mut chunks: VecDeque<Chunk>,
    ) -> io::Result<()> {
        while let Some(first) = chunks.front() {
            if !first.has_remaining() {
                chunks.pop_front();
                continue;
            }
            let mut slices = [IoSlice::new(&[]); 8];
            let mut count = 0;
            for chunk in &chunks {
                count += chunk.chunks_vectored(slices.get_mut(count..).unwrap());
            }
            let slices = slices.get(..count).unwrap();
            let mut sent = poll_fn(|cx| outlet.poll_write_vectored(stream, cx, slices)).await?;
            for chunk in &mut chunks {
                let part = sent.min(chunk.remaining());
                chunk.advance(part);
                sent -= part;
            }
        }
        Ok(())
    }

    #[tokio::test]
    async fn parts_and_bytes_leave_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..3u32 << 20).map(|i| u8::try_from(i % 251).unwrap()).collect();
        let file = file(&folder, &content);
        let (mut near, mut far) = pair().await;
        let outlet = FileOutlet::new(Standin::new());
        let part = |at, length| FilePart { file: Arc::clone(&file), at, length };
        let chunks = VecDeque::from([
            Chunk::Bytes(Bytes::from_static(b"head")),
            outlet.give(part(1000, LONGEST)),
            Chunk::Bytes(Bytes::from_static(b"middle")),
            outlet.give(part(2 << 20, 70_000)),
            Chunk::Bytes(Bytes::from_static(b"tail")),
        ]);
        let (wrote, read) = tokio::join!(
            async {
                write(&outlet, &mut near, chunks).await.unwrap();
                drop(near);
            },
            async {
                let mut got = Vec::new();
                far.read_to_end(&mut got).await.unwrap();
                got
            }
        );
        let () = wrote;
        let expected = [
            b"head",
            &content[1000..1000 + LONGEST],
            b"middle",
            &content[2 << 20..(2 << 20) + 70_000],
            b"tail",
        ]
        .concat();
        assert!(read == expected, "{} of {} bytes", read.len(), expected.len());
    }

    #[tokio::test]
    async fn a_file_that_is_shorter_is_an_error_and_nothing_stands_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder, b"short");
        let (mut near, mut far) = pair().await;
        let outlet = FileOutlet::new(Standin::new());
        let chunk = outlet.give(FilePart { file, at: 0, length: 100 });
        assert!(chunk.chunk().is_empty() && chunk.remaining() == 100);
        let error = write(&outlet, &mut near, VecDeque::from([chunk])).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        drop(near);
        let mut got = Vec::new();
        far.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"short");
    }
}
