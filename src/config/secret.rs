//! The site's secrets: from `secret_file`, `$LARDER_SECRET` or systemd's credential `larder.secret`, in that
//! order; never from an argument.
//!
//! No secret at all is allowed: the node then works alone. A secret that cannot be read or is too weak is a
//! complaint; a file that everybody can read is a warning. No secret is ever printed.

use std::path::Path;

use zeroize::Zeroizing;

use super::complaint::{Complaint, Complaints, Place};
use super::{Config, Environment};
use crate::mormot;
use crate::orm::FileKey;
use crate::seal::Secret;

/// The secrets of a site.
#[derive(Debug, Default)]
pub struct Secrets {
    /// The one that sends, then those understood as well; none: the node works alone.
    pub secrets: Vec<Secret>,
    /// Where the one that sends came from.
    pub from: String,
    /// That of mORMot peers, where they are wanted.
    pub mormot: Option<mormot::Secret>,
    /// What is allowed but dangerous.
    pub warnings: Vec<Complaint>,
}

/// Reads all secrets there are. Blocking.
pub fn load_secrets(config: &Config, environment: &Environment) -> Result<Secrets, Complaints> {
    let mut found = Secrets::default();
    let mut complaints = Vec::new();
    let sending = sending(config, environment, &mut found.warnings);
    for read in sending.into_iter().chain(config.accept_secret_files.iter().map(|path| {
        let key = "accept_secret_files";
        (path.display().to_string(), file(key, path))
    })) {
        let (from, secret) = read;
        match secret {
            Ok((secret, warning)) => {
                if found.secrets.is_empty() {
                    found.from = from;
                }
                found.secrets.push(secret);
                found.warnings.extend(warning);
            }
            Err(complaint) => complaints.push(complaint),
        }
    }
    if complaints.is_empty()
        && found.secrets.len() == config.accept_secret_files.len()
        && !found.secrets.is_empty()
    {
        let what = "there are secrets to accept, but none to send with";
        complaints.push(Complaint::about("accept_secret_files", what).hint("set secret_file"));
    }
    match of_mormot(config, environment, &found.secrets) {
        Ok(Some((secret, warnings))) => {
            found.mormot = Some(secret);
            found.warnings.extend(warnings);
        }
        Ok(None) => {}
        Err(complaint) => complaints.push(complaint),
    }
    if complaints.is_empty() { Ok(found) } else { Err(Complaints(complaints)) }
}

type Read = Result<(Secret, Option<Complaint>), Complaint>;

fn sending(
    config: &Config,
    environment: &Environment,
    warnings: &mut Vec<Complaint>,
) -> Option<(String, Read)> {
    let variable = environment.get("LARDER_SECRET");
    if !config.secret_file.as_os_str().is_empty() {
        if variable.is_some() {
            let what = "$LARDER_SECRET is set too and is ignored";
            warnings.push(Complaint::about("secret_file", what));
        }
        let path = &config.secret_file;
        return Some((path.display().to_string(), file("secret_file", path)));
    }
    if let Some(text) = variable {
        let place = Place::Variable("LARDER_SECRET".to_owned());
        return Some((place.to_string(), parse("", text.as_bytes(), place).map(|secret| (secret, None))));
    }
    let credential = environment.credentials()?.join("larder.secret");
    // Systemd closes its credentials to others by itself, and shows them with modes of its own.
    let there = credential.exists();
    there.then(|| (credential.display().to_string(), file("", &credential).map(|(secret, _)| (secret, None))))
}

