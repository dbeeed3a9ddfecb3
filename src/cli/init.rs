//! `larder init`: the first five minutes. Three answers (the site's name, its secret, the size of the cache), asked
//! for or given as flags, become a commented configuration; then the machine is looked over, and the line for the next
//! machine is printed. Nothing that is there is written over.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::InitArgs;
use super::{ConfigFile, Exit, Failure, Output, doctor, output};
use crate::config::{Environment, SYSTEM_FILE};
use crate::seal::{Secret, SiteKeys};
use crate::unit::ByteSize;

/// The secret where systemd hands it to the service.
const CREDENTIAL: &str = "/etc/credstore/larder.secret";
/// What a package put there: as long as nobody has changed it, it is nobody's.
const SHIPPED: &str = include_str!("../../config/minimal.toml");

/// What was answered.
struct Answers {
    site: String,
    secret: Chosen,
    size: ByteSize,
}

/// Which secret.
enum Chosen {
    New,
    From(PathBuf),
    None,
}

/// Where things go.
struct Places {
    config: PathBuf,
    secret: PathBuf,
    /// Whether the configuration must name the secret: systemd hands over the other one.
    named: bool,
}

pub(super) fn run(node: &ConfigFile, args: &InitArgs) -> Result<Exit, Failure> {
    let places = places(node, args)?;
    let is_shipped = fs::read_to_string(&places.config).is_ok_and(|text| text == SHIPPED);
    if places.config.exists() && !is_shipped {
        let what = format!("{} is there already", places.config.display());
        return Err(Failure::new(Exit::Failed, what).hint(
            "`larder doctor` looks it over, `larder config show` says what is in force; to begin anew, move it away first",
        ));
    }
    let answers = answers(args)?;
    let fingerprint = place_secret(&answers, &places)?;
    let text = config(&answers, &places);
    if is_shipped {
        fs::remove_file(&places.config).map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot replace {}: {error}", places.config.display()))
        })?;
    }
    write_new(&places.config, &text, 0o644)?;
    let findings = doctor::machine_findings(&places.config)?;
    let next = next_machine(&answers, &places);
    let mut out = Output::new();
    if args.json {
        out.json(&json!({
            "config": places.config, "site": answers.site, "fingerprint": fingerprint,
            "secret": fingerprint.as_ref().map(|_| &places.secret), "findings": findings.as_json(), "next": next,
        }))?;
        return Ok(Exit::Done);
    }
    out.line(format!("wrote {}", places.config.display()))?;
    if let Some(fingerprint) = &fingerprint {
        out.line(format!("secret in {}, fingerprint {fingerprint}", places.secret.display()))?;
    }
    out.line("")?;
    findings.print(&mut out)?;
    out.line(format!("\nstart it:          {}", start(&places)))?;
    for line in next {
        out.line(line)?;
    }
    Ok(Exit::Done)
}

fn places(node: &ConfigFile, args: &InitArgs) -> Result<Places, Failure> {
    let environment = Environment::of_process();
    let file = args.output.clone().or_else(|| node.clone());
    let system = file.is_none() && rustix::process::geteuid().is_root();
    if system {
        return Ok(Places { config: SYSTEM_FILE.into(), secret: CREDENTIAL.into(), named: false });
    }
    let no_home = || Failure::new(Exit::Failed, "$HOME is not set").hint("name a file with -o");
    let config = match file {
        Some(file) => file,
        None => {
            environment.user_folder("XDG_CONFIG_HOME", ".config").ok_or_else(no_home)?.join("larder.toml")
        }
    };
    let secret = config.with_file_name("larder.secret");
    Ok(Places { config, secret, named: true })
}

fn answers(args: &InitArgs) -> Result<Answers, Failure> {
    let asks = !args.defaults && io::stdin().is_terminal();
    let site = match &args.site {
        Some(site) => site.clone(),
        None if asks => ask("Name of the site, the same on all its machines", "default")?,
        None => "default".to_owned(),
    };
    if site.trim().is_empty() || site.contains(['"', '\\', '\n']) {
        return Err(Failure::new(Exit::Usage, format!("`{site}` is no name for a site"))
            .hint("letters, digits, - and _"));
    }
    let secret = match (&args.secret_from, args.alone) {
        (Some(file), _) => Chosen::From(file.clone()),
        (None, true) => Chosen::None,
        (None, false) if asks => {
            match ask(
                "Secret of the site: a file from another machine, `new`, or `none` to work alone",
                "new",
            )?
            .as_str()
            {
                "new" => Chosen::New,
                "none" => Chosen::None,
                file => Chosen::From(file.into()),
            }
        }
        (None, false) => Chosen::New,
    };
    let size = match args.size {
        Some(size) => size,
        None if asks => {
            let text = ask("The most the cache may take", "20GiB")?;
            text.parse().map_err(|error| Failure::new(Exit::Usage, format!("{error}")))?
        }
        None => ByteSize(20 << 30),
    };
    Ok(Answers { site, secret, size })
}

/// Asks on standard error, so that what is printed stays clean.
fn ask(question: &str, usual: &str) -> Result<String, Failure> {
    let failed = |error| Failure::new(Exit::Failed, format!("cannot ask: {error}"));
    let mut err = io::stderr().lock();
    write!(err, "{question} [{usual}]: ").and_then(|()| err.flush()).map_err(failed)?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(failed)?;
    let answer = line.trim();
    Ok(if answer.is_empty() { usual.to_owned() } else { answer.to_owned() })
}

