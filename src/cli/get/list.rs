//! What to download: from the command line, from standard input, or asked for.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use crate::cli::{Exit, Failure, GetArgs, output};
use crate::digest::Stated;
use crate::http::Target;

/// One thing to download.
#[derive(Debug, Clone)]
pub(super) struct Thing {
    pub(super) target: Target,
    pub(super) stated: Option<Stated>,
}

/// Reads `[DIGEST@]URL`: a digest is only what stands before the first `@` and is one.
pub(super) fn parse(text: &str, otherwise: Option<&Stated>) -> Result<Thing, Failure> {
    let (stated, url) = match text.split_once('@').map(|(digest, url)| (Stated::parse(digest), url)) {
        Some((Ok(stated), url)) => (Some(stated), url),
        Some((Err(_), _)) | None => (otherwise.cloned(), text),
    };
    let wrong = |why: String| {
        Failure::new(Exit::Usage, format!("cannot download `{}`: {why}", without_query(url)))
            .hint("write http://host/path or https://host/path, with DIGEST@ before it if you know it")
    };
    let uri = url.parse().map_err(|_ignored| wrong("this is no URL".to_owned()))?;
    let target = Target::from_uri(&uri).map_err(|error| wrong(error.to_string()))?;
    Ok(Thing { target, stated })
}

/// All things the arguments name.
pub(super) fn things(args: &GetArgs) -> Result<Vec<Thing>, Failure> {
    let mut lines = args.urls.clone();
    if lines.is_empty() {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::new(Exit::Usage, "no URL given")
                .hint("name one, or `-` to read them from standard input"));
        }
        output::note("URLs, one a line; an empty line ends:");
        lines = read(true)?;
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
        for wrong in ["", "h/p", "ftp://h/", "http://u:p@h/", "zz@http://h/"] {
            assert!(parse(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_stay_in_the_folder() {
        let name = |url: &str| name(&parse(url, None).unwrap().target);
        assert_eq!(name("http://h/a/b.iso?x=/y"), "b.iso");
        assert_eq!(name("http://h/a/"), "index.html");
        assert_eq!(name("http://h/a/.."), "index.html");
    }
}
