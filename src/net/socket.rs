//! A Unix socket in the filesystem: one left by a dead program is replaced, one with a living program behind it is an
//! error, and the file goes with its owner.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// The bound socket; the file is removed on drop.
#[derive(Debug)]
pub struct SocketFile {
    listener: UnixListener,
    path: PathBuf,
    /// Identifies our file, so that a successor's is left alone.
    inode: u64,
}

impl SocketFile {
    /// Binds the socket; needs a runtime. Until its mode is set, the umask keeps others from connecting, which needs
    /// the right to write.
    pub fn bind(path: &Path) -> io::Result<Self> {
        remove_stale(path)?;
        let listener = UnixListener::bind(path)?;
        Ok(Self { listener, path: path.to_owned(), inode: inode(path).unwrap_or_default() })
    }

    /// Says who may connect.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        std::fs::set_permissions(&self.path, std::fs::Permissions::from_mode(mode))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next caller.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if inode(&self.path) != Some(self.inode) {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "a socket's file could not be removed");
        }
    }
}

fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(meta) if !meta.file_type().is_socket() => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"))
        }
        Ok(_) => match BlockingStream::connect(path) {
            Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon answers there")),
            Err(_) => std::fs::remove_file(path),
        },
    }
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path).ok().map(|meta| meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn replaces_the_dead_and_goes_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let socket = SocketFile::bind(&path).unwrap();
        socket.set_mode(0o666).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        assert_eq!(SocketFile::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let _client = UnixStream::connect(socket.path()).await.unwrap();
        socket.accept().await.unwrap();
        drop(socket);
        assert!(!path.exists());
        std::fs::write(&path, "a file").unwrap();
        assert!(SocketFile::bind(&path).is_err());
        assert!(path.exists(), "what is no socket is left alone");
    }
}
