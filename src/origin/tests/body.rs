//! Tests of `origin::body`.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};

use super::support::{Client, fast, get, origin, serve, soon, text};
use crate::http::{BodyError, boxed};
use crate::origin::{Config, OriginError, Reach};

#[derive(Clone, Copy)]
enum End {
    Fin,
    Rst,
}

#[tokio::test]
async fn a_body_cut_short_is_an_error_and_never_an_end() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let until_close = "HTTP/1.1 200 OK\r\n\r\n";
    for (head, body, end, whole) in [
        (length, "0123456789", End::Fin, true),
        (length, "01234", End::Fin, false),
        (length, "01234", End::Rst, false),
        (length, "", End::Fin, false),
        (chunked, "5\r\n01234\r\n0\r\n\r\n", End::Fin, true),
        (chunked, "5\r\n01234\r\n", End::Fin, false),
        (chunked, "5\r\n01234\r\n", End::Rst, false),
        (chunked, "5\r\n01234\r\n0\r\n", End::Fin, false),
        (chunked, "8\r\n01234", End::Fin, false),
        (chunked, "zz\r\n01234", End::Fin, false),
        (until_close, "01234", End::Fin, true),
        (until_close, "01234", End::Rst, false),
    ] {
        let server = serve(move |mut client: Client| async move {
            client.head().await;
            client.say(head).await;
            client.say(body).await;
            if matches!(end, End::Rst) {
                // What was sent must be there before the reset overtakes it.
                tokio::time::sleep(Duration::from_millis(50)).await;
                client.reset();
            }
        });
        let response = soon(origin(fast()).send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap();
        let read = text(response).await;
        assert_eq!(read.is_ok(), whole, "{head}{body}: {read:?}");
        if let Err(error) = read {
            let error = error.downcast::<OriginError>().unwrap();
            assert!(matches!(*error, OriginError::Protocol { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn a_body_that_falls_silent_stalls_and_its_connection_closes() {
    let (ended, mut closed) = tokio::sync::mpsc::unbounded_channel();
    let server = serve(move |mut client: Client| {
        let ended = ended.clone();
        async move {
            client.head().await;
            client.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234").await;
            client.wait_for_end().await;
            ended.send(()).unwrap();
        }
    });
    let origin = origin(Config { stall_timeout: "100ms".parse().unwrap(), ..Config::default() });
    let mut body = soon(origin.send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap().into_body();
    assert_eq!(soon(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "01234");
    let error = soon(body.frame()).await.unwrap().unwrap_err();
    assert_eq!(*error.downcast::<OriginError>().unwrap(), OriginError::Stalled { host: "127.0.0.1".into() });
    assert!(soon(body.frame()).await.is_none());
    soon(closed.recv()).await.unwrap();
}

#[tokio::test]
async fn slow_is_not_silent_and_a_slow_reader_is_no_stall() {
    let server = serve(|mut client: Client| async move {
        client.head().await;
        client.say("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n").await;
        for _round in 0..12 {
            client.say("x").await;
            tokio::time::sleep(Duration::from_millis(120)).await;
        }
    });
    let origin = origin(Config { stall_timeout: "1s".parse().unwrap(), ..Config::default() });
    let mut body = soon(origin.send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap().into_body();
    let first = soon(body.frame()).await.unwrap().unwrap().into_data().unwrap();
    // The reader rests longer than the deadline.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let rest = soon(body.collect()).await.unwrap().to_bytes();
    assert_eq!(first.len() + rest.len(), 12);
}

#[tokio::test]
async fn an_upload_that_goes_on_is_not_silence() {
    let server = serve(|mut client: Client| async move {
        client.head().await;
        let mut body = String::new();
        while !body.ends_with("0\r\n\r\n") {
            use tokio::io::AsyncReadExt as _;
            body.push(char::from(client.stream.read_u8().await.unwrap()));
        }
        client.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
    });
    let origin = origin(Config { stall_timeout: "500ms".parse().unwrap(), ..Config::default() });
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let frames = futures_util::stream::unfold(receiver, |mut receiver| async {
        let bytes = receiver.recv().await?;
        Some((Ok::<_, BodyError>(http_body::Frame::data(bytes)), receiver))
    });
    let body = boxed(StreamBody::new(Box::pin(frames)));
    let request = http::Request::post(server.url("/")).body(body).unwrap();
    let feeding = async {
        for _round in 0..8 {
            sender.send(Bytes::from_static(b"x")).await.unwrap();
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        drop(sender);
    };
    let (response, ()) = soon(async { tokio::join!(origin.send(request, &Reach::Anywhere), feeding) }).await;
    assert_eq!(text(response.unwrap()).await.unwrap(), format!("{}0\r\n\r\n", "1\r\nx\r\n".repeat(8)));
    assert!(server.heads()[0].to_ascii_lowercase().contains("transfer-encoding: chunked"));
}

#[tokio::test]
async fn compressed_bytes_stay_as_they_are() {
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 0xff];
    let server = serve(move |mut client: Client| async move {
        client.head().await;
        client
            .say("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close, x-hop\r\nX-Hop: 1\r\n")
            .await;
        client.say("Content-Length: 14\r\n\r\n").await;
        client.say_bytes(&gzip).await;
    });
    let response = soon(origin(fast()).send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["content-length"], "14");
    assert!(!response.headers().contains_key("x-hop") && !response.headers().contains_key("connection"));
    assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes(), &gzip[..]);
    assert!(!server.heads()[0].contains("accept-encoding"), "nothing is asked for that the client did not");
}

#[tokio::test]
async fn a_dropped_body_closes_its_connection() {
    let (ended, mut closed) = tokio::sync::mpsc::unbounded_channel();
    let server = serve(move |mut client: Client| {
        let ended = ended.clone();
        async move {
            client.head().await;
            client.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").await;
            client.wait_for_end().await;
            ended.send(()).unwrap();
        }
    });
    let response = soon(origin(fast()).send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap();
    drop(response);
    soon(closed.recv()).await.unwrap();
}