/// What the files of the index are sealed with, from `index.key_file` or systemd's credential `larder.index-key`, and a
/// warning if everybody can read it. Blocking.
pub fn load_index_key(
    config: &Config,
    environment: &Environment,
) -> Result<Option<(FileKey, Option<Complaint>)>, Complaint> {
    const KEY: &str = "index.key_file";
    const HOW: &str = "make one with `openssl rand -hex 32 >FILE`";
    let named = Some(config.index.key_file.clone()).filter(|path| !path.as_os_str().is_empty());
    let credential = environment.credentials().map(|folder| folder.join("larder.index-key"));
    let is_named = named.is_some();
    let Some(path) = named.or_else(|| credential.filter(|path| path.exists())) else { return Ok(None) };
    if !FileKey::IS_OF_USE {
        let what = "there is a key for the index, and this build cannot encrypt it";
        let hint = "take the key away, or build with --features sqlcipher";
        return Err(Complaint::about(KEY, what).at(Place::Whole(path)).hint(hint));
    }
    let (bytes, warning) = read(KEY, &path, HOW)?;
    let key = FileKey::parse(&bytes).ok_or_else(|| {
        Complaint::about(KEY, "a key is 64 hexadecimal digits").at(Place::Whole(path)).hint(HOW)
    })?;
    // systemd closes its credentials to others by itself
    Ok(Some((key, warning.filter(|_| is_named))))
}

/// The secret of mORMot peers, from `mormot.secret_file` or `$LARDER_MORMOT_SECRET`.
fn of_mormot(
    config: &Config,
    environment: &Environment,
    own: &[Secret],
) -> Result<Option<(mormot::Secret, Vec<Complaint>)>, Complaint> {
    const KEY: &str = "mormot.secret_file";
    const VARIABLE: &str = "LARDER_MORMOT_SECRET";
    if !config.mormot.enabled {
        return Ok(None);
    }
    let (path, mut warnings) = (&config.mormot.secret_file, Vec::new());
    let (text, place) = if !path.as_os_str().is_empty() {
        let (text, warning) = read(KEY, path, "write the peers' secret into it")?;
        warnings.extend(warning);
        (text, Place::Whole(path.to_owned()))
    } else if let Some(text) = environment.get(VARIABLE) {
        (Zeroizing::new(text.as_bytes().to_vec()), Place::Variable(VARIABLE.to_owned()))
    } else {
        let what = "mormot.enabled = true needs the secret of the mORMot peers";
        return Err(Complaint::about(KEY, what).hint(format!("name a file with it, or set ${VARIABLE}")));
    };
    let wrong = |error: mormot::SecretError| Complaint::about(KEY, error.to_string()).at(place.clone());
    let secret = mormot::Secret::parse(&text).map_err(wrong)?;
    if own.iter().any(|own| own.is(secret.bytes())) {
        let what = "it is the site's own secret, which their protocol would make easy to guess";
        return Err(Complaint::about(KEY, what).at(place).hint("give each protocol a secret of its own"));
    }
    if secret.is_weak() {
        let what = "the secret of the mORMot peers is short: one recorded frame is enough to guess it";
        warnings.push(
            Complaint::about(KEY, what).at(place).hint("give all of them one of 16 characters or more"),
        );
    }
    Ok(Some((secret, warnings)))
}

/// What stands in a secret file, and a warning if everybody can read it.
fn read(key: &str, path: &Path, how: &str) -> Result<(Zeroizing<Vec<u8>>, Option<Complaint>), Complaint> {
    let place = Place::Whole(path.to_owned());
    let bytes = std::fs::read(path).map(Zeroizing::new).map_err(|error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let hint = if missing { how } else { "the daemon's user must be able to read it" };
        Complaint::about(key, format!("cannot read the secret: {error}")).at(place.clone()).hint(hint)
    })?;
    let warning = open_to_all(path).then(|| {
        let what = "everybody on this machine can read the secret";
        Complaint::about(key, what).at(place.clone()).hint(format!("chmod o-rwx {}", path.display()))
    });
    Ok((bytes, warning))
}

fn file(key: &str, path: &Path) -> Read {
    let (bytes, warning) = read(key, path, "make one with `larder secret new -o FILE`")?;
    Ok((parse(key, &bytes, Place::Whole(path.to_owned()))?, warning))
}

fn parse(key: &str, text: &[u8], place: Place) -> Result<Secret, Complaint> {
    Secret::parse(text).map_err(|error| Complaint::about(key, error.to_string()).at(place))
}

#[cfg(unix)]
fn open_to_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o007 != 0)
}

#[cfg(not(unix))]
fn open_to_all(_path: &Path) -> bool {
    false
}
