//! Handing a file over in the place of its bytes: `larder get` asks for it, so that what is held is cloned or copied
//! by the kernel and not sent through a socket.
//!
//! A client of this machine that asks with [`ASKED`] for something that lies whole and proven in the store is answered
//! 204, and [`ASKED`] names a ticket, the size, and a Unix socket. Whoever shows the ticket there within [`VALID`] gets
//! a read-only descriptor, once. The socket gives nothing without a ticket, and a ticket is given to whom the door
//! would have sent the bytes. A file that is handed over is counted as delivered.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use super::{Proxy, respond};
use crate::clock::SharedClock;
use crate::digest::hex;
use crate::fetch::{Given, HeldFile, Reply};
use crate::http::{Body, empty};
use crate::net::socket::SocketFile;
use crate::shutdown::{Drain, Shutdown};

/// The field by which a client asks for a file, and by which it is told of it; it never leaves this node.
pub(super) const ASKED: &str = "larder-descriptor";
/// How long a ticket is good.
const VALID: Duration = Duration::from_secs(10);
/// Tickets at one time: each holds a file open.
const TICKETS: usize = 64;
/// Callers at one time.
const CALLERS: usize = 32;
/// The longest a caller may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// Digits of a ticket.
const DIGITS: usize = 32;

/// Files that wait to be fetched.
#[derive(Debug)]
pub(super) struct Handover {
    clock: SharedClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where files are fetched, once there is such a place.
    path: Option<String>,
    tickets: HashMap<String, (Instant, HeldFile)>,
}

impl Handover {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// What is told in the place of the bytes, where they can be fetched as a file.
    fn offer(&self, file: HeldFile) -> Option<HeaderValue> {
        let now = self.clock.instant();
        let mut state = self.lock();
        let path = state.path.clone()?;
        state.tickets.retain(|_, (until, _)| *until > now);
        if state.tickets.len() >= TICKETS {
            return None;
        }
        let mut random = [0; DIGITS / 2];
        getrandom::fill(&mut random).ok()?;
        let ticket = hex(&random);
        let told = HeaderValue::try_from(format!("{ticket} {} {path}", file.size())).ok()?;
        state.tickets.insert(ticket, (now + VALID, file));
        Some(told)
    }

    fn redeem(&self, ticket: &str) -> Option<HeldFile> {
        let (until, file) = self.lock().tickets.remove(ticket)?;
        (until > self.clock.instant()).then_some(file)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// The answer that names a file, where the client asked for one and may have it.
    pub(super) fn handed(
        &self,
        reply: &Reply,
        (method, received, asked): (&Method, &HeaderMap, &HeaderMap),
        client: std::net::IpAddr,
    ) -> Option<Response<Body>> {
        let is_whole = *method == Method::GET
            && !asked.keys().any(|name| *name == header::RANGE || name.as_str().starts_with("if-"));
        let is_here = client.is_loopback() || self.is_own(client);
        if !received.contains_key(ASKED) || !is_whole || !is_here {
            return None;
        }
        let Given::Held(held) = &reply.given else { return None };
        let told = self.0.handover.offer(held.file()?)?;
        let mut response = Response::new(empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        *response.headers_mut() = held.fields();
        response.headers_mut().insert(HeaderName::from_static(ASKED), told);
        respond::sign(&mut response, &reply.status, self.via());
        Some(response)
    }

    /// Gives files to whoever shows a ticket, until asked to stop.
    pub async fn hand_over(&self, socket: SocketFile, stop: Shutdown, guests: Drain) {
        self.0.handover.lock().path = socket.path().to_str().map(str::to_owned);
        let permits = Arc::new(Semaphore::new(CALLERS));
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = stop.requested() => break,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok(stream) => {
                    let proxy = self.clone();
                    guests.spawn(async move {
                        let given = tokio::time::timeout(DEADLINE, proxy.give(stream)).await;
                        if let Ok(Err(error)) = given {
                            tracing::debug!(%error, "a file could not be handed over");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "who comes for a file could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        self.0.handover.lock().path = None;
    }

    async fn give(&self, mut stream: UnixStream) -> io::Result<()> {
        let mut ticket = [0; DIGITS];
        stream.read_exact(&mut ticket).await?;
        let file = self.0.handover.redeem(std::str::from_utf8(&ticket).unwrap_or_default());
        let file = file.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such ticket"))?;
        stream.async_io(Interest::WRITABLE, || send(&stream, file.file())).await?;
        tracing::debug!(blob.size = file.size(), "handed a file over");
        file.delivered();
        Ok(())
    }
}

/// One byte, and the descriptor with it.
fn send(stream: &UnixStream, file: &std::fs::File) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    rustix::net::sendmsg(stream, &[IoSlice::new(b"+")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
