//! Noticing that the interfaces changed.
//!
//! A netlink socket serves as alarm bell only: what it says is thrown away and the list is read anew. A
//! slow poll stands behind it, a quicker one where the bell is refused.

use std::io;
use std::time::Duration;

use tokio::sync::watch::Sender;

use super::Interface;
use crate::shutdown::Shutdown;

/// How long after the first sign of a change the list is read: changes come in swarms.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// How often the list is read unasked.
const SLOW: Duration = Duration::from_secs(30);
/// The same where no bell rings.
const QUICK: Duration = Duration::from_secs(3);

/// Keeps `seen` at the present list until stopped. Receivers wake up only when it changed.
pub async fn watch(seen: Sender<Vec<Interface>>, shutdown: Shutdown) {
    let bell = match bell::Bell::new() {
        Ok(bell) => Some(bell),
        Err(error) => {
            tracing::warn!(
                error = %error,
                "changes of the network are noticed late: netlink is refused; \
                 under systemd add AF_NETLINK to RestrictAddressFamilies="
            );
            None
        }
    };
    let pause = if bell.is_some() { SLOW } else { QUICK };
    let mut failing = false;
    loop {
        refresh(&seen, &mut failing).await;
        tokio::select! {
            () = shutdown.requested() => return,
            () = ring(bell.as_ref()) => tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(DEBOUNCE) => {}
            },
            () = tokio::time::sleep(pause) => {}
        }
        if let Some(bell) = &bell {
            bell.silence();
        }
    }
}

async fn refresh(seen: &Sender<Vec<Interface>>, failing: &mut bool) {
    let listed = tokio::task::spawn_blocking(super::list).await.map_err(io::Error::other);
    match listed.and_then(|list| list) {
        Ok(list) => {
            *failing = false;
            seen.send_if_modified(|old| {
                let changed = *old != list;
                *old = list;
                changed
            });
        }
        Err(error) if !*failing => {
            *failing = true;
            tracing::warn!(error = %error, "cannot list the network interfaces: keeping those known so far");
        }
        Err(_) => {}
    }
}

async fn ring(bell: Option<&bell::Bell>) {
    match bell {
        Some(bell) => bell.ring().await,
        None => std::future::pending().await,
    }
}

#[cfg(target_os = "linux")]
mod bell {
    use std::io;

    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
    use tokio::net::UdpSocket;

    /// RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR.
    const GROUPS: u32 = 0x1 | 0x10 | 0x100;
    const NO_BUFFER_SPACE: i32 = rustix::io::Errno::NOBUFS.raw_os_error();

    /// A netlink socket, held as a datagram socket: only `recv` and readiness are asked of it, and these
    /// are the same for both.
    pub(super) struct Bell(UdpSocket);

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            // The default protocol of the family is NETLINK_ROUTE.
            let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
            bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
            UdpSocket::from_std(socket.into()).map(Self)
        }

        /// Returns when something was said; a broken bell never rings, the poll stands behind it.
        pub(super) async fn ring(&self) {
            if self.0.readable().await.is_err() {
                std::future::pending::<()>().await;
            }
        }

        /// Throws away all that was said.
        pub(super) fn silence(&self) {
            let mut buffer = [0_u8; 8192];
            // A bounded number of rounds: on a machine where the network never rests the rest waits.
            for _round in 0..256 {
                match self.0.try_recv(&mut buffer) {
                    Ok(_) => {}
                    // More was said than the kernel kept: no loss, as nothing is understood anyway.
                    Err(error) if error.raw_os_error() == Some(NO_BUFFER_SPACE) => {}
                    Err(_) => return,
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod bell {
    use std::io;

    /// Other systems only poll.
    pub(super) struct Bell;

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) async fn ring(&self) {
            std::future::pending().await
        }

        pub(super) fn silence(&self) {}
    }
}
