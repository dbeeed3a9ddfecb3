//! `larder ca`: the certificate authority of this machine, in whose name https is opened (`[intercept]`).
//!
//! It vouches for the domains in `intercept.hosts` and for nothing else, and only this machine trusts it. Other
//! hosts need another authority: `install` makes it, and what trusted the old one trusts nothing any more.

mod programs;
mod system;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use http::Method;
use serde_json::{Value, json};

use super::admin_client::AdminClient;
use super::args::{CaAction, CaArgs};
use super::output::Steps;
use super::{ConfigFile, Exit, Failure, Output};
use crate::clock::{Clock as _, SystemClock, Timestamp};
use crate::config::{Config, Environment, Loaded, load};
use crate::tls::{LocalAuthority, TlsError};
use system::Step;
pub(super) use system::TrustStore;

/// An authority that ends within so many seconds is made anew by `install`.
const SOON: u64 = 30 * 86_400;

pub(super) fn run(node: &ConfigFile, args: &CaArgs) -> Result<Exit, Failure> {
    let loaded = load(node.as_deref(), &Environment::of_process())?;
    match args.action {
        CaAction::New { replace, json } => new(&loaded.config, replace, Steps::new(json))?,
        CaAction::Show { pem: true, .. } => Output::new().text(existing(&loaded.config)?.pem())?,
        CaAction::Show { json, .. } => show(&loaded.config, json)?,
        CaAction::Install { dry_run, json } => {
            let mut steps = Steps::new(json);
            install(&loaded, dry_run, &mut steps)?;
            steps.end(json!({ "dry_run": dry_run }))?;
        }
        CaAction::Remove { dry_run, json } => {
            let mut steps = Steps::new(json);
            remove(&loaded, dry_run, &mut steps)?;
            steps.end(json!({ "dry_run": dry_run }))?;
        }
    }
    Ok(Exit::Done)
}

/// Whether an authority serves what is configured, for a while yet.
pub(super) fn fits(config: &Config, authority: &LocalAuthority, now: Timestamp) -> bool {
    authority.domains() == config.intercept.domains() && authority.not_after().since(now).as_secs() > SOON
}

/// A date as people read it.
pub(super) fn day(time: Timestamp) -> String {
    time.to_string().chars().take_while(|c| *c != 'T').collect()
}

fn new(config: &Config, replace: bool, mut out: Steps) -> Result<(), Failure> {
    if !replace && !matches!(LocalAuthority::load(&config.state_dir), Ok(None)) {
        return Err(Failure::new(Exit::Failed, "there is an authority already").hint(
            "`larder ca install` uses it, or makes another where hosts changed; --replace makes another now",
        ));
    }
    let made = make(config)?;
    say_made(&made, &mut out)?;
    out.line("make the system's programs trust it with `larder ca install`")?;
    out.end(described(&made))
}

fn make(config: &Config) -> Result<LocalAuthority, Failure> {
    let domains = config.intercept.domains();
    if domains.is_empty() {
        return Err(Failure::new(Exit::Configuration, "intercept.hosts names no host").hint(
            "write hosts = [\"*.example.org\"] under [intercept]: the authority is made for these alone",
        ));
    }
    let folder = &config.state_dir;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| failed(&format!("cannot make {}", folder.display()), &error))?;
    LocalAuthority::create(folder, &config.node_name, &domains, SystemClock.now()).map_err(cannot)
}

fn say_made(authority: &LocalAuthority, out: &mut Steps) -> Result<(), Failure> {
    let domains = authority.domains().join(", ");
    out.line(format!("made `{}` for {domains}, until {}", authority.name(), day(authority.not_after())))
}

/// An authority as a document.
fn described(authority: &LocalAuthority) -> Value {
    json!({
        "name": authority.name(), "domains": authority.domains(), "not_after": authority.not_after().to_string(),
        "sha256": authority.fingerprint(),
    })
}

fn existing(config: &Config) -> Result<LocalAuthority, Failure> {
    LocalAuthority::load(&config.state_dir).map_err(cannot)?.ok_or_else(|| {
        Failure::new(Exit::NotFound, "there is no authority")
            .hint("name hosts in intercept.hosts, then `larder ca install`")
    })
}

fn cannot(error: TlsError) -> Failure {
    let failure = Failure::new(Exit::Failed, error.to_string());
    match error {
        TlsError::File { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            failure.hint("run it as root or as the service's user")
        }
        TlsError::Content { .. } => failure.hint("`larder ca new --replace` makes another"),
        TlsError::File { .. } | TlsError::Make(_) | TlsError::Use(_) => failure,
    }
}

fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{what}: {error}"))
}

