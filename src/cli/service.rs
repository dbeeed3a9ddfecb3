//! `larder service`: the unit, its user and its folders on a machine without a package, or for one user without root.
//!
//! Everything that is written is said; what is there with other contents is never written over. `--root` works below
//! another folder and runs nothing, for images.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::args::{ServiceAction, ServiceArgs};
use super::output::Steps;
use super::{Exit, Failure, Output};
use crate::config::Environment;

const UNIT: &str = include_str!("../../systemd/larder.service");
const SOCKET: &str = include_str!("../../systemd/larder.socket");
const SYSUSERS: &str = include_str!("../../systemd/larder.sysusers");
const TMPFILES: &str = include_str!("../../systemd/larder.tmpfiles");
const USER_UNIT: &str = include_str!("../../systemd/larder.user.service");
/// Where a package has its unit.
const PACKAGED: &str = "usr/lib/systemd/system/larder.service";

/// What is installed: files with their contents, and commands that make them known.
struct Plan {
    program: PathBuf,
    files: Vec<(PathBuf, String)>,
    after_install: Vec<Vec<&'static str>>,
    before_removal: Vec<Vec<&'static str>>,
    after_removal: Vec<Vec<&'static str>>,
    /// What `--purge` takes away besides.
    leavings: Vec<PathBuf>,
}

pub(super) fn run(args: &ServiceArgs) -> Result<Exit, Failure> {
    let root = args.root.clone().unwrap_or_else(|| PathBuf::from("/"));
    let environment = Environment::of_process();
    let plan = if args.user { for_user(&root, &environment)? } else { for_system(&root) };
    let acting = Acting { dry_run: args.dry_run, runs: args.root.is_none(), out: Steps::new(args.json) };
    match &args.action {
        ServiceAction::Install => install(&plan, &root, args, acting),
        ServiceAction::Uninstall { purge } => uninstall(&plan, *purge, acting),
        ServiceAction::Status => status(&plan, args.user, args.json),
    }
}

fn for_system(root: &Path) -> Plan {
    let program = root.join("usr/local/bin/larder");
    let unit = UNIT.replace("ExecStart=/usr/bin/larder run", "ExecStart=/usr/local/bin/larder run");
    Plan {
        program,
        files: vec![
            (root.join("etc/sysusers.d/larder.conf"), SYSUSERS.to_owned()),
            (root.join("etc/tmpfiles.d/larder.conf"), TMPFILES.to_owned()),
            (root.join("etc/systemd/system/larder.service"), unit),
            (root.join("etc/systemd/system/larder.socket"), SOCKET.to_owned()),
        ],
        after_install: vec![
            vec!["systemd-sysusers", "larder.conf"],
            vec!["systemd-tmpfiles", "--create", "larder.conf"],
            vec!["systemctl", "daemon-reload"],
        ],
        before_removal: vec![vec!["systemctl", "disable", "--now", "larder.service", "larder.socket"]],
        after_removal: vec![vec!["systemctl", "daemon-reload"]],
        leavings: ["var/lib/larder", "var/cache/larder", "etc/larder"].map(|name| root.join(name)).to_vec(),
    }
}

fn for_user(root: &Path, environment: &Environment) -> Result<Plan, Failure> {
    let below = |path: PathBuf| root.join(path.strip_prefix("/").unwrap_or(&path));
    let folder = |xdg: &str, usual: &str| environment.user_folder(xdg, usual).map(below);
    let no_home = || Failure::new(Exit::Failed, "$HOME is not set: whose service would it be?");
    let home = environment.get("HOME").map(|home| below(home.into())).ok_or_else(no_home)?;
    let config = folder("XDG_CONFIG_HOME", ".config").ok_or_else(no_home)?;
    let state = folder("XDG_STATE_HOME", ".local/state").ok_or_else(no_home)?;
    let cache = folder("XDG_CACHE_HOME", ".cache").ok_or_else(no_home)?;
    let units = config.with_file_name("systemd").join("user");
    Ok(Plan {
        program: home.join(".local/bin/larder"),
        files: vec![(units.join("larder.service"), USER_UNIT.to_owned())],
        after_install: vec![vec!["systemctl", "--user", "daemon-reload"]],
        before_removal: vec![vec!["systemctl", "--user", "disable", "--now", "larder.service"]],
        after_removal: vec![vec!["systemctl", "--user", "daemon-reload"]],
        leavings: vec![state, cache, config],
    })
}

