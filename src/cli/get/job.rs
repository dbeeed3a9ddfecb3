//! One download from its first request to its last byte.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::fetched::{self, Ticket};
use super::list::{self, Place, Thing};
use super::part::{self, Part};
use super::progress::{Bars, Progress};
use super::way::Way;
use super::{Done, seconds_since, sums};
use crate::cli::{Exit, Failure, GetArgs};
use crate::digest::{Stated, hex};
use crate::http::{Scheme, Target};
use crate::net::throttle::Throttle;
use crate::range::ContentRange;

/// How often a download that broke off goes on.
const TRIES: u32 = 6;
/// The largest checksum file that is read.
const SUMS: usize = 4 * 1024 * 1024;

/// What all downloads of one command share.
pub(super) struct Getter {
    way: Way,
    throttle: Throttle,
    stated: Option<String>,
    bars: Bars,
}

/// Why one try ended.
enum Trouble {
    /// Another try may help.
    Passing(String),
    /// What is here so far is the beginning of something wrong: another try, from the start.
    Wrong(String),
    /// Nothing will.
    Final(Failure),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Final(Failure::new(Exit::Failed, format!("cannot write the file: {error}")))
    }
}

impl Getter {
    pub(super) async fn open(args: &GetArgs, things: &[Thing], bars: Bars) -> Result<Self, Failure> {
        let first = things.first().ok_or_else(|| Failure::new(Exit::Usage, "no URL given"))?;
        let way = Way::open(&args.node, &first.target, &args.mget).await?;
        let mut getter =
            Self { way, throttle: Throttle::new(args.limit_rate.unwrap_or_default()), stated: None, bars };
        if let Some(url) = &args.digest_from {
            getter.stated = Some(getter.read_sums(url).await?);
        }
        Ok(getter)
    }

    pub(super) async fn close(self) {
        self.way.close().await;
    }

    pub(super) async fn get(&self, args: &GetArgs, thing: Thing, started: Instant) -> Result<Done, Failure> {
        let stated = match &self.stated {
            Some(text) => Some(self.sum_of(text, &thing)?),
            None => thing.stated,
        };
        let file = list::file(args, &thing);
        let name = file.as_ref().map_or_else(|| "-".to_owned(), |file| file.display().to_string());
        let place = Place::of(file);
        if let (Place::File(file), Some(stated)) = (&place, &stated)
            && let Some((size, sha256)) = tokio::task::block_in_place(|| part::is_there(file, stated))
        {
            let sha256 = sha256.hex();
            return Ok(Done {
                url: thing.target.shown(),
                file: name,
                size,
                sha256,
                source: "the file itself".to_owned(),
                seconds: 0.0,
            });
        }
        let is_temporary = !matches!(place, Place::File(_));
        let staged = match &place {
            Place::File(file) => file.clone(),
            Place::Existing(_) | Place::Output => temporary()?,
        };
        make_folder(&staged)?;
        let _passing = is_temporary.then(|| part::Passing(staged.clone()));
        let anew = args.no_resume || is_temporary;
        let mut part = self.open_part(&staged, &thing.target, stated, anew)?;
        let progress = self.bars.bar(&name);
        let source = self.download(args, &thing, stated.as_ref(), &mut part, &progress).await;
        progress.end();
        let source = match source {
            Ok(source) => source,
            Err(failure) => return Err(give_up(part, failure)),
        };
        let (size, sha256) = (part.length(), part.sha256().hex());
        let placed = match &place {
            Place::File(file) => part.finish(file),
            Place::Existing(file) => OpenOptions::new().write(true).open(file).and_then(|to| part.pour(to)),
            Place::Output => part.pour(std::io::stdout().lock()),
        };
        placed.map_err(|error| Failure::new(Exit::Failed, format!("cannot write {name}: {error}")))?;
        Ok(Done {
            url: thing.target.shown(),
            file: name,
            size,
            sha256,
            source,
            seconds: seconds_since(started),
        })
    }

