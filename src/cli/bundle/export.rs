//! `larder export`: writing a bundle, or going on with one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{FORMAT, Listed, MANIFEST, Manifest, VERSION};
use crate::cli::admin_client::AdminClient;
use crate::cli::args::{ExportArgs, LsArgs};
use crate::cli::{ConfigFile, Exit, Failure, Output, cache};
use crate::clock::{Clock as _, SystemClock};
use crate::config::{Environment, load};
use crate::digest::Digest;
use crate::store::blob_path;
use crate::unit::ByteSize;

/// Digests asked for at once.
const CHUNK: usize = 100;
/// The unit of a tar archive.
const BLOCK: u64 = 512;

pub(in crate::cli) fn export(node: &ConfigFile, args: &ExportArgs) -> Result<Exit, Failure> {
    let loaded = load(node.as_deref(), &Environment::of_process())?;
    let folder = loaded.config.cache.dir.clone();
    let part = beside(&args.output);
    if args.output.exists() {
        let what = format!("{} is there already", args.output.display());
        return Err(Failure::new(Exit::Failed, what).hint("name another file, or remove it"));
    }
    let (manifest, mut file, begun) = match resumed(&part).map_err(failed(&part))? {
        Some((manifest, file, whole)) => (manifest, file, whole),
        None => {
            let client = AdminClient::to(&loaded)?;
            let manifest = manifest(&client, args)?;
            let mut file = create(&part).map_err(failed(&part))?;
            write_manifest(&mut file, &manifest).map_err(failed(&part))?;
            (manifest, file, 0)
        }
    };
    let (mut bytes, mut gone) = (0_u64, Vec::new());
    for (at, listed) in manifest.blobs.iter().enumerate() {
        bytes = bytes.saturating_add(listed.size);
        if at < begun {
            continue;
        }
        if let Err(error) = append(&mut file, &folder, listed) {
            // evicted since the list was made: its place stays empty, which an import says
            if error.kind() != io::ErrorKind::NotFound {
                return Err(failed(&part)(error).hint("run the same command again to go on"));
            }
            bytes = bytes.saturating_sub(listed.size);
            gone.push(listed.digest);
        }
    }
    finish(file, &part, &args.output).map_err(failed(&args.output))?;
    say(args, &manifest, begun, bytes, &gone)
}

fn say(
    args: &ExportArgs,
    manifest: &Manifest,
    begun: usize,
    bytes: u64,
    gone: &[Digest],
) -> Result<Exit, Failure> {
    let blobs = manifest.blobs.len() - gone.len();
    let mut out = Output::new();
    if args.json {
        out.json(&json!({
            "file": args.output, "blobs": blobs, "bytes": bytes, "answers": manifest.resources.len(),
            "there_already": begun, "gone": gone,
        }))?;
    } else {
        out.line(format!(
            "{}: {blobs} blobs, {}, {} answers{}",
            args.output.display(),
            ByteSize(bytes),
            manifest.resources.len(),
            if begun > 0 { format!("; {begun} were there already") } else { String::new() }
        ))?;
        for digest in gone {
            out.line(format!("{digest}: removed from the cache meanwhile, left out"))?;
        }
    }
    Ok(Exit::Done)
}

