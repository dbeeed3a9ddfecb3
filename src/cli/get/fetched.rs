//! A file that the daemon hands over in the place of its bytes, and how it becomes the user's own: a clone where the
//! filesystem shares blocks, else a copy within the kernel, else a copy. Never a link: a link would be to the cache's own.

use std::fs::File;
use std::io::{self, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use http::Response;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

/// The field that asks for a file and names one.
pub(super) const FIELD: &str = "larder-descriptor";
/// The longest wait for the daemon.
const DEADLINE: Duration = Duration::from_secs(5);

/// Where a file is to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    ticket: String,
    pub(super) size: u64,
    socket: String,
}

impl Ticket {
    /// The ticket that an answer names: digits, size, and a socket's path, which may have spaces.
    pub(super) fn of<B>(response: &Response<B>) -> Option<Self> {
        Self::parse(response.headers().get(FIELD)?.to_str().ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (ticket, rest) = text.split_once(' ')?;
        let (size, socket) = rest.split_once(' ')?;
        let is_ticket = ticket.len() == 32 && ticket.bytes().all(|digit| digit.is_ascii_hexdigit());
        let size = size.parse().ok()?;
        is_ticket.then(|| Self { ticket: ticket.to_owned(), size, socket: socket.to_owned() })
    }

    /// Fetches the file, which can be read only. Blocks for an answer of the daemon.
    pub(super) fn fetch(&self) -> io::Result<File> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.write_all(self.ticket.as_bytes())?;
        let file = receive(&stream)?;
        let meta = file.metadata()?;
        if !meta.is_file() || meta.len() != self.size {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file handed over is another one"));
        }
        Ok(file)
    }
}

fn receive(stream: &UnixStream) -> io::Result<File> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let file = control.drain().find_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut files) = message { files.next() } else { None }
    });
    file.map(File::from).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the daemon gave no file"))
}

/// Makes all of `to`, which is empty, the same as `from`, in one step that takes no space; false where the filesystem
/// cannot.
pub(super) fn clone(from: &File, to: &File) -> bool {
    rustix::fs::ioctl_ficlone(to, from).is_ok()
}

/// Copies up to `most` bytes at `at`, within the kernel where it can; how many were copied.
pub(super) fn copy(from: &File, to: &File, at: u64, most: usize) -> io::Result<usize> {
    let (mut read_at, mut write_at) = (at, at);
    match rustix::fs::copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), most) {
        Ok(copied) => Ok(copied),
        Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
            by_hand(from, to, at, most)
        }
        Err(error) => Err(error.into()),
    }
}

fn by_hand(from: &File, to: &File, at: u64, most: usize) -> io::Result<usize> {
    use std::os::unix::fs::FileExt as _;
    let mut piece = vec![0; most.min(1 << 20)];
    let read = from.read_at(&mut piece, at)?;
    to.write_all_at(piece.get(..read).unwrap_or_default(), at)?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_read_or_it_is_none() {
        let ticket = Ticket::parse("0123456789abcdef0123456789abcdef 7 /run/a b/get.sock").unwrap();
        assert_eq!((ticket.size, ticket.socket.as_str()), (7, "/run/a b/get.sock"));
        for wrong in [
            "",
            "7",
            "xy 7 /p",
            "0123456789abcdef0123456789abcdef x /p",
            "0123456789abcdef0123456789abcdef 7",
        ] {
            assert_eq!(Ticket::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_copy_is_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("blob"), folder.path().join("file"));
        let bytes: Vec<u8> = (0..3_000_000u32).map(|at| at.to_le_bytes()[1]).collect();
        std::fs::write(&from, &bytes).unwrap();
        let source = File::open(&from).unwrap();
        let target = File::create_new(&to).unwrap();
        let mut at = 0;
        loop {
            match copy(&source, &target, at, 1 << 20).unwrap() {
                0 => break,
                copied => at += copied as u64,
            }
        }
        assert!(std::fs::read(&to).unwrap() == bytes);
        std::fs::write(&to, b"mine").unwrap();
        assert!(std::fs::read(&from).unwrap() == bytes);
        assert_eq!(by_hand(&source, &target, 0, 10).unwrap(), 10);
    }
}
