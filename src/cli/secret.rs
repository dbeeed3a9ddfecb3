//! `larder secret`: make the site's secret, and compare it between machines without showing it.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use super::args::{SecretAction, SecretArgs};
use super::{ConfigFile, Exit, Failure, Output, output};
use crate::config::{Environment, load, load_secrets};
use crate::seal::{Secret, SiteKeys};

pub(super) fn run(node: &ConfigFile, args: &SecretArgs) -> Result<Exit, Failure> {
    match &args.action {
        SecretAction::New { output: None } => Output::new().line(generate()?)?,
        SecretAction::New { output: Some(file) } => {
            write_new(file, &generate()?)?;
            Output::new().line(format!("{}: copy this file to every machine of the site", file.display()))?;
        }
        SecretAction::Fingerprint(args) => fingerprint(node, args.json)?,
    }
    Ok(Exit::Done)
}

fn generate() -> Result<String, Failure> {
    Secret::generate().map_err(|error| Failure::new(Exit::Failed, format!("cannot make a secret: {error}")))
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
    let found = load_secrets(&loaded.config, &environment)?;
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
