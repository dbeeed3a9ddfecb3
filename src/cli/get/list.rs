//! What to download: from the command line, from standard input, or asked for.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::cli::{Exit, Failure, GetArgs, output};
use crate::digest::Stated;
use crate::http::Target;

/// One thing to download.
#[derive(Debug, Clone)]
pub(super) struct Thing {
    pub(super) target: Target,
    pub(super) stated: Option<Stated>,
    /// `user:password` of the URL, for the host it names and no other.
    pub(super) credentials: Option<Credentials>,
}

/// What stood before the `@` of a URL; never printed.
#[derive(Clone)]
pub(super) struct Credentials(String);

impl Credentials {
    /// The value of `Authorization` (RFC 7617).
    pub(super) fn basic(&self) -> String {
        format!("Basic {}", BASE64.encode(&self.0))
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// Reads `[DIGEST@]URL`: a digest is only what stands before the first `@` and is one.
pub(super) fn parse(text: &str, otherwise: Option<&Stated>) -> Result<Thing, Failure> {
    let (stated, url) = match text.split_once('@').map(|(digest, url)| (Stated::parse(digest), url)) {
        Some((Ok(stated), url)) => (Some(stated), url),
        Some((Err(_), _)) | None => (otherwise.copied(), text),
    };
    let (credentials, url) = split_credentials(url);
    let wrong = |why: String| {
        Failure::new(Exit::Usage, format!("cannot download `{}`: {why}", without_query(&url)))
            .hint("write http://host/path or https://host/path, with DIGEST@ before it if you know it")
    };
    let uri = url.parse().map_err(|_ignored| wrong("this is no URL".to_owned()))?;
    let target = Target::from_uri(&uri).map_err(|error| wrong(error.to_string()))?;
    Ok(Thing { target, stated, credentials })
}

/// Takes `user:password@` out of a URL: it belongs into a field, not into a target.
fn split_credentials(url: &str) -> (Option<Credentials>, String) {
    let Some((scheme, rest)) = url.split_once("://") else { return (None, url.to_owned()) };
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    match authority.rsplit_once('@') {
        Some((user, host)) => (Some(Credentials(unescape(user))), format!("{scheme}://{host}{path}")),
        None => (None, url.to_owned()),
    }
}

/// Percent-decoding (RFC 3986 section 2.1); what is no escape stays.
fn unescape(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let byte = after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        rest = if byte.is_some() { after.get(2..).unwrap_or("") } else { after };
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// All things the arguments name.
pub(super) fn things(args: &GetArgs) -> Result<Vec<Thing>, Failure> {
    let mut lines = args.urls.clone();
    if lines.is_empty() || args.mget.prompt {
        if !std::io::stdin().is_terminal() && !args.mget.prompt {
            return Err(Failure::new(Exit::Usage, "no URL given")
                .hint("name one, or `-` to read them from standard input"));
        }
        output::note("URLs, one a line; an empty line ends:");
        lines.extend(read(true)?);
    } else if lines == ["-"] {
        lines = read(false)?;
    }
    if lines.is_empty() {
        return Err(Failure::new(Exit::Usage, "no URL given"));
    }
    lines.iter().map(|line| parse(line, args.digest.as_ref())).collect()
}

fn read(until_empty: bool) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line =
            line.map_err(|error| Failure::new(Exit::Failed, format!("cannot read standard input: {error}")))?;
        let line = line.trim();
        if line.is_empty() && until_empty {
            break;
        }
        if !line.is_empty() && !line.starts_with('#') {
            lines.push(line.to_owned());
        }
    }
    Ok(lines)
}

/// The file a thing goes to.
pub(super) fn file(args: &GetArgs, thing: &Thing) -> Option<PathBuf> {
    match &args.output {
        Some(output) if output.as_os_str() == "-" => None,
        Some(output) => Some(output.clone()),
        None => Some(args.folder.clone().unwrap_or_default().join(name(&thing.target))),
    }
}

/// Where a download ends up.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// A file that gets its name when it is whole.
    File(PathBuf),
    /// Something that is there and no regular file (a device, a pipe): written to once all is right.
    Existing(PathBuf),
    /// Standard output.
    Output,
}

impl Place {
    /// A link is followed to what it names: it stays a link.
    pub(super) fn of(file: Option<PathBuf>) -> Self {
        let Some(file) = file else { return Self::Output };
        match std::fs::metadata(&file) {
            Ok(meta) if !meta.is_file() => Self::Existing(file),
            Ok(_) => Self::File(std::fs::canonicalize(&file).unwrap_or(file)),
            Err(_) => Self::File(file),
        }
    }
}

/// The last part of the path; never one that leads out of the folder.
pub(super) fn name(target: &Target) -> String {
    let path = target.path().split('?').next().unwrap_or("");
    let last = path.rsplit('/').next().unwrap_or("");
    let name: String = last.chars().filter(|c| !c.is_control() && !"\\:".contains(*c)).collect();
    if name.is_empty() || name == "." || name == ".." { "index.html".to_owned() } else { name }
}

fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_only_what_is_one() {
        let hex = "ab".repeat(32);
        let thing = parse(&format!("{hex}@https://h/p@q"), None).unwrap();
        assert_eq!((thing.target.url().as_str(), thing.stated.is_some()), ("https://h/p@q", true));
        let thing = parse("http://h/p@q", None).unwrap();
        assert!(thing.stated.is_none());
        let thing = parse(&format!("md5:{}@http://h/", "0".repeat(32)), None).unwrap();
        assert_eq!(thing.stated.unwrap().algorithm().name(), "md5");
        for wrong in ["", "h/p", "ftp://h/", "zz@http://h/"] {
            assert!(parse(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn credentials_leave_the_url_and_are_never_shown() {
        let thing = parse("http://us%40er:pa%zz@h:81/p@q?x=@", None).unwrap();
        assert_eq!(thing.target.url(), "http://h:81/p@q?x=@");
        assert_eq!(thing.credentials.as_ref().unwrap().0, "us@er:pa%zz");
        assert!(!format!("{thing:?}").contains("pa"));
        assert!(parse("http://h/a@b", None).unwrap().credentials.is_none());
    }

    #[test]
    fn names_stay_in_the_folder() {
        let name = |url: &str| name(&parse(url, None).unwrap().target);
        assert_eq!(name("http://h/a/b.iso?x=/y"), "b.iso");
        assert_eq!(name("http://h/a/"), "index.html");
        assert_eq!(name("http://h/a/.."), "index.html");
    }
}