struct Acting {
    dry_run: bool,
    runs: bool,
    out: Steps,
}

impl Acting {
    /// Says what is done, and does it unless only that is asked for.
    fn step(&mut self, what: &str, act: impl FnOnce() -> io::Result<()>) -> Result<(), Failure> {
        self.out.line(format!("{}{what}", if self.dry_run { "would " } else { "" }))?;
        if self.dry_run {
            return Ok(());
        }
        act().map_err(|error| {
            let failure = Failure::new(Exit::Failed, format!("failed to {what}: {error}"));
            if error.kind() == io::ErrorKind::PermissionDenied {
                failure.hint("run it as root, or with --user for yourself alone")
            } else {
                failure
            }
        })
    }

    fn end(self) -> Result<Exit, Failure> {
        self.out.end(json!({ "dry_run": self.dry_run })).map(|()| Exit::Done)
    }

    /// Runs commands that are there; one that fails is said and stops nothing.
    fn commands(&mut self, commands: &[Vec<&'static str>]) -> Result<(), Failure> {
        if !self.runs {
            return Ok(());
        }
        for command in commands {
            let line = command.join(" ");
            let Some((program, arguments)) = command.split_first() else { continue };
            if *program == "systemctl" && !Path::new("/run/systemd/system").exists() {
                self.out.line(format!("left out, systemd does not run here: {line}"))?;
                continue;
            }
            let mut said = None;
            self.step(&format!("run {line}"), || {
                // what it prints is no part of what we print
                said = match Command::new(program).args(arguments).stdout(io::stderr()).status() {
                    Ok(status) if status.success() => None,
                    Ok(status) => Some(status.to_string()),
                    Err(error) => Some(error.to_string()),
                };
                Ok(())
            })?;
            if let Some(said) = said {
                self.out.line(format!("  {program}: {said}"))?;
            }
        }
        Ok(())
    }
}

fn install(plan: &Plan, root: &Path, args: &ServiceArgs, mut acting: Acting) -> Result<Exit, Failure> {
    if !args.user && root.join(PACKAGED).exists() {
        return Err(Failure::new(Exit::Failed, "the package is installed, which has its own unit")
            .hint("`systemctl enable --now larder` starts it"));
    }
    let foreign = plan.files.iter().find(|(path, text)| fs::read_to_string(path).is_ok_and(|is| is != *text));
    if let Some((path, _)) = foreign.filter(|_| !args.replace) {
        let what = format!("{} is there with other contents", path.display());
        return Err(Failure::new(Exit::Failed, what).hint("look at it; --replace writes over it"));
    }
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Failed, format!("where is this program: {error}")))?;
    let program = plan.program.clone();
    acting.step(&format!("copy {} to {}", own.display(), program.display()), || copy(&own, &program))?;
    for (path, text) in &plan.files {
        acting.step(&format!("write {}", path.display()), || write(path, text))?;
    }
    acting.commands(&plan.after_install)?;
    let systemctl = if args.user { "systemctl --user" } else { "systemctl" };
    let socket = if args.user { "" } else { " larder.socket" };
    acting
        .out
        .line(format!("next: `larder init`, then `{systemctl} enable --now{socket} larder.service`"))?;
    acting.end()
}

/// Beside and renamed: a running program keeps its old file.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if fs::canonicalize(from).ok() == fs::canonicalize(to).ok() && to.exists() {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    let beside = to.with_extension("new");
    fs::copy(from, &beside)?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o755))?;
    fs::rename(beside, to)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, text)
}

