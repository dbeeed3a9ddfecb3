//! `larder secret`: make the site's secret, and compare it between machines without showing it.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use serde_json::json;
use zeroize::Zeroizing;

use super::args::{SecretAction, SecretArgs};
use super::{ConfigFile, Exit, Failure, Output, output};
use crate::admin::hash_password;
use crate::config::{Environment, load, load_secrets};
use crate::seal::{Secret, SiteKeys};

/// A password has so many bytes.
const PASSWORD_LEAST: usize = 8;
const PASSWORD_MOST: usize = 1024;

pub(super) fn run(node: &ConfigFile, args: &SecretArgs) -> Result<Exit, Failure> {
    match &args.action {
        SecretAction::New { output: None, json } => say(*json, "secret", &generate()?)?,
        SecretAction::New { output: Some(file), json: true } => {
            write_new(file, &generate()?)?;
            Output::new().json(&json!({ "file": file }))?;
        }
        SecretAction::New { output: Some(file), json: false } => {
            write_new(file, &generate()?)?;
            Output::new().line(format!("{}: copy this file to every machine of the site", file.display()))?;
        }
        SecretAction::Password(args) => say(args.json, "hash", &password()?)?,
        SecretAction::Fingerprint(args) => fingerprint(node, args.json)?,
    }
    Ok(Exit::Done)
}

fn say(json: bool, name: &str, value: &str) -> Result<(), Failure> {
    if json { Output::new().json(&json!({ name: value })) } else { Output::new().line(value) }
}

fn generate() -> Result<String, Failure> {
    Secret::generate().map_err(|error| Failure::new(Exit::Failed, format!("cannot make a secret: {error}")))
}

/// The hash of the password on standard input, its line end left out.
fn password() -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, "the password would be seen while it is typed").hint(
            "write it to standard input: `systemd-ask-password | larder secret password`, or from a file",
        ));
    }
    let mut text = Zeroizing::new(String::new());
    let read = std::io::stdin().take(1026).read_to_string(&mut text);
    read.map_err(|error| Failure::new(Exit::Failed, format!("cannot read the password: {error}")))?;
    let password =
        text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if !(PASSWORD_LEAST..=PASSWORD_MOST).contains(&password.len()) {
        let what = format!("a password has {PASSWORD_LEAST} to {PASSWORD_MOST} bytes");
        return Err(Failure::new(Exit::Usage, what));
    }
    hash_password(password.as_bytes())
        .ok_or_else(|| Failure::new(Exit::Failed, "the system gives no random bytes for the hash"))
}

/// Never over a file that is there: an overwritten secret cannot be had back.
fn write_new(file: &Path, secret: &str) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(file).and_then(|mut made| {
        made.write_all(format!("{secret}\n").as_bytes())?;
        made.sync_all()
    });
    written.map_err(|error| {
        let failure = Failure::new(Exit::Failed, format!("cannot write {}: {error}", file.display()));
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            failure.hint("name a new file; a secret in use is replaced with accept_secret_files")
        } else {
            failure
        }
    })
}

fn fingerprint(node: &ConfigFile, json: bool) -> Result<(), Failure> {
    let environment = Environment::of_process();
    let loaded = load(node.as_deref(), &environment)?;
    let found = load_secrets(&loaded.config, &environment.of_service(loaded.file.as_deref()))?;
    for warning in &found.warnings {
        output::warn(&warning.to_string(), &warning.hint);
    }
    if found.secrets.is_empty() {
        return Err(Failure::new(Exit::NotFound, "no secret is configured")
            .hint("make one with `larder secret new -o FILE` and name it in secret_file"));
    }
    let site = &loaded.config.site;
    let keys = SiteKeys::derive(site, &found.secrets)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot derive the site's keys: {error}")))?;
    if json {
        let accepted = found.secrets.len() - 1;
        Output::new()
            .json(&json!({"site": site, "fingerprint": keys.fingerprint(), "also_accepted": accepted}))
    } else {
        Output::new().line(keys.fingerprint())
    }
}
