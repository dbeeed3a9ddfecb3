//! What the fault origin does for one path: a value that reads as a sentence, or the query of a URL.

use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::body;

/// How a version of a file is named by its validators.
#[derive(Clone, Debug, PartialEq)]
pub enum Etag {
    /// `"seed-size"`.
    Derived,
    /// This field value, quotes and all.
    Is(String),
    /// Another one with every answer.
    Random,
    /// No field.
    None,
}

/// What becomes of a `Range` field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ranges {
    /// 206 as RFC 9110 says.
    Honoured,
    /// 200 with the whole body.
    Ignored,
    /// 206, but 200 as soon as there is an `If-Range`.
    WithoutIfRange,
}

/// How the end of the body is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Framing {
    /// `Content-Length`, off by this much.
    Length(i64),
    /// Chunks of changing size; `finished` says whether the last one comes.
    Chunked {
        /// The zero chunk is sent.
        finished: bool,
    },
    /// Nothing: the connection closes.
    Close,
}

/// A connection that breaks in the middle of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// After so many body bytes of one answer.
    pub at: u64,
    /// So often; for ever when `None`.
    pub times: Option<u32>,
    /// By RST, else by FIN.
    pub reset: bool,
}

/// The behaviour of one path.
#[derive(Clone, Debug)]
pub struct Script {
    pub size: u64,
    pub seed: u64,
    pub status: u16,
    pub etag: Etag,
    pub last_modified: Option<String>,
    pub cache_control: Option<String>,
    pub ranges: Ranges,
    pub framing: Framing,
    pub cut: Option<Cut>,
    pub delay: Duration,
    pub burst: Option<(u64, Duration)>,
    pub hold: Option<u64>,
    pub fields: Vec<(String, String)>,
    pub not_modified_fields: Vec<(String, String)>,
    pub location: Option<String>,
    pub signs: bool,
    pub signed: bool,
    pub cookie: bool,
    pub authorization: Option<String>,
    pub negotiates: bool,
    pub echo: bool,
    pub hang_up: bool,
    pub raw: Option<Vec<u8>>,
    /// What the body is, where it is not made from the seed: as it is, and packed with gzip.
    pub content: Option<[Arc<[u8]>; 2]>,
}

impl Script {
    /// A well-behaved file: strong validator, an hour of freshness, ranges.
    pub fn new(size: u64) -> Self {
        Self {
            size,
            seed: 1,
            status: 200,
            etag: Etag::Derived,
            last_modified: None,
            cache_control: Some("max-age=3600".into()),
            ranges: Ranges::Honoured,
            framing: Framing::Length(0),
            cut: None,
            delay: Duration::ZERO,
            burst: None,
            hold: None,
            fields: Vec::new(),
            not_modified_fields: Vec::new(),
            location: None,
            signs: false,
            signed: false,
            cookie: false,
            authorization: None,
            negotiates: false,
            echo: false,
            hang_up: false,
            raw: None,
            content: None,
        }
    }

    /// A document: these bytes, of this media type.
    pub fn of(kind: &str, content: impl AsRef<[u8]>) -> Self {
        let content = content.as_ref();
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(content).unwrap();
        let packed = packer.finish().unwrap();
        let tag = format!("\"{}\"", &body::sha256(content)[..16]);
        let size = content.len() as u64;
        Self { content: Some([content.into(), packed.into()]), ..Self::new(size) }
            .etag(&tag)
            .field("Content-Type", kind)
    }

    /// The answer is exactly these bytes, then the connection closes.
    pub fn raw(answer: &[u8]) -> Self {
        Self { raw: Some(answer.to_vec()), ..Self::new(0) }
    }

    /// A redirect to this target.
    pub fn redirect(location: &str) -> Self {
        Self { status: 302, location: Some(location.into()), cache_control: None, ..Self::new(0) }
    }

    /// Answers with the request as it was seen: target line and fields.
    pub fn echo() -> Self {
        Self { echo: true, etag: Etag::None, cache_control: Some("no-store".into()), ..Self::new(0) }
    }

    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub fn etag(mut self, value: &str) -> Self {
        self.etag = Etag::Is(value.into());
        self
    }

    pub fn random_etag(mut self) -> Self {
        self.etag = Etag::Random;
        self
    }

    pub fn no_etag(mut self) -> Self {
        self.etag = Etag::None;
        self
    }

    pub fn last_modified(mut self, date: &str) -> Self {
        self.last_modified = Some(date.into());
        self
    }

    pub fn cache_control(mut self, value: &str) -> Self {
        self.cache_control = Some(value.into());
        self
    }

    /// Stored, but older than its freshness from the first moment: no test waits for age.
    pub fn stale_at_once(self) -> Self {
        self.cache_control("max-age=60").field("Age", "61")
    }

    pub fn ranges(mut self, ranges: Ranges) -> Self {
        self.ranges = ranges;
        self
    }

    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Chunked to the end.
    pub fn chunked(self) -> Self {
        self.framing(Framing::Chunked { finished: true })
    }

    /// The next answer breaks after `at` body bytes by FIN, the ones after it are whole.
    pub fn cut_once(mut self, at: u64) -> Self {
        self.cut = Some(Cut { at, times: Some(1), reset: false });
        self
    }

    /// Every answer breaks after `at` body bytes by FIN.
    pub fn cut_always(mut self, at: u64) -> Self {
        self.cut = Some(Cut { at, times: None, reset: false });
        self
    }

    /// The cut is an RST.
    pub fn by_reset(mut self) -> Self {
        if let Some(cut) = &mut self.cut {
            cut.reset = true;
        }
        self
    }

    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// A pause after every `bytes` of body.
    pub fn bursts(mut self, bytes: u64, pause: Duration) -> Self {
        self.burst = Some((bytes, pause));
        self
    }