/// Puts the secret in its place; its fingerprint.
fn place_secret(answers: &Answers, places: &Places) -> Result<Option<String>, Failure> {
    let text = match &answers.secret {
        Chosen::None => return Ok(None),
        Chosen::New if places.secret.exists() => {
            output::warn(&format!("{} is there already and stays", places.secret.display()), "");
            read(&places.secret)?
        }
        Chosen::New => Secret::generate()
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot make a secret: {error}")))?,
        Chosen::From(file) => read(file)?,
    };
    let wrong =
        |error: &dyn std::fmt::Display| Failure::new(Exit::Configuration, format!("the secret: {error}"));
    let secret = Secret::parse(text.as_bytes()).map_err(|error| wrong(&error))?;
    let keys = SiteKeys::derive(&answers.site, &[secret]).map_err(|error| wrong(&error))?;
    if !places.secret.exists() {
        write_new(&places.secret, &format!("{}\n", text.trim_end()), 0o600)?;
    }
    Ok(Some(keys.fingerprint()))
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot read {}: {error}", file.display())))
}

/// A new file; its folder is made, closed to others where the file is.
fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let write = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let closed = if mode & 0o077 == 0 { 0o700 } else { 0o755 };
            fs::DirBuilder::new().recursive(true).mode(closed).create(folder)?;
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|error: io::Error| {
        Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display()))
    })
}

fn config(answers: &Answers, places: &Places) -> String {
    let secret = match (&answers.secret, places.named) {
        (Chosen::None, _) => {
            "# secret_file = \"\"                  # none: this node works alone\n".to_owned()
        }
        (_, true) => {
            format!("secret_file = {:?}\n", places.secret.file_name().unwrap_or_default().to_string_lossy())
        }
        (_, false) => format!("# The secret is in {CREDENTIAL}, which systemd hands to the service.\n"),
    };
    format!(
        "# Larder. `larder config default` prints every key with its default and what it means;\n\
         # `larder config check` names mistakes, `larder config show` what is in force and why.\n\n\
         site = \"{}\"                        # the same on all machines of the site\n{secret}\n\
         [cache]\n\
         max_size = \"{}\"                  # the most that is kept\n\
         # min_free = \"5%\"                   # what the filesystem keeps free\n\n\
         [proxy]\n\
         # listen = [\"127.0.0.1:8098\", \"[::1]:8098\"]   # programs on this machine; to serve others:\n\
         # allow = [\"127.0.0.0/8\", \"::1/128\"]          # who may use it\n\n\
         [peers]\n\
         # port = 8096                       # UDP and TCP, open between the machines of the site\n\
         # interfaces = []                   # physical ones with private addresses; \"!docker0\" excludes\n\
         # seeds = []                        # neighbours that broadcast does not reach\n",
        answers.site, answers.size
    )
}

fn start(places: &Places) -> String {
    if places.named {
        format!("larder run --config {}", places.config.display())
    } else {
        "systemctl enable --now larder.socket larder.service".to_owned()
    }
}

fn next_machine(answers: &Answers, places: &Places) -> Vec<String> {
    let size = answers.size;
    let site = &answers.site;
    if matches!(answers.secret, Chosen::None) {
        return Vec::new();
    }
    vec![
        format!("on the next one:   scp {} NEXT:larder.secret", places.secret.display()),
        format!("                   larder init --site {site} --secret-from larder.secret --size {size}"),
        "both must print the same fingerprint; open port 8096, UDP and TCP, between them".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn quick(folder: &Path) -> InitArgs {
        InitArgs {
            site: Some("lab".to_owned()),
            secret_from: None,
            alone: false,
            size: Some(ByteSize(5 << 30)),
            output: Some(folder.join("etc/larder.toml")),
            defaults: true,
            json: true,
        }
    }

    #[test]
    fn what_it_writes_is_a_configuration_for_this_and_the_next_machine() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let args = quick(folder.path());
        assert_eq!(run(&None, &args).unwrap(), Exit::Done);
        let file = args.output.clone().unwrap();
        let loaded = load(Some(&file), &Environment::of_process()).unwrap();
        assert_eq!((loaded.config.site.as_str(), loaded.config.cache.max_size), ("lab", ByteSize(5 << 30)));
        let secret = loaded.config.secret_file;
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(run(&None, &args).is_err(), "nothing is written over");
        let packaged = tempfile::tempdir().unwrap();
        let args = quick(packaged.path());
        let file = args.output.clone().unwrap();
        fs::create_dir(packaged.path().join("etc")).unwrap();
        fs::write(&file, SHIPPED).unwrap();
        assert_eq!(
            run(&None, &args).unwrap(),
            Exit::Done,
            "what a package brought and nobody changed is replaced"
        );
        fs::write(&file, format!("{SHIPPED}# mine\n")).unwrap();
        assert!(run(&None, &args).is_err());
        let other = tempfile::tempdir().unwrap();
        let next = InitArgs { secret_from: Some(secret.clone()), ..quick(other.path()) };
        run(&None, &next).unwrap();
        assert_eq!(fs::read(other.path().join("etc/larder.secret")).unwrap(), fs::read(secret).unwrap());
        let alone = tempfile::tempdir().unwrap();
        run(&None, &InitArgs { alone: true, ..quick(alone.path()) }).unwrap();
        assert!(!alone.path().join("etc/larder.secret").exists());
        let short = alone.path().join("short");
        fs::write(&short, "short").unwrap();
        let bad = InitArgs {
            secret_from: Some(short),
            output: Some(alone.path().join("b.toml")),
            ..quick(alone.path())
        };
        assert_eq!(run(&None, &bad).unwrap_err().exit, Exit::Configuration);
    }
}
