//! The events over WebSocket (RFC 6455): each a text message, `{"id": …, "event": …, "data": …}`, the same as over
//! server-sent events.
//!
//! Nothing is kept for a client but the messages that are being sent: one that takes them too slowly is closed, and
//! goes on where it was. What a client says is not listened to. Pages of other sites are refused at the gate.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::events::{Follower, Heard};
use super::{Api, Ask, Problem};
use crate::http::{Body, empty};
use crate::shutdown::{Drain, Shutdown};

/// How long a client may take to take what it is sent.
const SLOW: Duration = Duration::from_secs(30);
/// The longest message of a client that is read at all.
const LISTENED: usize = 4096;
/// What RFC 6455 section 1.3 adds to a client's key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

impl Api {
    /// Whether a request wants to go on as a WebSocket.
    pub fn wants_socket(fields: &HeaderMap) -> bool {
        names(fields, &UPGRADE, "websocket") && names(fields, &CONNECTION, "upgrade")
    }

    /// Answers a request that wants the events over a WebSocket; the conversation is a guest of `guests`.
    pub fn socket(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        upgrade: Option<OnUpgrade>,
        stop: Shutdown,
        guests: &Drain,
    ) -> Response<Body> {
        let opened = accept(ask.headers).and_then(|accept| Ok((accept, self.follower(ask, stop)?)));
        let (accept, follower) = match opened {
            Ok(opened) => opened,
            Err(problem) => {
                let mut response = problem.into_response();
                if response.status() == StatusCode::UPGRADE_REQUIRED {
                    response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
                }
                return response;
            }
        };
        let Some(upgrade) = upgrade else {
            let problem =
                Problem::new(StatusCode::BAD_REQUEST, "no-upgrade", "This connection stays as it is");
            return problem.detail("a WebSocket begins with HTTP/1.1").into_response();
        };
        guests.spawn(async move {
            match upgrade.await {
                Ok(stream) => converse(TokioIo::new(stream), follower).await,
                Err(error) => tracing::debug!(%error, "a connection did not become a WebSocket"),
            }
        });
        let mut response = Response::new(empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let fields = response.headers_mut();
        fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
        fields.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        fields.insert(SEC_WEBSOCKET_ACCEPT, accept);
        response
    }
}

/// The answer to a client's key (RFC 6455 section 4.2.2).
fn accept(fields: &HeaderMap) -> Result<HeaderValue, Problem> {
    let bad = |detail| {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", "The request cannot be read").detail(detail)
    };
    if fields.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        let problem =
            Problem::new(StatusCode::UPGRADE_REQUIRED, "other-version", "Another version is needed");
        return Err(problem.detail("the version of the protocol is 13"));
    }
    let mut keys = fields.get_all(SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return Err(bad("one Sec-WebSocket-Key is needed").field("Sec-WebSocket-Key"));
    };
    if STANDARD.decode(key.as_bytes()).map_or(0, |bytes| bytes.len()) != 16 {
        return Err(bad("Sec-WebSocket-Key is 16 bytes in base64").field("Sec-WebSocket-Key"));
    }
    let hash = Sha1::new().chain_update(key.as_bytes()).chain_update(GUID).finalize();
    HeaderValue::from_str(&STANDARD.encode(hash)).map_err(|_never| bad("Sec-WebSocket-Key is no text"))
}

/// Whether a list of words in these fields has this one.
fn names(fields: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let lists = fields.get_all(name).iter().filter_map(|field| field.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|found| found.trim().eq_ignore_ascii_case(word))
}

/// Tells a client what is heard until one of the two leaves.
async fn converse<S>(stream: S, mut follower: Follower)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(LISTENED))
        .max_frame_size(Some(LISTENED))
        .read_buffer_size(LISTENED);
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let why = loop {
        let heard = tokio::select! {
            said = socket.next() => match said {
                // pings are answered by themselves with the next message; what else is said is nobody's concern
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_) | Message::Binary(_))) => continue,
                Some(Ok(Message::Close(_) | Message::Frame(_)) | Err(_)) | None => break None,
            },
            heard = follower.heard() => heard,
        };
        let Some(heard) = heard else { break Some((CloseCode::Away, "stopping")) };
        let sent = tokio::time::timeout(SLOW, async {
            match heard {
                Heard::Nothing => socket.send(Message::Ping(Bytes::new())).await?,
                Heard::Events(events) => {
                    for event in &events {
                        socket.send(Message::text(event.as_json())).await?;
                    }
                }
            }
            Ok::<_, tokio_tungstenite::tungstenite::Error>(())
        });
        match sent.await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => break None,
            Err(_elapsed) => return tracing::debug!("a client took the events too slowly"),
        }
    };
    let last = why.map(|(code, reason)| CloseFrame { code, reason: reason.into() });
    if tokio::time::timeout(Duration::from_secs(1), socket.close(last)).await.is_err() {
        tracing::debug!("a client did not take the last word");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455 section 1.3.
    #[test]
    fn a_key_is_answered() {
        let with = |version: &str, key: &str| {
            let mut fields = HeaderMap::new();
            fields.insert(SEC_WEBSOCKET_VERSION, version.parse().unwrap());
            fields.insert(SEC_WEBSOCKET_KEY, key.parse().unwrap());
            accept(&fields)
        };
        assert_eq!(with("13", "dGhlIHNhbXBsZSBub25jZQ==").unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(with("8", "dGhlIHNhbXBsZSBub25jZQ==").is_err());
        assert!(with("13", "dGhl").is_err() && with("13", "").is_err());
        assert!(accept(&HeaderMap::new()).is_err());
    }
}
