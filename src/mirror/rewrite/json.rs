//! JSON as a stream: where in the tree a text stands is known, and nothing else of it.

use super::LONGEST;
use crate::mirror::place::Links;

/// Deeper levels are counted, but nothing in them is a link.
const DEEPEST: usize = 128;

/// Whether the text at this place of the tree is a link: the keys on the way to it, an empty one for a list.
type IsLink = fn(&[Level]) -> bool;

/// A document on its way.
#[derive(Debug)]
pub(super) struct Json {
    is_link: IsLink,
    links: Links,
    levels: Vec<Level>,
    /// Levels beyond the deepest.
    beyond: usize,
    state: State,
    /// The text that is held, without its quotes.
    held: Vec<u8>,
}

/// An object or a list that is open.
#[derive(Debug)]
pub(super) struct Level {
    is_object: bool,
    /// The key whose value comes.
    key: String,
    expects_key: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    /// A text that goes through.
    Through {
        escaped: bool,
    },
    /// A text that is held until its end.
    Held {
        escaped: bool,
        is_key: bool,
    },
}

/// `files[].url` of the simple interface, `urls[].url` and `releases.*[].url` of the older one.
pub(super) fn in_pypi(path: &[Level]) -> bool {
    let top = path.first().map(|level| level.key.as_str());
    matches!(top, Some("files" | "urls" | "releases")) && path.last().is_some_and(|level| level.key == "url")
}

/// `dist.tarball`, of every version or of one.
pub(super) fn in_npm(path: &[Level]) -> bool {
    matches!(path, [.., dist, tarball] if dist.key == "dist" && tarball.key == "tarball")
}

/// `dl` and `api`.
pub(super) fn in_crates(path: &[Level]) -> bool {
    matches!(path, [only] if only.key == "dl" || only.key == "api")
}

impl Json {
    pub(super) fn new(is_link: IsLink, links: Links) -> Self {
        let (levels, held) = (Vec::new(), Vec::new());
        Self { is_link, links, levels, beyond: 0, state: State::Between, held }
    }

    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            match self.state {
                State::Between => self.between(byte, out),
                State::Through { escaped } => {
                    out.push(byte);
                    self.state = match (byte, escaped) {
                        (b'"', false) => State::Between,
                        (b'\\', false) => State::Through { escaped: true },
                        _ => State::Through { escaped: false },
                    };
                }
                State::Held { escaped, is_key } => self.held(byte, escaped, is_key, out),
            }
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if let State::Held { .. } = self.state {
            out.push(b'"');
            out.append(&mut self.held);
            self.state = State::Between;
        }
    }

    fn between(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => self.close(),
            b',' => self.expect_key(true),
            b':' => self.expect_key(false),
            b'"' => {
                self.state = self.text();
                if matches!(self.state, State::Held { .. }) {
                    return;
                }
            }
            _ => {}
        }
        out.push(byte);
    }

    fn open(&mut self, is_object: bool) {
        if self.levels.len() < DEEPEST {
            self.levels.push(Level { is_object, key: String::new(), expects_key: is_object });
        } else {
            self.beyond = self.beyond.saturating_add(1);
        }
    }

    fn close(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else {
            self.levels.pop();
        }
    }

    fn expect_key(&mut self, expects: bool) {
        if self.beyond == 0
            && let Some(level) = self.levels.last_mut()
        {
            level.expects_key = expects && level.is_object;
        }
    }

    /// What becomes of the text that begins.
    fn text(&self) -> State {
        let Some(level) = self.levels.last().filter(|_| self.beyond == 0) else {
            return State::Through { escaped: false };
        };
        if level.expects_key {
            return State::Held { escaped: false, is_key: true };
        }
        if level.is_object && (self.is_link)(&self.levels) {
            return State::Held { escaped: false, is_key: false };
        }
        State::Through { escaped: false }
    }

    fn held(&mut self, byte: u8, escaped: bool, is_key: bool, out: &mut Vec<u8>) {
        if byte == b'"' && !escaped {
            self.state = State::Between;
            return self.give_held(is_key, out);
        }
        self.held.push(byte);
        let escaped = byte == b'\\' && !escaped;
        self.state = State::Held { escaped, is_key };
        if self.held.len() > LONGEST {
            out.push(b'"');
            out.append(&mut self.held);
            if is_key && let Some(level) = self.levels.last_mut() {
                level.key.clear();
            }
            self.state = State::Through { escaped };
        }
    }

    fn give_held(&mut self, is_key: bool, out: &mut Vec<u8>) {
        let mut raw = vec![b'"'];
        raw.append(&mut self.held);
        raw.push(b'"');
        let text: Option<String> = serde_json::from_slice(&raw).ok();
        if is_key {
            if let Some(level) = self.levels.last_mut() {
                level.key = text.unwrap_or_default();
            }
        } else if let Some(led) = text.and_then(|text| self.links.lead(&text))
            && let Ok(written) = serde_json::to_vec(&led)
        {
            raw = written;
        }
        out.append(&mut raw);
    }
}
