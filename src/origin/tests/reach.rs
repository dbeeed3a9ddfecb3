//! Tests of `origin::reach`.

use std::net::IpAddr;
use std::sync::Arc;

use super::support::{Client, fast, get, origin, serve, soon, text};
use crate::http::Target;
use crate::origin::{Config, OriginError, Reach};

fn public(own: &[&str]) -> Reach {
    Reach::Public { refuse: own.iter().map(|a| a.parse::<IpAddr>().unwrap()).collect::<Arc<[IpAddr]>>() }
}

#[test]
fn h35_addresses_private_to_this_machine_are_refused() {
    let reach = public(&["192.168.1.5", "2001:db8::5"]);
    for refused in [
        "127.0.0.1",
        "127.8.9.1",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "febf::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "192.168.1.5",
        "::ffff:192.168.1.5",
        "2001:db8::5",
    ] {
        assert!(!reach.permits(refused.parse().unwrap()), "{refused}");
        assert!(Reach::Anywhere.permits(refused.parse().unwrap()));
    }
    for permitted in ["192.168.1.6", "10.0.0.1", "93.184.216.34", "2001:db8::6", "fd00::1", "::ffff:10.0.0.1"]
    {
        assert!(reach.permits(permitted.parse().unwrap()), "{permitted}");
    }
    for name in
        ["localhost", "LOCALHOST.", "a.localhost", "127.1", "0x7f000001", "2130706433", "127.0.0.1", "::1"]
    {
        assert!(!reach.permits_name(name), "{name}");
    }
    for name in ["example.org", "10.0.0.1", "localhost.example.org"] {
        assert!(reach.permits_name(name), "{name}");
    }
}

#[tokio::test]
async fn h35_no_spelling_of_this_machine_is_reached() {
    let server = serve(|mut client: Client| async move {
        while client.head().await.is_some() {
            client.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
    });
    let (origin, port) = (origin(fast()), server.address.port());
    // A connection that a local client left idle is not for others.
    let response = soon(origin.send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap();
    assert_eq!(text(response).await.unwrap(), "ok");
    let refuse = public(&[]);
    for host in
        ["127.0.0.1", "localhost", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"]
    {
        let error = soon(origin.send(get(&format!("http://{host}:{port}/")), &refuse)).await.unwrap_err();
        assert!(matches!(error, OriginError::Denied { .. }), "{host}: {error}");
        let error = soon(origin.tunnel(host, port, &refuse)).await.unwrap_err();
        assert!(matches!(error, OriginError::Denied { .. }), "{host}: {error}");
    }
    assert_eq!(server.connections(), 1);
    soon(origin.tunnel("127.0.0.1", port, &Reach::Anywhere)).await.unwrap();
}

#[tokio::test]
async fn h35_a_redirect_leads_nowhere_else() {
    let origin = origin(fast());
    let target = Target::from_uri(&"http://localhost:1/".parse().unwrap()).unwrap();
    let error = soon(origin.follow(target, http::HeaderMap::new(), &public(&[]))).await.unwrap_err();
    assert!(matches!(error, OriginError::Denied { .. }) && !error.is_unreachable());
}

#[tokio::test]
async fn the_parent_proxy_gets_whole_urls_and_its_credentials() {
    let proxy = serve(|mut client: Client| async move {
        while let Some(head) = client.head().await {
            let status = if head.contains("/locked") { "407 No" } else { "200 OK" };
            client.say(&format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok")).await;
        }
    });
    let address = format!("http://me:pw@{}", proxy.address);
    let origin = origin(Config { proxy: address.parse().unwrap(), ..fast() });
    let response = soon(origin.send(get("http://far.example/a%2Fb?c"), &public(&[]))).await.unwrap();
    assert_eq!(text(response).await.unwrap(), "ok");
    let expected = "GET http://far.example/a%2Fb?c HTTP/1.1\r\nhost: far.example\r\n\
                    proxy-authorization: Basic bWU6cHc=\r\n\r\n";
    assert_eq!(proxy.heads(), [expected]);
    let error = soon(origin.send(get("http://far.example/locked"), &Reach::Anywhere)).await.unwrap_err();
    assert!(error.to_string().contains("origin.proxy"), "{error}");
    for host in ["localhost", "127.1", "127.0.0.1", "[::1]"] {
        let error = soon(origin.send(get(&format!("http://{host}/")), &public(&[]))).await.unwrap_err();
        assert!(matches!(error, OriginError::Denied { .. }), "{host}: {error}");
    }
}

#[tokio::test]
async fn h34_a_tunnel_through_the_parent_proxy_loses_no_byte() {
    use tokio::io::AsyncReadExt as _;
    let proxy = serve(|mut client: Client| async move {
        let head = client.head().await.unwrap();
        if head.starts_with("CONNECT far.example:22 HTTP/1.1\r\n") {
            client.say("HTTP/1.1 200 Connection ").await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            client.say("established\r\nX: y\r\n\r\nSSH-2.0-far\r\n").await;
        } else {
            client.say("HTTP/1.1 403 No\r\n\r\n").await;
        }
    });
    let origin = origin(Config { proxy: format!("http://{}", proxy.address).parse().unwrap(), ..fast() });
    let mut tunnel = soon(origin.tunnel("far.example", 22, &public(&[]))).await.unwrap();
    let mut greeting = String::new();
    soon(tunnel.read_to_string(&mut greeting)).await.unwrap();
    assert_eq!(greeting, "SSH-2.0-far\r\n");
    let error = soon(origin.send(get("https://other.example/"), &Reach::Anywhere)).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot connect to other.example: the parent proxy answers 403");
}