    fn open_part(
        &self,
        place: &Path,
        target: &Target,
        stated: Option<Stated>,
        anew: bool,
    ) -> Result<Part, Failure> {
        let open = || Part::open(place, &target.url(), stated, anew);
        // what is there is hashed first
        tokio::task::block_in_place(open).map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot open {}.part: {error}", place.display()))
                .hint("choose another place with -o or -O")
        })
    }

    async fn download(
        &self,
        args: &GetArgs,
        thing: &Thing,
        stated: Option<&Stated>,
        part: &mut Part,
        progress: &Progress,
    ) -> Result<String, Failure> {
        let (mut tries, mut why, mut was_wrong) = (0, String::new(), false);
        while tries < TRIES {
            let before = part.length();
            match self.try_once(args, thing, stated, part, progress).await {
                Ok(source) if part.is_right() => return Ok(source),
                Ok(_) if before > 0 => {
                    part.restart().map_err(|error| Failure::new(Exit::Failed, error.to_string()))?
                }
                Ok(_) => return Err(self.mismatch(part, stated)),
                Err(Trouble::Final(failure)) => return Err(failure),
                Err(Trouble::Passing(trouble)) => why = trouble,
                // once is a bad source; twice is the thing itself
                Err(Trouble::Wrong(_)) if was_wrong => return Err(self.mismatch(part, stated)),
                Err(Trouble::Wrong(trouble)) => {
                    (was_wrong, why) = (true, trouble);
                    part.restart().map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
                }
            }
            tries = if part.length() > before { 1 } else { tries + 1 };
            tokio::time::sleep(Duration::from_millis(200 << tries.min(4))).await;
        }
        Err(Failure::new(Exit::Network, format!("cannot download {}: {why}", thing.target))
            .hint("run the same command again to go on"))
    }

    fn mismatch(&self, part: &mut Part, stated: Option<&Stated>) -> Failure {
        let found = part.sha256();
        // wrong bytes are no beginning of right ones
        let kept = part
            .restart()
            .err()
            .map_or_else(String::new, |error| format!(" (and the partial file stays: {error})"));
        let wanted = stated.map_or_else(String::new, ToString::to_string);
        Failure::new(
            Exit::Mismatch,
            format!("the download has not the digest {wanted}: its SHA-256 is {}{kept}", found.hex()),
        )
        .hint("check the digest with whoever published it")
    }

    async fn try_once(
        &self,
        args: &GetArgs,
        thing: &Thing,
        stated: Option<&Stated>,
        part: &mut Part,
        progress: &Progress,
    ) -> Result<String, Trouble> {
        let target = &thing.target;
        let mut fields = fields(args, stated);
        if part.is_resumable() {
            insert(&mut fields, header::RANGE, &format!("bytes={}-", part.length()));
            if let Some(tag) = part.tag() {
                insert(&mut fields, header::IF_RANGE, tag);
            }
        } else if part.length() > 0 {
            part.restart()?;
        }
        // a file cannot be held to a rate, nor be the rest of another one
        let may_be_file = self.way.is_daemon() && part.length() == 0 && args.limit_rate.is_none();
        if may_be_file {
            insert(&mut fields, HeaderName::from_static(fetched::FIELD), "yes");
        }
        let mut response = self.follow(thing, fields.clone()).await?;
        if let Some(ticket) = Ticket::of(&response) {
            match self.place(&ticket, &response, part, progress).await {
                Ok(source) => return Ok(source),
                Err(error) => tracing::debug!(%error, "a file cannot be fetched: asked for its bytes"),
            }
            part.restart()?;
            fields.remove(fetched::FIELD);
            response = self.follow(thing, fields).await?;
        }
        match response.status() {
            StatusCode::OK => part.restart()?,
            StatusCode::PARTIAL_CONTENT if goes_on(&response, part) => {}
            StatusCode::PARTIAL_CONTENT => {
                part.restart()?;
                return Err(Trouble::Passing(
                    "the answer does not go on where the partial file ends".to_owned(),
                ));
            }
            StatusCode::RANGE_NOT_SATISFIABLE if part.length() > 0 => {
                return self.maybe_whole(part, stated, &response);
            }
            status => return Err(refusal(status, target, response).await),
        }
        let tag = text(&response, header::ETAG).filter(|tag| tag.starts_with('"'));
        part.note(tag.as_deref())?;
        let left = text(&response, header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        let source = source(&response);
        progress.begin(part.length(), left.map(|left| left + part.length()), &source);
        self.receive(response, part, progress).await?;
        Ok(source)
    }

    /// Takes the daemon's file in the place of its bytes.
    async fn place(
        &self,
        ticket: &Ticket,
        response: &Response<Incoming>,
        part: &mut Part,
        progress: &Progress,
    ) -> std::io::Result<String> {
        let file = tokio::task::block_in_place(|| ticket.fetch())?;
        let tag = text(response, header::ETAG).filter(|tag| tag.starts_with('"'));
        part.note(tag.as_deref())?;
        let source = source(response);
        progress.begin(0, Some(ticket.size), &source);
        let mut placing = part.place(file)?;
        while let Some(placed) = tokio::task::block_in_place(|| placing.step(part))? {
            progress.advance(placed);
            // others go on, and a wish to stop is heard
            tokio::task::yield_now().await;
        }
        let named = text(response, HeaderName::from_static("repr-digest"));
        if part.length() != ticket.size || named.is_some_and(|named| named != part.sha256().repr_digest()) {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                "the file is not what it should be",
            ));
        }
        Ok(source)
    }

    async fn receive(
        &self,
        response: Response<Incoming>,
        part: &mut Part,
        progress: &Progress,
    ) -> Result<(), Trouble> {
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| Trouble::Passing(format!("the download broke off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            self.throttle.take(data.len()).await;
            progress.advance(data.len() as u64);
            tokio::task::block_in_place(|| part.append(&data))?;
        }
        Ok(())
    }

    /// What is there may be the whole already.
    fn maybe_whole(
        &self,
        part: &mut Part,
        stated: Option<&Stated>,
        response: &Response<Incoming>,
    ) -> Result<String, Trouble> {
        let size = text(response, header::CONTENT_RANGE)
            .and_then(|range| range.strip_prefix("bytes */")?.parse::<u64>().ok());
        if size == Some(part.length()) && (stated.is_some() || part.tag().is_some()) {
            return Ok("the partial file".to_owned());
        }
        part.restart()?;
        Err(Trouble::Passing("the partial file is not of this download".to_owned()))
    }

    /// Follows redirects; what names the user goes to the origin that the URL names and to no other.
    async fn follow(&self, thing: &Thing, fields: HeaderMap) -> Result<Response<Incoming>, Trouble> {
        let mut target = thing.target.clone();
        for _ in 0..=self.way.redirects() {
            let mut fields = fields.clone();
            if let Some(credentials) =
                thing.credentials.as_ref().filter(|_| target.origin() == thing.target.origin())
            {
                insert(&mut fields, header::AUTHORIZATION, &credentials.basic());
            }
            let response = self.way.get(&target, fields).await.map_err(Trouble::Passing)?;
            let location = text(&response, header::LOCATION).filter(|_| response.status().is_redirection());
            let Some(location) = location else { return Ok(response) };
            // the prefix door leads back to itself
            let by_prefix = target.scheme() == Scheme::Https;
            let location = if by_prefix && (location.starts_with("/https/") || location.starts_with("/http/"))
            {
                location.replacen("/https/", "https://", 1).replacen("/http/", "http://", 1)
            } else {
                location
            };
            target = target.join(&location).map_err(|error| {
                Trouble::Final(Failure::new(Exit::Network, format!("a redirect leads nowhere: {error}")))
            })?;
        }
        Err(Trouble::Final(Failure::new(Exit::Network, "too many redirects")))
    }

    async fn read_sums(&self, url: &str) -> Result<String, Failure> {
        let thing = list::parse(url, None)?;
        let failed = |why: String| {
            Failure::new(Exit::Network, format!("cannot read the digest from {}: {why}", thing.target))
        };
        let response = match self.follow(&thing, HeaderMap::new()).await {
            Ok(response) if response.status() == StatusCode::OK => response,
            Ok(response) => return Err(failed(response.status().to_string())),
            Err(Trouble::Passing(why) | Trouble::Wrong(why)) => return Err(failed(why)),
            Err(Trouble::Final(failure)) => return Err(failure),
        };
        let bytes = read(response, SUMS).await.map_err(failed)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn sum_of(&self, text: &str, thing: &Thing) -> Result<Stated, Failure> {
        let name = list::name(&thing.target);
        sums::find(text, &name).ok_or_else(|| {
            Failure::new(Exit::Failed, format!("the checksum file says nothing of {name}"))
                .hint("give the digest with --digest")
        })
    }
}

fn fields(args: &GetArgs, stated: Option<&Stated>) -> HeaderMap {
    let mut fields = HeaderMap::new();
    insert(&mut fields, header::USER_AGENT, concat!("larder/", env!("CARGO_PKG_VERSION")));
    insert(&mut fields, header::ACCEPT, "*/*");
    if let Some(digest) = stated {
        insert(&mut fields, HeaderName::from_static("larder-digest"), &digest.to_string());
    }
    if args.no_peers {
        insert(&mut fields, HeaderName::from_static("larder-peers"), "no");
    }
    fields
}

fn insert(fields: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        fields.insert(name, value);
    }
}