fn uninstall(plan: &Plan, purge: bool, mut acting: Acting) -> Result<Exit, Failure> {
    acting.commands(&plan.before_removal)?;
    let files = plan.files.iter().map(|(path, _)| path).chain([&plan.program]);
    for path in files.filter(|path| path.exists()) {
        acting.step(&format!("remove {}", path.display()), || fs::remove_file(path))?;
    }
    acting.commands(&plan.after_removal)?;
    for folder in plan.leavings.iter().filter(|folder| folder.exists()) {
        if purge {
            acting
                .step(&format!("remove {} and all in it", folder.display()), || fs::remove_dir_all(folder))?;
        } else {
            acting.out.line(format!("{} stays; --purge removes it", folder.display()))?;
        }
    }
    acting.end()
}

fn status(plan: &Plan, user: bool, json: bool) -> Result<Exit, Failure> {
    let state = |path: &Path, text: Option<&str>| match (fs::read_to_string(path), text) {
        _ if !path.exists() => "missing",
        (Ok(is), Some(text)) if is != text => "changed",
        _ => "there",
    };
    let mut parts = vec![(plan.program.clone(), state(&plan.program, None))];
    parts.extend(plan.files.iter().map(|(path, text)| (path.clone(), state(path, Some(text)))));
    let active = activity(user);
    let mut out = Output::new();
    if json {
        let files: Vec<_> = parts.iter().map(|(path, state)| json!({"path": path, "state": state})).collect();
        out.json(&json!({"files": files, "active": active}))?;
    } else {
        for (path, state) in &parts {
            out.line(format!("{state:8} {}", path.display()))?;
        }
        out.line(format!("service: {active}"))?;
    }
    let whole = parts.iter().all(|(_, state)| *state != "missing");
    Ok(if whole { Exit::Done } else { Exit::NotFound })
}

fn activity(user: bool) -> String {
    let mut command = Command::new("systemctl");
    if user {
        command.arg("--user");
    }
    match command.args(["is-active", "larder.service"]).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if said.is_empty() { "systemd does not run here".to_owned() } else { said }
        }
        Err(_) => "there is no systemctl".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(root: &Path, action: ServiceAction) -> ServiceArgs {
        let root = Some(root.to_owned());
        ServiceArgs { action, user: false, dry_run: false, replace: false, root, json: false }
    }

    #[test]
    fn what_is_installed_goes_again() {
        let root = tempfile::tempdir().unwrap();
        let dry = ServiceArgs { dry_run: true, ..args(root.path(), ServiceAction::Install) };
        assert_eq!(run(&dry).unwrap(), Exit::Done);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "a dry run does nothing");
        assert_eq!(run(&args(root.path(), ServiceAction::Status)).unwrap(), Exit::NotFound);
        assert_eq!(run(&args(root.path(), ServiceAction::Install)).unwrap(), Exit::Done);
        let unit = root.path().join("etc/systemd/system/larder.service");
        assert!(fs::read_to_string(&unit).unwrap().contains("ExecStart=/usr/local/bin/larder run\n"));
        let json = ServiceArgs { json: true, ..args(root.path(), ServiceAction::Status) };
        assert_eq!(run(&json).unwrap(), Exit::Done);
        fs::write(&unit, "[Service]\n").unwrap();
        assert!(run(&args(root.path(), ServiceAction::Install)).is_err(), "somebody's own unit stays");
        assert_eq!(fs::read_to_string(&unit).unwrap(), "[Service]\n");
        fs::create_dir_all(root.path().join("var/lib/larder")).unwrap();
        run(&args(root.path(), ServiceAction::Uninstall { purge: false })).unwrap();
        assert!(!unit.exists() && root.path().join("var/lib/larder").exists());
        run(&args(root.path(), ServiceAction::Uninstall { purge: true })).unwrap();
        assert!(!root.path().join("var/lib/larder").exists());
    }

    #[test]
    fn a_package_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        write(&root.path().join(PACKAGED), UNIT).unwrap();
        assert!(run(&args(root.path(), ServiceAction::Install)).is_err());
    }
}