/// What is to be written: what the filter finds, but nothing that only certain users may have.
fn manifest(client: &AdminClient, args: &ExportArgs) -> Result<Manifest, Failure> {
    let wanted =
        LsArgs { filter: args.filter.clone(), conditions: args.conditions.clone(), ..LsArgs::default() };
    let rows = cache::all_blobs(client, &wanted)?;
    let is_guarded = |row: &Value| row.get("guarded").and_then(Value::as_bool).unwrap_or(true);
    let blobs: Vec<Listed> = rows
        .into_iter()
        .filter(|row| !is_guarded(row))
        .filter_map(|row| serde_json::from_value(row).ok())
        .collect();
    if blobs.is_empty() {
        return Err(Failure::new(Exit::NotFound, "nothing that may leave is like that")
            .hint("`larder ls` with the same filter lists what is held; guarded blobs stay"));
    }
    let mut resources = Vec::new();
    for some in blobs.chunks(CHUNK) {
        let digests = some.iter().map(|listed| listed.digest.hex()).collect::<Vec<_>>().join(",");
        let path = format!("/api/v1/resources?shareable=is.true&digest=in.({digests})&limit=10000");
        resources.extend(client.get::<Vec<Value>>(&path)?);
    }
    let made_by = concat!("larder ", env!("CARGO_PKG_VERSION")).to_owned();
    let made_at = SystemClock.now().to_string();
    Ok(Manifest { format: FORMAT.to_owned(), version: VERSION, made_by, made_at, blobs, resources })
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn create(part: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(part)
}

/// The manifest of a part that is there, the file at the end of its last whole entry, and how many blobs it has.
fn resumed(part: &Path) -> io::Result<Option<(Manifest, File, usize)>> {
    let mut file = match OpenOptions::new().read(true).write(true).open(part) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let Some((manifest, mut end)) = read_manifest(&file) else {
        // cut before the manifest was whole: nothing is lost by beginning anew
        drop(file);
        std::fs::remove_file(part)?;
        return Ok(None);
    };
    let mut whole = 0;
    for listed in &manifest.blobs {
        let next = listed.size.checked_next_multiple_of(BLOCK).and_then(|size| size.checked_add(end + BLOCK));
        let Some(next) = next.filter(|next| *next <= length) else { break };
        if !is_entry(&mut file, end, listed)? {
            break;
        }
        (end, whole) = (next, whole + 1);
    }
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    Ok(Some((manifest, file, whole)))
}

fn read_manifest(file: &File) -> Option<(Manifest, u64)> {
    let mut archive = tar::Archive::new(file);
    let mut first = archive.entries().ok()?.next()?.ok()?;
    let manifest = super::unpack::manifest_of(&mut first).ok()??;
    let end = first.size().checked_next_multiple_of(BLOCK)?.checked_add(first.raw_file_position())?;
    (end <= file.metadata().ok()?.len()).then_some((manifest, end))
}

fn is_entry(file: &mut File, at: u64, listed: &Listed) -> io::Result<bool> {
    file.seek(SeekFrom::Start(at))?;
    let mut header = tar::Header::new_gnu();
    file.read_exact(header.as_mut_bytes())?;
    let named = header.path().is_ok_and(|path| path.as_os_str() == listed.name().as_str());
    Ok(named && header.entry_size().is_ok_and(|size| size == listed.size))
}

fn write_manifest(file: &mut File, manifest: &Manifest) -> io::Result<()> {
    let text = serde_json::to_vec(manifest).map_err(io::Error::other)?;
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    put(file, MANIFEST, length, text.as_slice())
}

fn append(file: &mut File, folder: &Path, listed: &Listed) -> io::Result<()> {
    let blob = File::open(blob_path(folder, &listed.digest))?;
    if blob.metadata()?.len() != listed.size {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has another size"));
    }
    put(file, &listed.name(), listed.size, blob)
}

/// One entry: its header, its bytes, and what fills its last block. Between two files the kernel copies.
fn put(file: &mut File, name: &str, size: u64, from: impl Read) -> io::Result<()> {
    let mut head = tar::Header::new_gnu();
    head.set_path(name)?;
    head.set_size(size);
    head.set_mode(0o644);
    head.set_cksum();
    file.write_all(head.as_bytes())?;
    let copied = io::copy(&mut from.take(size), file)?;
    if copied != size {
        return Err(io::Error::other("it changed while it was read"));
    }
    let padding = usize::try_from(copied.div_ceil(BLOCK) * BLOCK - copied).unwrap_or(0);
    file.write_all(&vec![0; padding])
}

/// Two empty blocks end an archive.
fn finish(mut file: File, part: &Path, to: &Path) -> io::Result<()> {
    file.write_all(&[0; 1024])?;
    file.sync_all()?;
    std::fs::rename(part, to)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.to_owned();
    move |error| {
        let failure = Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display()));
        if error.kind() == io::ErrorKind::PermissionDenied {
            failure.hint("the blobs belong to the daemon's user: run it as that user or as root")
        } else {
            failure
        }
    }
}