fn show(config: &Config, json: bool) -> Result<(), Failure> {
    let authority = existing(config)?;
    let store = TrustStore::find(Path::new("/"), &config.state_dir);
    let trusted = store.as_ref().is_some_and(|store| store.trusts(authority.pem()));
    let file = LocalAuthority::certificate_file(&config.state_dir);
    let fits = fits(config, &authority, SystemClock.now());
    let (anchor, bundle) =
        store.as_ref().map_or((file.as_path(), file.as_path()), |store| (&store.anchor, &store.bundle));
    let settings = programs::settings(anchor, bundle);
    let mut out = Output::new();
    if json {
        let set: serde_json::Map<_, _> =
            settings.into_iter().map(|(program, set)| (program.to_owned(), set.into())).collect();
        let mut document = described(&authority);
        let more = json!({"file": file, "anchor": anchor, "trusted": trusted, "fits": fits, "programs": set});
        if let (Some(document), Value::Object(more)) = (document.as_object_mut(), more) {
            document.extend(more);
        }
        return out.json(&document);
    }
    out.line(authority.name())?;
    let system = match (&store, trusted) {
        (Some(store), true) => format!("trusts it ({})", store.anchor.display()),
        (Some(_), false) => "does not trust it: `larder ca install`".to_owned(),
        (None, _) => "keeps its list in no way that is known here; add the certificate by hand".to_owned(),
    };
    for (what, value) in [
        ("for", authority.domains().join(", ") + " and what is below; no address"),
        ("until", day(authority.not_after())),
        ("SHA-256", colons(&authority.fingerprint())),
        ("file", file.display().to_string()),
        ("system", system),
    ] {
        out.line(format!("  {what:8} {value}"))?;
    }
    if !fits {
        out.line("  hosts or time have changed: run `larder ca install` again")?;
    }
    out.line("Programs with a list of their own:")?;
    settings.iter().try_for_each(|(program, set)| out.line(format!("  {program:12} {set}")))
}

/// As other tools print it.
fn colons(hex: &str) -> String {
    let bytes = hex.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).to_uppercase());
    bytes.collect::<Vec<_>>().join(":")
}

fn install(loaded: &Loaded, dry_run: bool, out: &mut Steps) -> Result<(), Failure> {
    let config = &loaded.config;
    let there = LocalAuthority::load(&config.state_dir);
    let fitting =
        there.as_ref().ok().and_then(Option::as_ref).is_some_and(|a| fits(config, a, SystemClock.now()));
    let authority = match there {
        Ok(Some(authority)) if fitting => authority,
        Err(error @ TlsError::File { .. }) => return Err(cannot(error)),
        // without hosts there is nothing to make, dry or not
        Ok(_) | Err(_) if dry_run && !config.intercept.hosts.is_empty() => {
            let domains = config.intercept.domains().join(", ");
            out.line(format!("would make an authority for {domains} in {}", config.state_dir.display()))?;
            return out.line("would make the system's programs trust it");
        }
        Ok(_) | Err(_) => {
            let made = make(config)?;
            say_made(&made, out)?;
            made
        }
    };
    let file = LocalAuthority::certificate_file(&config.state_dir);
    let store = TrustStore::find(Path::new("/"), &config.state_dir).ok_or_else(|| {
        Failure::new(Exit::Failed, "this system keeps its list of authorities in no way that is known here")
            .hint("install the package ca-certificates, or add what `larder ca show --pem` prints by hand")
    })?;
    let steps = store.adding(&file, authority.pem());
    perform(&steps, dry_run, out)?;
    if steps.is_empty() {
        out.line("the system's programs trust it already")?;
    }
    if !dry_run {
        tell_daemon(loaded, out)?;
        out.line("`larder ca show` says what to set for programs with a list of their own")?;
    }
    Ok(())
}

fn remove(loaded: &Loaded, dry_run: bool, out: &mut Steps) -> Result<(), Failure> {
    let folder = &loaded.config.state_dir;
    let store = TrustStore::find(Path::new("/"), folder);
    let steps = store.map(|store| store.removing()).unwrap_or_default();
    perform(&steps, dry_run, out)?;
    let file = LocalAuthority::certificate_file(folder);
    if dry_run {
        return out.line(format!("would delete {} and its key", file.display()));
    }
    if LocalAuthority::remove(folder).map_err(cannot)? {
        out.line(format!("deleted {} and its key", file.display()))?;
    } else if steps.is_empty() {
        out.line("there is none")?;
    }
    tell_daemon(loaded, out)
}

/// Does one step after the other and says each; where the system does not let us, says what is left.
fn perform(steps: &[Step], dry_run: bool, out: &mut Steps) -> Result<(), Failure> {
    for (number, step) in steps.iter().enumerate() {
        if dry_run {
            out.line(format!("would run: {step}"))?;
            continue;
        }
        if let Err(error) = step.perform() {
            let failure = failed(&format!("cannot run `{step}`"), &error);
            let left: Vec<String> = steps.iter().skip(number).map(|step| format!("sudo {step}")).collect();
            let may = rustix::process::geteuid().is_root();
            return Err(if may { failure } else { failure.hint(left.join(" && ")) });
        }
        out.line(format!("ran: {step}"))?;
    }
    Ok(())
}

/// A daemon that runs takes over what changed.
fn tell_daemon(loaded: &Loaded, out: &mut Steps) -> Result<(), Failure> {
    let client = AdminClient::to(loaded)?;
    if client.alive().is_err() {
        return Ok(());
    }
    let taken: Value = client.call(Method::POST, "/api/v1/reload", None::<&()>)?;
    tracing::debug!(%taken, "the daemon has read its configuration again");
    out.line("the running daemon has taken it over")
}