    /// Bytes a second.
    pub fn rate(self, bytes_per_second: u64) -> Self {
        self.bursts((bytes_per_second / 50).max(1), Duration::from_millis(20))
    }

    /// The body stops at this offset of the file until `Origin::release`.
    pub fn hold_at(mut self, offset: u64) -> Self {
        self.hold = Some(offset);
        self
    }

    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// A field that only a 304 carries.
    pub fn not_modified_field(mut self, name: &str, value: &str) -> Self {
        self.not_modified_fields.push((name.into(), value.into()));
        self
    }

    /// A redirect to `target?sig=N` with a new N each time.
    pub fn redirect_signed(target: &str) -> Self {
        Self { signs: true, ..Self::redirect(target) }
    }

    /// Wants a signature that `Origin::expire_links` has not ended; 403 else.
    pub fn signed(mut self) -> Self {
        self.signed = true;
        self
    }

    /// `Set-Cookie: sid=N`, counting.
    pub fn cookie(mut self) -> Self {
        self.cookie = true;
        self
    }

    /// Wants this `Authorization`, or one of several with `|` between them; 401 else.
    pub fn authorization(mut self, value: &str) -> Self {
        self.authorization = Some(value.into());
        self
    }

    /// `Vary: Accept-Encoding`, and another body (seed + 1) for those who accept gzip.
    pub fn negotiates(mut self) -> Self {
        self.negotiates = true;
        self
    }

    /// Closes the connection after each answer without saying so.
    pub fn hangs_up(mut self) -> Self {
        self.hang_up = true;
        self
    }

    /// The whole body.
    pub fn body(&self) -> Vec<u8> {
        self.slice(false, 0..self.size)
    }

    /// A part of the body, or of the body for those who accept gzip.
    pub fn slice(&self, gzip: bool, range: Range<u64>) -> Vec<u8> {
        match &self.content {
            Some([plain, packed]) => {
                let whole = if gzip { packed } else { plain };
                whole[range.start as usize..range.end as usize].to_vec()
            }
            None => body::slice(self.seed + u64::from(gzip), range),
        }
    }

    /// The body's digest, `sha256:<hex>`.
    pub fn digest(&self) -> String {
        format!("sha256:{}", body::sha256(&self.body()))
    }

    /// The value of `ETag` for this version.
    pub fn etag_value(&self) -> Option<String> {
        match &self.etag {
            Etag::Derived => Some(format!("\"{}-{}\"", self.seed, self.size)),
            Etag::Is(value) => Some(value.clone()),
            Etag::Random => Some(format!("\"{:?}\"", std::time::Instant::now())),
            Etag::None => None,
        }
    }

    /// The script that a query writes: `size=3000000&seed=7&norange&cut=5000&rst`.
    pub fn from_query(query: &str) -> Self {
        query.split('&').filter(|option| !option.is_empty()).fold(Self::new(0), |script, option| {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            script.with(key, value)
        })
    }

    fn with(self, key: &str, value: &str) -> Self {
        let number = || value.parse::<u64>().unwrap_or(0);
        match key {
            "size" => Self { size: number(), ..self },
            "seed" => self.seed(number()),
            "status" => self.status(number() as u16),
            "etag" if value == "random" => self.random_etag(),
            "etag" if value == "none" => self.no_etag(),
            "etag" => self.etag(&format!("{}\"{value}\"", if value.starts_with("weak") { "W/" } else { "" })),
            "lastmod" => self.last_modified(value),
            "maxage" => self.cache_control(&format!("max-age={value}")),
            "nostore" => self.cache_control("no-store"),
            "private" => self.cache_control("private, max-age=3600"),
            "norange" => self.ranges(Ranges::Ignored),
            "noifrange" => self.ranges(Ranges::WithoutIfRange),
            "cut" => self.cut_always(number()),
            "cutonce" => self.cut_once(number()),
            "rst" => self.by_reset(),
            "lie" => self.framing(Framing::Length(value.parse().unwrap_or(0))),
            "chunked" => self.chunked(),
            "nolast" => self.framing(Framing::Chunked { finished: false }),
            "nocl" => self.framing(Framing::Close),
            "gz" => self.field("Content-Encoding", "gzip"),
            "delay" => self.delay(Duration::from_millis(number())),
            "rate" => self.rate(number()),
            "stall" => self.hold_at(number()),
            "bulk" => self.field("X-Bulk", &"b".repeat(number() as usize)),
            "vary" => self.field("Vary", value),
            "cookie" => self.cookie(),
            "auth" => self.authorization(value),
            "negotiate" => self.negotiates(),
            "to" => Self { status: 302, location: Some(value.into()), ..self },
            "hangup" => self.hangs_up(),
            "echo" => Self { echo: true, ..self },
            _ => self,
        }
    }
}

#[test]
fn a_query_writes_the_same_script_as_the_words() {
    let written = Script::from_query("size=3000000&seed=7&norange&cut=5000&rst&maxage=9&unknown=1");
    assert_eq!((written.size, written.seed), (3_000_000, 7));
    assert_eq!(written.ranges, Ranges::Ignored);
    assert_eq!(written.cut, Some(Cut { at: 5000, times: None, reset: true }));
    assert_eq!(written.cache_control.as_deref(), Some("max-age=9"));
    assert_eq!(Script::from_query("etag=weak1").etag_value().as_deref(), Some("W/\"weak1\""));
    assert_eq!(Script::from_query("size=10").digest(), Script::new(10).digest());
}
