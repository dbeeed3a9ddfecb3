//! `larder import`: giving bundles and plain files to the daemon, which hashes everything.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};

use super::Listed;
use super::unpack::{UnpackError, Unpacked, unpack};
use crate::admin::{ImportedView, StoredView};
use crate::cli::admin_client::AdminClient;
use crate::cli::args::ImportArgs;
use crate::cli::{ConfigFile, Exit, Failure, Output, output};
use crate::digest::{Digest, Hasher};
use crate::unit::ByteSize;

/// Answers given at once.
const ROWS: usize = 200;

/// What an import did.
#[derive(Debug, Default)]
struct Done {
    stored: u64,
    bytes: u64,
    there_already: u64,
    answers: u64,
    /// Blobs that the daemon refused, and why.
    refused: Vec<(Digest, String)>,
    /// Blobs that the manifest promised and the file has not.
    missing: Vec<Digest>,
    /// Where a bundle is cut, if it is.
    cut: Option<String>,
}

pub(in crate::cli) fn import(node: &ConfigFile, args: &ImportArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut done = Done::default();
    for file in &args.files {
        one(&client, file, &mut done)?;
    }
    say(args, &done)?;
    Ok(match (done.refused.is_empty(), done.missing.is_empty() && done.cut.is_none()) {
        (true, true) => Exit::Done,
        (true, false) => Exit::Failed,
        (false, _) => Exit::Mismatch,
    })
}

fn one(client: &AdminClient, path: &PathBuf, done: &mut Done) -> Result<(), Failure> {
    let unreadable =
        |error: io::Error| Failure::new(Exit::Failed, format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(Failure::new(Exit::Failed, format!("{} is no file", path.display())));
    }
    let told = unpack(&file, &mut |listed, from| give(client, listed, from, done));
    match told {
        Ok(Some(told)) => rest(client, path, told, done),
        Ok(None) => plain(client, path, done),
        Err(UnpackError::Unreadable(error)) => Err(unreadable(error)),
        Err(UnpackError::Taker(failure)) => Err(failure),
        Err(too_new @ UnpackError::TooNew(_)) => {
            Err(Failure::new(Exit::Failed, format!("cannot read {}: {too_new}", path.display()))
                .hint("upgrade this one"))
        }
    }
}

/// What is left to do when a bundle's blobs are taken.
fn rest(client: &AdminClient, path: &Path, told: Unpacked, done: &mut Done) -> Result<(), Failure> {
    for name in &told.unlisted {
        output::warn(&format!("{}: `{name}` is not in its manifest, passed over", path.display()), "");
    }
    let misfits = told.misfits.into_iter();
    done.refused.extend(misfits.map(|digest| (digest, "another size than the manifest says".to_owned())));
    done.missing.extend(told.missing);
    done.cut = told.cut.map(|cut| format!("{}: {cut}", path.display())).or_else(|| done.cut.take());
    // answers come last: what they name is there then
    for some in told.answers.chunks(ROWS) {
        let view: ImportedView =
            client.call(Method::POST, "/api/v1/imports", Some(&json!({ "resources": some })))?;
        done.answers = done.answers.saturating_add(view.answers);
    }
    Ok(())
}

/// A file as one blob.
fn plain(client: &AdminClient, path: &Path, done: &mut Done) -> Result<(), Failure> {
    let unreadable =
        |error: io::Error| Failure::new(Exit::Failed, format!("cannot read {}: {error}", path.display()));
    let mut hasher = Hasher::new();
    let (mut file, mut piece) = (File::open(path).map_err(unreadable)?, vec![0; 256 * 1024]);
    loop {
        let read = file.read(&mut piece).map_err(unreadable)?;
        match piece.get(..read) {
            Some(bytes) if read > 0 => hasher.update(bytes),
            _ => break,
        }
    }
    let listed = Listed { size: hasher.length(), digest: hasher.finish() };
    let mut file = File::open(path).map_err(unreadable)?;
    give(client, &listed, &mut file, done).map(drop)
}

/// Gives one blob; false if the source ended early.
fn give(
    client: &AdminClient,
    listed: &Listed,
    from: &mut dyn Read,
    done: &mut Done,
) -> Result<bool, Failure> {
    let path = format!("/api/v1/blobs/{}", listed.digest);
    match client.get::<Value>(&format!("{path}?select=size")) {
        Ok(_) => {
            done.there_already += 1;
            return Ok(true);
        }
        Err(failure) if failure.exit == Exit::NotFound => {}
        Err(failure) => return Err(failure),
    }
    let mut counted = Counted { from, read: 0 };
    match client.put::<StoredView>(&format!("{path}/content"), listed.size, &mut counted) {
        Ok(view) => {
            done.stored += 1;
            done.bytes = done.bytes.saturating_add(view.size);
            Ok(true)
        }
        Err(_) if counted.read < listed.size && counted.from.read(&mut [0]).is_ok_and(|read| read == 0) => {
            Ok(false)
        }
        Err(failure) if failure.exit == Exit::Mismatch => {
            done.refused.push((listed.digest, failure.sentence()));
            Ok(true)
        }
        Err(failure) => Err(failure),
    }
}

struct Counted<'r> {
    from: &'r mut dyn Read,
    read: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.read = self.read.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(read)
    }
}

fn say(args: &ImportArgs, done: &Done) -> Result<(), Failure> {
    let mut out = Output::new();
    if args.json {
        let refused: Vec<_> =
            done.refused.iter().map(|(digest, why)| json!({"digest": digest, "why": why})).collect();
        return out.json(&json!({
            "stored": done.stored, "bytes": done.bytes, "there_already": done.there_already,
            "answers": done.answers, "refused": refused, "missing": done.missing, "cut": done.cut,
        }));
    }
    out.line(format!(
        "{} blobs stored, {}; {} were there already; {} answers",
        done.stored,
        ByteSize(done.bytes),
        done.there_already,
        done.answers
    ))?;
    for (digest, why) in &done.refused {
        out.line(format!("{digest}: refused: {why}"))?;
    }
    if let Some(cut) = &done.cut {
        output::warn(cut, "what came before is stored; import the whole file for the rest");
    }
    if !done.missing.is_empty() {
        output::warn(&format!("{} blobs of the manifest are not in it", done.missing.len()), "");
    }
    Ok(())
}
