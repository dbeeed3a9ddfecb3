//! Real daemons: the built binary with an own address, own folders, an own log.
//!
//! A [`Larder`] that is dropped at the end of a test that went well also proves what every case promises:
//! the daemon is alive if nobody stopped it, its log tells of no panic, every blob hashes to its name. On a
//! failure the end of its log is printed.

mod builder;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use builder::{LarderBuilder, Site};
use rustix::process::{Pid, Signal, kill_process};

use super::address::OwnAddress;
use super::client::{Answer, Ask};
use super::{GUARD, sha256, wait_until};

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_larder");

/// A node.
pub struct Larder {
    name: String,
    home: tempfile::TempDir,
    cache_dir: PathBuf,
    proxy: SocketAddr,
    admin: SocketAddr,
    peer: SocketAddr,
    wrapper: Vec<String>,
    child: Option<Child>,
    /// Somebody damages the store on purpose: blobs are not judged at the end.
    damaged: bool,
    address: Option<OwnAddress>,
}

/// What a run of the command line gave.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub bytes: Vec<u8>,
}

impl Larder {
    /// A node to be described further.
    #[expect(clippy::new_ret_no_self, reason = "a story begins with the node, not with its builder")]
    pub fn new(name: &str) -> LarderBuilder {
        LarderBuilder::new(name)
    }

    pub fn proxy(&self) -> SocketAddr {
        self.proxy
    }

    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub fn ip(&self) -> IpAddr {
        self.proxy.ip()
    }

    /// The folder that holds everything of this node.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn cache_dir(&self) -> &Path {
        &self.cache_dir
    }

    pub fn state_dir(&self) -> PathBuf {
        self.home().join("state")
    }

    pub fn config_file(&self) -> PathBuf {
        self.home().join("larder.toml")
    }

    /// From now on started by another command, in the same network.
    pub fn wrap(&mut self, wrapper: Vec<String>) {
        self.wrapper = wrapper;
    }

    /// Starts the process; readiness is another matter.
    pub fn spawn(&mut self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_file()).unwrap();
        let errors = log.try_clone().unwrap();
        let mut command = self.command(&["run"]);
        self.child = Some(command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().unwrap());
    }

    /// Waits until it says that it serves.
    pub fn wait_ready(&mut self) {
        let start = Instant::now();
        while !self.is_ready() {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().unwrap()) {
                panic!("{} ended with {status} instead of serving:\n{}", self.name, self.log());
            }
            assert!(start.elapsed() < GUARD, "{} is not ready:\n{}", self.name, self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_ready(&self) -> bool {
        let socket = self.state_dir().join("admin.sock");
        if self.wrapper.is_empty() {
            return Ask::new(self.admin, "GET", "/readyz")
                .field("Host", &self.admin.to_string())
                .try_send()
                .is_ok_and(|answer| answer.status == 200);
        }
        unix_get(&socket, "/readyz").is_some_and(|text| text.starts_with("HTTP/1.1 200"))
    }

    /// A GET through this node as a proxy.
    pub fn get(&self, url: &str) -> Answer {
        self.ask(url).send()
    }

    /// A request through this node as a proxy.
    pub fn ask(&self, url: &str) -> Ask {
        Ask::through(self.proxy, url)
    }

    /// A request through the URL-prefix door.
    pub fn prefix(&self, url: &str) -> Ask {
        let (scheme, rest) = url.split_once("://").unwrap();
        self.door(&format!("/{scheme}/{rest}"))
    }

    /// A request in origin form for this path of the door's port.
    pub fn door(&self, path: &str) -> Ask {
        Ask::new(self.proxy, "GET", path).field("Host", &self.proxy.to_string())
    }

    /// A request on the admin port, with the token.
    pub fn admin_ask(&self, method: &str, path: &str) -> Ask {
        let token = std::fs::read_to_string(self.state_dir().join("admin.token")).unwrap();
        self.admin_ask_without_token(method, path).field("Authorization", &format!("Bearer {}", token.trim()))
    }

    /// The same from somebody who has no token.
    pub fn admin_ask_without_token(&self, method: &str, path: &str) -> Ask {
        Ask::new(self.admin, method, path).field("Host", &self.admin.to_string())
    }

    /// `/status` with everything in it.
    pub fn status(&self) -> serde_json::Value {
        if self.wrapper.is_empty() {
            let answer = self.admin_ask("GET", "/status").send();
            assert_eq!(answer.status, 200, "{}", answer.text());
            return serde_json::from_slice(&answer.body).unwrap();
        }
        let answer = unix_get(&self.state_dir().join("admin.sock"), "/status").unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// A number of `/status`, by its JSON pointer.
    pub fn count(&self, pointer: &str) -> u64 {
        let status = self.status();
        status
            .pointer(pointer)
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_else(|| panic!("no {pointer} in {status}"))
    }

    /// How many transfers are running.
    pub fn transfers(&self) -> usize {
        self.status()["transfers"].as_array().unwrap().len()
    }

    /// The addresses that are banned.
    pub fn bans(&self) -> Vec<String> {
        let status = self.status();
        let bans = status["bans"].as_array().unwrap();
        bans.iter().map(|ban| ban["address"].as_str().unwrap().to_owned()).collect()
    }

    /// The neighbours' names.
    pub fn peers(&self) -> Vec<String> {
        let status = self.status();
        let peers = status["peers"].as_array().cloned().unwrap_or_default();
        peers.iter().filter_map(|peer| peer["name"].as_str().map(str::to_owned)).collect()
    }

    /// Waits until the two know each other.
    pub fn meets(&self, other: &Self) {
        for (one, two) in [(self, other), (other, self)] {
            wait_until(&format!("{} to see {}", one.name, two.name), || one.peers().contains(&two.name));
        }
    }

    /// Waits until the blob with this digest (`sha256:<hex>`) is in the store and known.
    pub fn wait_for_blob(&self, digest: &str) -> PathBuf {
        let path = self.blob_path(digest);
        wait_until(&format!("{digest} in the store of {}", self.name), || path.exists());
        wait_until("its transfer to be written down", || !self.has_finishing_transfer());
        let row = format!("/api/v1/blobs/{digest}");
        wait_until("its row", || self.has(&row));
        path
    }

    /// Whether the admin side has something at this path; a node in a network of its own is asked by its socket.
    fn has(&self, path: &str) -> bool {
        if self.wrapper.is_empty() {
            return self.admin_ask("GET", path).send().is_success();
        }
        let answer = unix_get(&self.state_dir().join("admin.sock"), path).unwrap();
        answer.starts_with("HTTP/1.1 200 ")
    }

    /// Whether a transfer has all its bytes but is not yet done with.
    fn has_finishing_transfer(&self) -> bool {
        let status = self.status();
        let finishing = |transfer: &serde_json::Value| transfer["received"] == transfer["size"];
        status["transfers"].as_array().unwrap().iter().any(finishing)
    }

    /// Where the blob with this digest stands, if it is there.
    pub fn blob_path(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        self.cache_dir.join("blobs/sha256").join(&hex[..2]).join(hex)
    }

    /// The blobs on disk.
    pub fn blobs(&self) -> Vec<PathBuf> {
        let files = super::chaos::files_under(&self.cache_dir.join("blobs"));
        files.into_iter().filter(|path| blob_name(path).is_some()).collect()
    }

    /// Every blob hashes to its name.
    #[track_caller]
    pub fn verify_all_blobs(&self) {
        for path in self.blobs() {
            // A blob may be evicted between the listing and the reading.
            let Ok(bytes) = std::fs::read(&path) else { continue };
            assert_eq!(blob_name(&path), Some(sha256(&bytes)), "{} lies", path.display());
        }
    }

    /// The store will be damaged by this test.
    pub fn expect_damage(&mut self) {
        self.damaged = true;
    }

    /// Files open in the process.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// Resident memory in bytes.
    pub fn rss(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid() as i32).unwrap(), signal).unwrap();
    }

    /// Waits for its end.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            if start.elapsed() > GUARD {
                drop(child.kill());
                panic!("{} does not end:\n{}", self.name, self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGTERM, and a clean end.
    pub fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait_exit();
        assert!(status.success(), "{} ended with {status}:\n{}", self.name, self.log());
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait_exit();
    }

    /// Starts it again on its old folders and waits until it serves.
    pub fn start_again(&mut self) {
        self.spawn();
        self.wait_ready();
    }

    /// Stops it cleanly and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Runs the command line against this node.
    pub fn cli(&self, arguments: &[&str]) -> Ran {
        run(self.command(arguments))
    }

    /// The program with this node's environment and configuration.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut words: Vec<&str> = self.wrapper.iter().map(String::as_str).collect();
        words.push(BINARY);
        words.extend(arguments);
        let config = self.config_file();
        let mut command = bare_command(words[0], self.home());
        command.args(&words[1..]).arg("--config").arg(config);
        command
    }

    pub fn log_file(&self) -> PathBuf {
        self.home().join("log")
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_file()).unwrap_or_default()).into_owned()
    }

    fn print_log(&self) {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        println!("── {} ({}), last lines of its log", self.name, self.proxy);
        lines.iter().skip(lines.len().saturating_sub(60)).for_each(|line| println!("{line}"));
    }
}

