//! Which requests are let in: a client that is allowed, no loop, no foreign page.

use std::net::IpAddr;

use http::StatusCode;
use http::header::{self, HeaderMap};

use super::Proxy;
use crate::http::Target;
use crate::rest::Problem;

impl Proxy {
    /// Whether this client may use the doors.
    pub(super) fn check_client(&self, client: IpAddr) -> Result<(), Problem> {
        if self.0.config.load().allow.iter().any(|net| net.contains(&client)) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "client-refused", "Client not allowed")
            .detail("this address may not use larder's doors")
            .hint("add its network to proxy.allow"))
    }

    /// Whether a request has come back to us, or is about to.
    pub(super) fn check_loop(&self, headers: &HeaderMap, target: &Target, port: u16) -> Result<(), Problem> {
        let passed_here = headers
            .get_all(header::VIA)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|hop| hop.split_whitespace().nth(1) == Some(self.0.pseudonym.as_str()));
        if passed_here || self.leads_here(target, port) {
            return Err(Problem::new(StatusCode::LOOP_DETECTED, "loop", "Request loop")
                .detail("the request leads back to this proxy")
                .hint("address the origin server, not larder's own port, and do not make two proxies each other's parent"));
        }
        Ok(())
    }

    /// Whether a target is this very listener.
    pub(super) fn leads_here(&self, target: &Target, port: u16) -> bool {
        target.port() == port && self.names_this_machine(target.bare_host())
    }

    fn names_this_machine(&self, host: &str) -> bool {
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let address = host.parse::<IpAddr>().map(|address| address.to_canonical());
        address.is_ok_and(|a| a.is_loopback() || a.is_unspecified() || self.is_own(a))
    }
}

/// What a page of another site could send through a prefix door is refused, as is a foreign host name: else
/// every site behind the prefix would be one web origin, and open to DNS rebinding.
pub(super) fn check_browser(headers: &HeaderMap, hosts: &crate::rest::Hosts) -> Result<(), Problem> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    if !host.is_empty() && !hosts.accepts(host) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "host-refused", "Unknown host name")
            .detail("the prefix doors answer to addresses, localhost and this node's names only")
            .hint("use an address, or add the name to admin.hosts"));
    }
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    if site.is_some_and(|site| site != "none" && site != "same-origin") {
        return Err(Problem::new(StatusCode::FORBIDDEN, "cross-site", "Cross-site request")
            .detail("a page of another site may not use the prefix doors")
            .hint("open the address itself"));
    }
    Ok(())
}
