//! A page as a stream: only the `href` of `a` and `base` is looked into (what pip and its like read of a page).

use std::ops::Range;

use super::LONGEST;
use crate::mirror::place::Links;

/// A page on its way.
#[derive(Debug)]
pub(super) struct Html {
    links: Links,
    /// The tag or comment that is open, from its `<` on; empty in text.
    tag: Vec<u8>,
    /// The quote that the attribute's value began with.
    quote: Option<u8>,
}

/// Characters that pages write as entities in addresses.
const ENTITIES: [(&str, &str); 6] =
    [("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&#38;", "&")];

impl Html {
    pub(super) fn new(links: Links) -> Self {
        Self { links, tag: Vec::new(), quote: None }
    }

    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            if self.tag.is_empty() {
                if byte == b'<' {
                    self.tag.push(byte);
                } else {
                    out.push(byte);
                }
                continue;
            }
            self.tag.push(byte);
            if self.ends_with(byte) {
                self.give_tag(out);
            } else if self.tag.len() > LONGEST || self.is_no_tag() {
                self.finish(out);
            }
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.tag);
        self.quote = None;
    }

    /// A `<` that stands for itself.
    fn is_no_tag(&self) -> bool {
        matches!(self.tag.as_slice(), [_, byte] if !byte.is_ascii_alphabetic() && !b"!/?".contains(byte))
    }

    fn ends_with(&mut self, byte: u8) -> bool {
        if self.tag.starts_with(b"<!--") {
            return byte == b'>' && self.tag.len() > 6 && self.tag.ends_with(b"-->");
        }
        match self.quote {
            Some(quote) if quote == byte => self.quote = None,
            Some(_) => {}
            None if byte == b'>' => return true,
            // a quote opens a value only behind its `=`
            None if byte == b'"' || byte == b'\'' => {
                let before = self.tag.iter().rev().skip(1).find(|byte| !byte.is_ascii_whitespace());
                self.quote = Some(byte).filter(|_| before == Some(&b'='));
            }
            None => {}
        }
        false
    }

    fn give_tag(&mut self, out: &mut Vec<u8>) {
        let tag = std::mem::take(&mut self.tag);
        let name = tag.get(1..).unwrap_or_default();
        let is = |known: &[u8]| {
            name.get(..known.len()).is_some_and(|name| name.eq_ignore_ascii_case(known))
                && name.get(known.len()).is_some_and(u8::is_ascii_whitespace)
        };
        let is_base = is(b"base");
        let value = if is_base || is(b"a") { href(&tag) } else { None };
        let text = value.clone().and_then(|value| std::str::from_utf8(tag.get(value)?).ok());
        let (Some(value), Some(text)) = (value, text) else { return out.extend_from_slice(&tag) };
        let inner = |quote| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        let reference = decoded(inner('"').or_else(|| inner('\'')).unwrap_or(text));
        let led = self.links.lead(&reference);
        if is_base {
            self.links.seen_from(&reference);
        }
        let Some(led) = led else { return out.extend_from_slice(&tag) };
        out.extend_from_slice(tag.get(..value.start).unwrap_or_default());
        out.push(b'"');
        out.extend_from_slice(encoded(&led).as_bytes());
        out.push(b'"');
        out.extend_from_slice(tag.get(value.end..).unwrap_or_default());
    }
}

/// Where the value of `href` stands, its quotes included.
fn href(tag: &[u8]) -> Option<Range<usize>> {
    let skip = |from: usize, skipped: fn(&u8) -> bool| {
        let rest = tag.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| skipped(byte)).count()
    };
    let mut at = skip(1, u8::is_ascii_alphanumeric);
    loop {
        let start = skip(at, |byte| byte.is_ascii_whitespace() || *byte == b'/');
        let end = skip(start, |byte| !byte.is_ascii_whitespace() && !b"=>/".contains(byte));
        let name = tag.get(start..end).filter(|name| !name.is_empty())?;
        at = skip(end, u8::is_ascii_whitespace);
        if tag.get(at) != Some(&b'=') {
            continue;
        }
        let value = skip(at + 1, u8::is_ascii_whitespace);
        at = match tag.get(value)? {
            b'"' => skip(value + 1, |byte| *byte != b'"') + 1,
            b'\'' => skip(value + 1, |byte| *byte != b'\'') + 1,
            _ => skip(value, |byte| !byte.is_ascii_whitespace() && *byte != b'>'),
        };
        if name.eq_ignore_ascii_case(b"href") {
            return (at <= tag.len()).then_some(value..at);
        }
    }
}

fn decoded(text: &str) -> String {
    let plain = ENTITIES.iter().fold(text.to_owned(), |text, (entity, c)| text.replace(entity, c));
    plain.replace("&amp;", "&")
}

fn encoded(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
