//! HTTP/2 towards a client, within the bounds that HTTP/1.1 has at the door.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::Proxy;
use super::super::forward::Visit;
use super::super::listener::{Busy, IDLE, LAST_BYTES, LIMITS};
use super::super::stream::Abort;
use crate::shutdown::Shutdown;

/// Requests of one connection at a time.
const STREAMS: u32 = 128;
/// What a client may send ahead of us, in one request and in all.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// What waits to be sent of one answer.
const SEND: usize = 256 * 1024;
/// How often a client is asked whether it still lives, and how long it may take to say so.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

impl Proxy {
    /// Serves one connection. It ends when the client leaves, when nothing was asked for a while, when the
    /// client takes nothing of what it asked for, and when asked to stop.
    pub(super) async fn converse_in_two<S>(self, stream: S, visit: Visit, stop: Shutdown)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let busy = Busy::default();
        // One answer that breaks off is a stream that is reset; the others go on.
        let here = Arc::new((self, Visit { abort: Abort::default(), ..visit }));
        let at_work = busy.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (here, guest) = (Arc::clone(&here), at_work.enter());
            async move {
                let (proxy, visit) = here.as_ref();
                let response = proxy.answer(request, visit).await;
                Ok::<_, std::convert::Infallible>(response.map(|body| guest.until_end_of(body, None)))
            }
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(u32::try_from(LIMITS.head).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = busy.stands_still() => return tracing::debug!("a client takes nothing: closed"),
            () = async { tokio::select! { () = stop.requested() => {}, () = busy.idle(IDLE) => {} } } => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = busy.stands_still() => return,
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
