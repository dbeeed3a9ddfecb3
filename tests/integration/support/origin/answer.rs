//! One answer of the fault origin, made from the request and the script.

use std::io::Write as _;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use super::super::script::{Etag, Framing, Ranges, Script};
use super::wire::{Seen, Wire};
use super::{Shared, wait_for_release};

/// Answers; says whether the connection goes on.
pub fn answer(wire: &mut Wire, seen: &Seen, script: &Script, shared: &Shared) -> bool {
    pause(script.delay);
    if let Some(raw) = &script.raw {
        drop(wire.write_all(raw));
        return false;
    }
    if seen.method != "GET" && seen.method != "HEAD" {
        return plain(wire, seen, 200, &seen.body);
    }
    if script.echo {
        return plain(wire, seen, 200, seen.text().as_bytes());
    }
    if script.authorization.as_ref().is_some_and(|allowed| !is_allowed(seen, allowed)) {
        return plain(wire, seen, 401, b"who are you?\n");
    }
    if script.signed && !signature_holds(seen, shared) {
        return plain(wire, seen, 403, b"this link has ended\n");
    }
    Reply::new(seen, script, shared).send(wire, seen, script, shared)
}

fn is_allowed(seen: &Seen, allowed: &str) -> bool {
    seen.field("Authorization").is_some_and(|shown| allowed.split('|').any(|one| one == shown))
}

