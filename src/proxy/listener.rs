//! Accepting clients and serving their connections.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::forward::Visit;
use super::outgoing::Outgoing;
use super::rewound::Rewound;
use super::stream::{Abort, ClientStream, IDLE_WRITE};
use super::{Proxy, respond};
use crate::http::inspect::{Fault, Inspected, Limits};
use crate::http::{Body, InterimOutlet, InterimStream};
use crate::net::listener::{Accepted, Acceptor, ConnectionLimit, raise_file_limit};
use crate::net::sendfile::FileOutlet;
use crate::shutdown::{Drain, Shutdown};

/// What one request may ask of us. RFC 9110 section 5.4 asks for no size in particular; more is a 431.
pub(super) const LIMITS: Limits = Limits {
    head: 128 * 1024,
    fields: 512,
    head_time: Duration::from_secs(30),
    body_silence: Duration::from_secs(60),
};
/// So long a connection may be idle between two requests, and before the first one.
pub(super) const IDLE: Duration = Duration::from_secs(60);
/// How long the last bytes of an answer have to leave when the program stops.
pub(super) const LAST_BYTES: Duration = Duration::from_secs(1);
/// Connections of all clients together, and of one address.
const CONNECTIONS: usize = 16_384;
/// Files that a connection may need: itself, one to the origin, and what is read or written meanwhile.
const FILES_EACH: usize = 3;
/// Files that are open without any client, and the part of all that wait for the disk after their clients have
/// gone: an eighth in memory, a sixteenth in the folder.
const FILES_ALWAYS: usize = 64;
const FILES_OF_SIXTEEN_FOR_THE_DISK: usize = 3;
const CONNECTIONS_OF_ONE: usize = 2_048;

impl Proxy {
    /// Serves on these listeners until asked to stop; connections end on the drain.
    pub async fn run(self, listeners: Vec<TcpListener>, stop: Shutdown, drain: Drain) -> std::io::Result<()> {
        let files = raise_file_limit().unwrap_or(u64::MAX);
        let limit = ConnectionLimit::new(connections(files), CONNECTIONS_OF_ONE);
        let mut doors = tokio::task::JoinSet::new();
        for listener in listeners {
            let (proxy, stop, drain) = (self.clone(), stop.clone(), drain.clone());
            let acceptor = Acceptor::new(listener, limit.clone());
            doors.spawn(async move {
                let serve = |accepted| proxy.admit(accepted, &stop, &drain);
                acceptor.run(&stop, serve).await
            });
        }
        while let Some(ended) = doors.join_next().await {
            ended.map_err(std::io::Error::other)??;
        }
        Ok(())
    }

    fn admit(&self, accepted: Accepted, stop: &Shutdown, drain: &Drain) {
        match accepted {
            Accepted::Admitted { stream, from, permit } => {
                let (proxy, stop) = (self.clone(), stop.clone());
                // joined by the drain
                drop(drain.spawn(async move {
                    proxy.serve(stream, from.ip(), stop).await;
                    drop(permit);
                }));
            }
            Accepted::Crowded { stream, from } => {
                tracing::debug!(client.address = %from, "too many connections of one address: closed");
                drop(stream);
            }
        }
    }

    async fn serve(self, mut stream: TcpStream, client: IpAddr, stop: Shutdown) {
        let Some(begun) = self.serve_plain(&mut stream, client, &stop).await else { return };
        let abort = Abort::default();
        let port = stream.local_addr().map_or(0, |address| address.port());
        let interim = InterimOutlet::default();
        let visit = Visit { client, port, abort: abort.clone(), inside: None, interim };
        let files = FileOutlet::new(self.0.standin.clone());
        let stream = ClientStream::new(stream, abort.clone(), files.clone());
        let stream = Rewound::new(begun, stream, abort);
        self.converse(stream, visit, Some(files), stop).await;
    }

    /// Serves one connection inside this process.
    pub async fn serve_local(self, stream: DuplexStream, client: IpAddr, stop: Shutdown) {
        let interim = InterimOutlet::default();
        let visit = Visit { client, port: 0, abort: Abort::default(), inside: None, interim };
        self.converse(stream, visit, None, stop).await;
    }

