//! The Unix socket: whoever may open it is an administrator, and the filesystem says who may.
//!
//! Its mode is 0660. Where a group `larder` exists the socket belongs to it and its members are trusted; else
//! only root and the daemon's own user are, whatever group the folder gave it. The file goes when the daemon
//! ends; one left by a dead daemon is replaced, one with a living daemon behind it is an error.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::net::UnixStream;

use crate::net::socket::SocketFile;

/// The group whose members administer the daemon.
const GROUP: &str = "larder";

/// The bound socket; the file is removed on drop.
#[derive(Debug)]
pub struct AdminSocket {
    socket: SocketFile,
    /// Whether the mode alone says who may come in.
    by_group: bool,
}

impl AdminSocket {
    /// Binds the socket; needs a runtime.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let socket = SocketFile::bind(path)?;
        let by_group = give_to_group(path);
        socket.set_mode(0o660)?;
        Ok(Self { socket, by_group })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.socket.path()
    }

    /// The next caller, who it is, and whether he is trusted.
    pub(super) async fn accept(&self) -> io::Result<(UnixStream, SocketUser, bool)> {
        let stream = self.socket.accept().await?;
        let uid = stream.peer_cred()?.uid();
        let trusted = self.by_group || uid == 0 || uid == rustix::process::geteuid().as_raw();
        Ok((stream, SocketUser::of(uid), trusted))
    }
}

/// The user at the other end of the socket: his name where this machine's own list has it, else his number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SocketUser(Arc<str>);

impl SocketUser {
    /// Blocks for a small file.
    fn of(uid: u32) -> Self {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self(user_name(&users, uid).unwrap_or_else(|| format!("uid {uid}")).into())
    }

    pub(super) fn name(&self) -> String {
        self.0.to_string()
    }
}

/// Gives the socket to the group, if there is one and we may.
fn give_to_group(path: &Path) -> bool {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let Some(id) = group_id(&groups) else { return false };
    std::os::unix::fs::chown(path, None, Some(id)).is_ok()
}

fn group_id(groups: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(GROUP)).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

fn user_name(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn is_closed_to_others_replaces_the_dead_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let socket = AdminSocket::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        let second = AdminSocket::bind(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        let _client = UnixStream::connect(socket.path()).await.unwrap();
        assert!(socket.accept().await.unwrap().2, "our own user is trusted");
        drop(socket);
        assert!(!path.exists());
        std::fs::write(&path, "a file").unwrap();
        assert!(AdminSocket::bind(&path).is_err());
        assert!(path.exists(), "what is no socket is left alone");
    }

    #[test]
    fn finds_the_user() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbroken";
        assert_eq!(user_name(users, 1000).as_deref(), Some("ann"));
        assert_eq!(user_name(users, 7), None);
    }

    #[test]
    fn finds_the_group() {
        assert_eq!(group_id("root:x:0:\nlarder:x:990:ann,bob\n"), Some(990));
        assert_eq!(group_id("larders:x:990:\nbroken"), None);
    }
}