/// A small answer that nobody may keep.
fn plain(wire: &mut Wire, seen: &Seen, status: u16, body: &[u8]) -> bool {
    let challenge = if status == 401 { "WWW-Authenticate: Basic realm=\"x\"\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} Plain\r\nCache-Control: no-store\r\n{challenge}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let sent = wire.write_all(head.as_bytes());
    let sent = if seen.method == "HEAD" { sent } else { sent.and_then(|()| wire.write_all(body)) };
    sent.is_ok()
}

fn signature_holds(seen: &Seen, shared: &Shared) -> bool {
    let signature =
        seen.query().and_then(|query| query.strip_prefix("sig=")).and_then(|n| n.parse::<u64>().ok());
    signature.is_some_and(|signature| signature >= shared.state().oldest_signature)
}

/// What was decided about one answer.
struct Reply {
    status: u16,
    fields: Vec<(String, String)>,
    gzip: bool,
    range: Range<u64>,
    framing: Framing,
}

impl Reply {
    fn new(seen: &Seen, script: &Script, shared: &Shared) -> Self {
        let gzip = script.negotiates && accepts_gzip(seen);
        let mut fields = vec![("Date".to_owned(), httpdate::fmt_http_date(SystemTime::now()))];
        let mut add = |name: &str, value: String| fields.push((name.to_owned(), value));
        if let Some(etag) = script.etag_value() {
            add("ETag", if gzip { etag.replacen('"', "\"gz-", 1) } else { etag });
        }
        script.last_modified.iter().for_each(|date| add("Last-Modified", date.clone()));
        script.cache_control.iter().for_each(|value| add("Cache-Control", value.clone()));
        if script.negotiates {
            add("Vary", "Accept-Encoding".into());
        }
        if script.cookie || script.signs {
            let mut state = shared.state();
            state.counter += 1;
            if script.cookie {
                add("Set-Cookie", format!("sid={}; Path=/", state.counter));
            }
            if let Some(target) = script.location.as_ref().filter(|_| script.signs) {
                add("Location", format!("{target}?sig={}", state.counter));
            }
        }
        script.location.iter().filter(|_| !script.signs).for_each(|target| add("Location", target.clone()));
        script.fields.iter().for_each(|(name, value)| add(name, value.clone()));
        if not_modified(seen, script) {
            fields.extend(script.not_modified_fields.iter().cloned());
            return Self { status: 304, fields, gzip, range: 0..0, framing: Framing::Length(0) };
        }
        if !fields.iter().any(|(name, _)| name == "Content-Type") {
            fields.push(("Content-Type".into(), "application/octet-stream".into()));
        }
        if gzip {
            fields.push(("Content-Encoding".into(), "gzip".into()));
        }
        let size = match &script.content {
            Some([_, packed]) if gzip => packed.len() as u64,
            Some(_) | None => script.size,
        };
        let whole = Self { status: script.status, fields, gzip, range: 0..size, framing: script.framing };
        whole.ranged(seen, script)
    }

    fn ranged(mut self, seen: &Seen, script: &Script) -> Self {
        if script.ranges != Ranges::Ignored {
            self.fields.push(("Accept-Ranges".into(), "bytes".into()));
        }
        let Some(asked) = seen.field("Range").filter(|_| self.status == 200) else { return self };
        let refused = match script.ranges {
            Ranges::Honoured => !if_range_holds(seen, script),
            Ranges::WithoutIfRange => seen.field("If-Range").is_some(),
            Ranges::Ignored => true,
        };
        if refused {
            return self;
        }
        match parse_range(asked, script.size) {
            None => self,
            Some(None) => {
                self.fields.push(("Content-Range".into(), format!("bytes */{}", script.size)));
                Self { status: 416, range: 0..0, framing: Framing::Length(0), ..self }
            }
            Some(Some(range)) => {
                let told = format!("bytes {}-{}/{}", range.start, range.end - 1, script.size);
                self.fields.push(("Content-Range".into(), told));
                Self { status: 206, range, ..self }
            }
        }
    }

    fn send(mut self, wire: &mut Wire, seen: &Seen, script: &Script, shared: &Shared) -> bool {
        let length = self.range.end - self.range.start;
        match self.framing {
            Framing::Length(_) if self.status == 304 => {}
            Framing::Length(lie) => {
                self.fields.push(("Content-Length".into(), (length as i64 + lie).max(0).to_string()));
            }
            Framing::Chunked { .. } => self.fields.push(("Transfer-Encoding".into(), "chunked".into())),
            Framing::Close => self.fields.push(("Connection".into(), "close".into())),
        }
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        self.fields.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str("\r\n");
        if wire.write_all(head.as_bytes()).is_err() {
            return false;
        }
        if seen.method == "HEAD" || self.status == 304 {
            return !script.hang_up;
        }
        self.send_body(wire, seen, script, shared) && self.framing != Framing::Close && !script.hang_up
    }

    /// The body in steps that end where something is to happen; false when the connection is to close.
    fn send_body(&self, wire: &mut Wire, seen: &Seen, script: &Script, shared: &Shared) -> bool {
        let path = seen.path();
        let cut = script.cut.filter(|cut| {
            let mut state = shared.state();
            let so_far = state.cuts.entry(path.to_owned()).or_default();
            *so_far += 1;
            cut.at < self.range.end - self.range.start && cut.times.is_none_or(|times| *so_far <= times)
        });
        let mut at = self.range.start;
        let mut step = 0;
        loop {
            let sent = at - self.range.start;
            if let Some(cut) = cut.filter(|cut| sent >= cut.at) {
                wire.sever(cut.reset);
                return false;
            }
            if at >= self.range.end {
                break;
            }
            if script.hold.is_some_and(|hold| hold == at) && !wait_for_release(wire, path, shared) {
                return false;
            }
            let next = self.next_stop(at, step, script, cut.map(|cut| self.range.start + cut.at));
            // counted before it leaves: whoever has received a byte finds it counted
            *shared.state().sent.entry(path.to_owned()).or_default() += next - at;
            if self.send_piece(wire, script.slice(self.gzip, at..next)).is_err() {
                *shared.state().sent.entry(path.to_owned()).or_default() -= next - at;
                return false;
            }
            if let Some((_, rest)) = script.burst {
                pause(rest);
            }
            at = next;
            step += 1;
        }
        self.finish(wire)
    }

    fn next_stop(&self, at: u64, step: u64, script: &Script, cut: Option<u64>) -> u64 {
        let stride = match (script.burst, self.framing) {
            (Some((bytes, _)), _) => bytes,
            (None, Framing::Chunked { .. }) => 1 + (step * 7919 + 13) % (24 << 10),
            (None, _) => 64 << 10,
        };
        let gate = script.hold.filter(|hold| *hold > at);
        [Some(at + stride), Some(self.range.end), gate, cut.filter(|cut| *cut > at)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.range.end)
    }

    fn send_piece(&self, wire: &mut Wire, bytes: Vec<u8>) -> std::io::Result<()> {
        if let Framing::Chunked { .. } = self.framing {
            wire.write_all(format!("{:x}\r\n", bytes.len()).as_bytes())?;
            wire.write_all(&bytes)?;
            return wire.write_all(b"\r\n");
        }
        wire.write_all(&bytes)
    }

    fn finish(&self, wire: &mut Wire) -> bool {
        match self.framing {
            Framing::Chunked { finished: true } => wire.write_all(b"0\r\n\r\n").is_ok(),
            Framing::Chunked { finished: false } => false,
            Framing::Length(lie) => lie == 0,
            Framing::Close => true,
        }
    }
}

fn pause(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

fn accepts_gzip(seen: &Seen) -> bool {
    let accepted = seen.field("Accept-Encoding").unwrap_or_default();
    accepted.split(',').any(|coding| {
        let coding = coding.replace(' ', "");
        coding.starts_with("gzip") && !coding.contains("q=0")
    })
}

fn opaque(tag: &str) -> &str {
    tag.trim().trim_start_matches("W/")
}

fn not_modified(seen: &Seen, script: &Script) -> bool {
    if script.status != 200 || script.etag == Etag::Random {
        return false;
    }
    if let Some(tags) = seen.field("If-None-Match") {
        let own = script.etag_value();
        return own.is_some_and(|own| tags.split(',').any(|tag| opaque(tag) == opaque(&own)));
    }
    let since = seen.field("If-Modified-Since");
    since.is_some() && since == script.last_modified.as_deref()
}

fn if_range_holds(seen: &Seen, script: &Script) -> bool {
    let Some(validator) = seen.field("If-Range") else { return true };
    if validator.contains('"') {
        return !validator.starts_with("W/") && script.etag_value().as_deref() == Some(validator);
    }
    script.last_modified.as_deref() == Some(validator)
}

/// `None`: not a range we understand; `Some(None)`: nothing of it exists.
fn parse_range(asked: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (from, to) = asked.strip_prefix("bytes=")?.split_once('-')?;
    if from.is_empty() {
        let suffix = to.parse::<u64>().ok()?;
        return Some((suffix > 0 && size > 0).then(|| size.saturating_sub(suffix)..size));
    }
    let from = from.parse::<u64>().ok()?;
    let to = if to.is_empty() { u64::MAX } else { to.parse::<u64>().ok()? };
    if to < from {
        return None;
    }
    Some((from < size).then(|| from..to.saturating_add(1).min(size)))
}
