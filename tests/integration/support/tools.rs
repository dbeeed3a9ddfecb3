//! Programs that people really use, where they are installed.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::daemon::{Ran, bare_command, run};

/// Whether a program is there; says so when it is not, so that a skipped check shows.
pub fn installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// Runs a program in a folder with `http_proxy` set, as a user's shell would have it.
pub fn with_proxy(proxy: SocketAddr, folder: &Path, program: &str, arguments: &[&str]) -> Ran {
    let mut command = bare_command(program, folder);
    command.args(arguments).current_dir(folder).env("http_proxy", format!("http://{proxy}"));
    run(command)
}

/// curl through a proxy, for addresses it would otherwise reach directly.
pub fn curl(proxy: SocketAddr, folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = bare_command("curl", folder);
    command.args(["-sS", "--max-time", "60", "--noproxy", "", "-x", &format!("http://{proxy}")]);
    command.args(arguments).current_dir(folder);
    run(command)
}