fn text(response: &Response<Incoming>, name: HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// Whose bytes they are, from `Cache-Status`.
fn source(response: &Response<Incoming>) -> String {
    let status = text(response, HeaderName::from_static("cache-status")).unwrap_or_default();
    if status.contains("; hit") || status.contains("fwd-status=304") {
        return "cache".to_owned();
    }
    let detail = status.split("detail=\"").nth(1).and_then(|rest| rest.split('"').next());
    detail.unwrap_or("origin").to_owned()
}

/// Whether a partial answer begins where the part ends and is of the same version.
fn goes_on(response: &Response<Incoming>, part: &Part) -> bool {
    let range = text(response, header::CONTENT_RANGE).and_then(|field| ContentRange::parse(&field));
    let tag = text(response, header::ETAG);
    let same = part.tag().is_none() || tag.is_none() || tag.as_deref() == part.tag();
    let ends = |range: &ContentRange| range.size.is_none_or(|size| range.bytes.end == size);
    part.length() > 0 && same && range.is_some_and(|range| range.bytes.start == part.length() && ends(&range))
}

async fn refusal(status: StatusCode, target: &Target, response: Response<Incoming>) -> Trouble {
    let problem = read(response, 64 * 1024).await.unwrap_or_default();
    let problem: serde_json::Value = serde_json::from_slice(&problem).unwrap_or_default();
    let of = |name: &str| problem.get(name).and_then(|value| value.as_str()).unwrap_or("").to_owned();
    let what = if of("detail").is_empty() { status.to_string() } else { of("detail") };
    let failure = |exit| Failure::new(exit, format!("cannot download {target}: {what}")).hint(of("hint"));
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Trouble::Final(failure(Exit::NotFound)),
        _ if of("type").ends_with("digest-mismatch") => Trouble::Final(failure(Exit::Mismatch)),
        // an earlier try of ours was cut because its bytes were wrong
        _ if of("type").ends_with(":cut") => Trouble::Wrong(what),
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Trouble::Passing(what)
        }
        _ => Trouble::Final(failure(Exit::Network)),
    }
}

async fn read(response: Response<Incoming>, most: usize) -> Result<Bytes, String> {
    let limited = http_body_util::Limited::new(response.into_body(), most);
    limited.collect().await.map(http_body_util::Collected::to_bytes).map_err(|error| error.to_string())
}

/// A file of which nothing came, or that nobody could find again, is no beginning of anything.
fn give_up(part: Part, failure: Failure) -> Failure {
    if part.length() == 0
        && let Err(error) = part.discard()
    {
        tracing::debug!(%error, "an empty partial file stays");
    }
    failure
}

fn make_folder(file: &Path) -> Result<(), Failure> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot make {}: {error}", folder.display())))
}

/// A name that nobody can have guessed: the folder is everybody's.
fn temporary() -> Result<PathBuf, Failure> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    Ok(std::env::temp_dir().join(format!("larder-get-{}", hex(&random))))
}