impl Drop for Larder {
    fn drop(&mut self) {
        let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap_or(None));
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            return self.print_log();
        }
        let log = self.log();
        let fault = ended.map(|status| format!("ended by itself: {status}"));
        let fault = fault.or_else(|| log.contains("panicked at").then(|| "panicked".to_owned()));
        if let Some(fault) = fault {
            self.print_log();
            panic!("{} {fault}", self.name);
        }
        if !self.damaged {
            self.verify_all_blobs();
        }
        drop(self.address.take());
    }
}

impl Ran {
    /// Standard output and error together.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    #[track_caller]
    pub fn assert_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.said());
        self
    }
}

/// A command with a clean environment: nothing of the caller's configuration or proxies leaks in.
pub fn bare_command(program: impl AsRef<std::ffi::OsStr>, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // where a build that counts coverage writes its counts
    if let Some(file) = std::env::var_os("LLVM_PROFILE_FILE") {
        command.env("LLVM_PROFILE_FILE", file);
    }
    command
}

/// Runs the program without a node, in this home folder.
pub fn larder(home: &Path, arguments: &[&str]) -> Ran {
    let mut command = bare_command(BINARY, home);
    command.args(arguments).current_dir(home);
    run(command)
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Ran {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        bytes: output.stdout,
    }
}

/// A GET over a Unix socket; the whole answer as text.
pub fn unix_get(socket: &Path, path: &str) -> Option<String> {
    let mut stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(GUARD)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).ok()?;
    Some(text)
}

/// Whether somebody accepts connections there.
pub fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

fn blob_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    (name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| name.to_owned())
}