    /// Serves one connection over HTTP/1.1; where it can send files, `files` is how.
    pub(super) async fn converse<S>(self, stream: S, visit: Visit, files: Option<FileOutlet>, stop: Shutdown)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (stream, interim) = InterimStream::over(stream);
        let (stream, inspection) = Inspected::new(stream, LIMITS);
        let visit = Visit { interim, ..visit };
        let io = TokioIo::new(stream);
        let (here, busy) = (Arc::new((self, visit)), Busy::default());
        let at_work = busy.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (here, guest) = (Arc::clone(&here), at_work.enter());
            let (inspection, files) = (inspection.clone(), files.clone());
            async move {
                let (proxy, visit) = here.as_ref();
                let response = match inspection.enter() {
                    Some(fault) => proxy.refuse(fault, visit.client),
                    None => {
                        let response = match proxy.again(&request, visit) {
                            Some(response) => response,
                            // boxed: its many states are no burden to who does not need them
                            None => Box::pin(proxy.answer(request, visit)).await,
                        };
                        // a body that broke on its way is what went wrong, whoever noticed it
                        let broken = inspection.fault().filter(|_| response.status().is_server_error());
                        broken.map_or(response, |fault| proxy.refuse(fault, visit.client))
                    }
                };
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    inspection.release();
                }
                Ok::<_, std::convert::Infallible>(response.map(|body| guest.until_end_of(body, files)))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(LIMITS.head)
            .max_headers(LIMITS.fields)
            .serve_connection(io, service)
            .with_upgrades();
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.requested() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    // half a request is none
                    () = busy.idle(LAST_BYTES) => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a client's connection ended");
        }
    }
}

impl Proxy {
    /// The answer to what was no request beyond doubt.
    fn refuse(&self, fault: Fault, client: IpAddr) -> http::Response<Body> {
        tracing::debug!(client.address = %client, %fault, "a request is refused");
        respond::closing(respond::refuse(fault.into(), self.via()))
    }
}

/// How many connections so many files are enough for: who comes later waits in the kernel, which is better than
/// a download that cannot be stored.
fn connections(files: u64) -> usize {
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    let for_others = FILES_ALWAYS.saturating_add(files / 16 * FILES_OF_SIXTEEN_FOR_THE_DISK);
    (files.saturating_sub(for_others) / FILES_EACH).clamp(1, CONNECTIONS)
}

/// Whether a connection has a request in hand, from its head to the last byte of its answer.
#[derive(Clone, Default)]
pub(super) struct Busy(Arc<Work>);

#[derive(Default)]
struct Work {
    requests: AtomicUsize,
    /// Parts of answers that went.
    moved: AtomicU64,
    /// Somebody waits for the end of it: until then nobody need be told.
    watched: AtomicBool,
    changed: Notify,
}

/// One request in hand.
pub(super) struct InHand(Busy);

impl Busy {
    pub(super) fn enter(&self) -> InHand {
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        self.0.tell();
        InHand(self.clone())
    }

    /// Waits until something is in hand and nothing of it has moved for as long as any client is waited for.
    /// HTTP/2 hides a client that takes nothing: its connection flows.
    pub(super) async fn stands_still(&self) {
        loop {
            let before = self.0.moved.load(Ordering::Relaxed);
            tokio::time::sleep(IDLE_WRITE).await;
            if self.0.count() > 0 && self.0.moved.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }

    /// Waits until nothing has been in hand for so long; the last bytes want [`LAST_BYTES`] to leave.
    pub(super) async fn idle(&self, long: Duration) {
        self.0.watched.store(true, Ordering::SeqCst);
        loop {
            // from here on a change is not missed, whatever is seen of the count
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if self.0.count() > 0 {
                changed.await;
            } else if tokio::time::timeout(long, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Work {
    fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn tell(&self) {
        if self.watched.load(Ordering::SeqCst) {
            self.changed.notify_waiters();
        }
    }
}

impl InHand {
    /// Until that is gone.
    pub(super) fn until_end_of(self, body: Body, files: Option<FileOutlet>) -> Outgoing {
        Outgoing::new(body, self, files)
    }

    /// Something of the answer went.
    pub(super) fn moved(&self) {
        self.0.0.moved.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.0.requests.fetch_sub(1, Ordering::SeqCst);
        self.0.0.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_move_is_given_up_and_other_work_is_not() {
        let busy = Busy::default();
        let waited = |times| tokio::time::timeout(IDLE_WRITE * times, busy.stands_still());
        assert!(waited(3).await.is_err(), "there is none");
        let in_hand = busy.enter();
        let moving = async {
            loop {
                busy.0.moved.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(IDLE_WRITE / 2).await;
            }
        };
        tokio::select! {
            waited = waited(5) => assert!(waited.is_err(), "it moves"),
            () = moving => {}
        }
        assert!(waited(3).await.is_ok());
        drop(in_hand);
        assert!(waited(3).await.is_err(), "it is done");
    }

    #[test]
    fn few_files_make_few_connections() {
        for (files, expected) in
            [(0, 1), (64, 1), (256, 48), (1024, 256), (1 << 20, CONNECTIONS), (u64::MAX, CONNECTIONS)]
        {
            assert_eq!(connections(files), expected, "{files}");
        }
    }
}
