//! The head of a request, line by line as it comes: refused at the first line that is not as it must be.

use http::Uri;

use super::line::{field, is_token, is_token_byte};
use super::{Fault, Limits};
use crate::http::target::is_authority;

/// What hyper reads of a target at most.
const LONGEST_TARGET: usize = 65_000;
/// Empty lines in front of a request: some clients end a body with one (RFC 9112 section 2.2).
const EMPTY_LINES: usize = 4;
/// The largest length we believe.
const LONGEST_BODY: u64 = i64::MAX.unsigned_abs();

/// How the body behind a head ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    None,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// Never: what follows is another protocol, if the server agrees.
    Tunnel,
}

/// A head that is being read.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Bytes looked at.
    at: usize,
    /// Where the line begins that is not yet complete.
    line: usize,
    empty_lines: usize,
    request: Option<RequestLine>,
    fields: usize,
    length: Option<u64>,
    is_chunked: bool,
    hosts: usize,
}

#[derive(Debug, Clone, Copy)]
struct RequestLine {
    is_connect: bool,
    is_1_0: bool,
}

impl Head {
    /// Looks at the bytes that came since the last call; `bytes` begins where the head begins. Gives the length
    /// of the whole head and what follows it, once all of it is there.
    pub(super) fn read(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<(usize, Framing)>, Fault> {
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(found) = rest.iter().position(|byte| *byte == b'\n') else {
                self.at = bytes.len();
                return self.check_unfinished(bytes, limits).map(|()| None);
            };
            let end = self.at + found;
            let line = bytes.get(self.line..end).unwrap_or_default();
            self.check_begun(line)?;
            if end >= limits.head {
                return Err(self.too_large());
            }
            let line = line.strip_suffix(b"\r").ok_or(Fault::LineEnd)?;
            (self.at, self.line) = (end + 1, end + 1);
            if line.is_empty() && self.request.is_some() {
                return self.finish().map(|framing| Some((end + 1, framing)));
            }
            self.take(line, limits)?;
        }
    }

    /// A line that is not complete may already be wrong.
    fn check_unfinished(&self, bytes: &[u8], limits: &Limits) -> Result<(), Fault> {
        self.check_begun(bytes.get(self.line..).unwrap_or_default())?;
        if bytes.len() > limits.head { Err(self.too_large()) } else { Ok(()) }
    }

    /// What begins like no method is no request: TLS, for one, which has no lines to wait for.
    fn check_begun(&self, line: &[u8]) -> Result<(), Fault> {
        match line.first() {
            Some(b'\r') | None => Ok(()),
            Some(byte) if self.request.is_some() || is_token_byte(*byte) => Ok(()),
            Some(_) => Err(Fault::RequestLine),
        }
    }

    const fn too_large(&self) -> Fault {
        if self.request.is_some() { Fault::HeadTooLarge } else { Fault::TargetTooLong }
    }

    fn take(&mut self, line: &[u8], limits: &Limits) -> Result<(), Fault> {
        if self.request.is_some() {
            return self.take_field(line, limits);
        }
        if line.is_empty() {
            self.empty_lines += 1;
            return if self.empty_lines > EMPTY_LINES { Err(Fault::LineEnd) } else { Ok(()) };
        }
        self.request = Some(request_line(line)?);
        Ok(())
    }

    fn take_field(&mut self, line: &[u8], limits: &Limits) -> Result<(), Fault> {
        let (name, value) = field(line)?;
        self.fields += 1;
        if self.fields > limits.fields {
            return Err(Fault::HeadTooLarge);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = length(value).filter(|_| self.length.is_none()).ok_or(Fault::Length)?;
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault::Encoding);
            }
            self.is_chunked = true;
        } else if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
            if self.hosts > 1 || !(value.is_empty() || is_authority(value)) {
                return Err(Fault::Host);
            }
        }
        Ok(())
    }

    fn finish(&self) -> Result<Framing, Fault> {
        let request = self.request.ok_or(Fault::RequestLine)?;
        // a tunnel's target says it all, and some clients leave it at that
        if self.hosts == 0 && !request.is_1_0 && !request.is_connect {
            return Err(Fault::Host);
        }
        match (self.is_chunked, self.length) {
            (true, Some(_)) => Err(Fault::TwoFramings),
            // what a server of HTTP/1.0 makes of it, nobody knows (RFC 9112 section 6.1)
            (true, None) if request.is_1_0 => Err(Fault::Encoding),
            (true, None) if request.is_connect => Err(Fault::Body),
            (true, None) => Ok(Framing::Chunked),
            (false, Some(1..)) if request.is_connect => Err(Fault::Body),
            (false, _) if request.is_connect => Ok(Framing::Tunnel),
            (false, None | Some(0)) => Ok(Framing::None),
            (false, Some(length)) => Ok(Framing::Length(length)),
        }
    }
}

fn request_line(line: &[u8]) -> Result<RequestLine, Fault> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Fault::RequestLine);
    };
    if !is_token(method) {
        return Err(Fault::RequestLine);
    }
    let is_1_0 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(Fault::Version);
        }
        _ => return Err(Fault::RequestLine),
    };
    check_target(method, target)?;
    Ok(RequestLine { is_connect: method == b"CONNECT", is_1_0 })
}

/// The four forms of a target (RFC 9112 section 3.2).
fn check_target(method: &[u8], target: &[u8]) -> Result<(), Fault> {
    if target.len() > LONGEST_TARGET {
        return Err(Fault::TargetTooLong);
    }
    if target.contains(&b'#') {
        return Err(Fault::Fragment);
    }
    let uri = Uri::try_from(target).map_err(|_not_a_uri| Fault::Target)?;
    let authority = uri.authority().map(http::uri::Authority::as_str);
    if authority.is_some_and(|authority| authority.contains('@')) {
        return Err(Fault::UserInfo);
    }
    let is_valid = |authority: Option<&str>| authority.is_some_and(|name| is_authority(name.as_bytes()));
    match (target.first(), uri.scheme()) {
        _ if method == b"CONNECT" => {
            let names_port = uri.scheme().is_none() && uri.port_u16().is_some() && is_valid(authority);
            if names_port { Ok(()) } else { Err(Fault::Target) }
        }
        (Some(b'/'), None) => Ok(()),
        (Some(b'*'), None) if method == b"OPTIONS" && target.len() == 1 => Ok(()),
        (_, Some(_)) if is_valid(authority) => Ok(()),
        (_, Some(_)) => Err(Fault::Authority),
        (_, None) => Err(Fault::Target),
    }
}

/// Digits and nothing else: no sign, no list, no other base.
fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length = std::str::from_utf8(value).ok()?.parse().ok()?;
    (length <= LONGEST_BODY).then_some(length)
}
