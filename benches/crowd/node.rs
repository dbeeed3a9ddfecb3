//! One real node.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::Asking;
use super::lan::{Lan, Running};

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_larder");
/// How long a site may take to know itself.
const GUARD: Duration = Duration::from_secs(60);

/// A node on a machine of its own.
pub(crate) struct Node {
    number: usize,
    home: tempfile::TempDir,
    running: Running,
}

impl Node {
    /// Starts it with an empty cache, and these lines more about peers.
    pub(crate) fn start(lan: &Lan, number: usize, peers: &str) -> Self {
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        let at = home.path().display();
        let config = format!(
            "site = \"bench\"\nsecret_file = \"{at}/secret\"\nstate_dir = \"{at}/state\"\nnode_name = \"n{number}\"\n\
             [cache]\ndir = \"{at}/cache\"\nmin_free = \"1MiB\"\n[proxy]\nlisten = [\"127.0.0.1:8098\"]\n\
             [admin]\nlisten = [\"127.0.0.1:8097\"]\n[peers]\nlisten = [\"10.98.0.{number}:8096\"]\n\
             broadcast = [\"10.98.0.255:8096\"]\n{peers}\n[log]\nlevel = \"info,larder=debug\"\nformat = \"text\"\n"
        );
        std::fs::write(home.path().join("larder.toml"), config).unwrap();
        let secret = home.path().join("secret");
        std::fs::write(&secret, "a secret of this benchmark alone, and of no site\n").unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        let log = std::fs::File::create(home.path().join("log")).unwrap();
        let errors = log.try_clone().unwrap();
        let mut command = lan.inside(number);
        let command = command.args([BINARY, "run", "--config"]).arg(home.path().join("larder.toml"));
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().unwrap();
        Self { number, home, running: Running(child) }
    }

    /// Waits until it knows so many others.
    pub(crate) fn wait_for_neighbours(&self, count: usize) {
        let start = Instant::now();
        let known = || self.said("peers").and_then(|list| Some(list.as_array()?.len()));
        while known().is_none_or(|known| known < count) {
            if start.elapsed() > GUARD {
                self.show_log();
                panic!("node {} knows {:?} of {count} others", self.number, known());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether it has the file from the origin.
    pub(crate) fn fetches(&self) -> bool {
        let running = self.said("transfers").unwrap_or_default();
        running.as_array().is_some_and(|list| list.iter().any(|transfer| transfer["source"] == "origin"))
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        self.running.0.kill().unwrap();
        self.running.0.wait().unwrap();
    }

    /// A client on its machine, which asks at this time.
    pub(crate) fn ask(&self, lan: &Lan, at_ms: u64, digest: &str) -> Asking {
        let mut command = lan.inside(self.number);
        let command = command.arg(std::env::current_exe().unwrap());
        let command = command.args(["as-client", "127.0.0.1:8098", &lan.url(), &at_ms.to_string(), digest]);
        Asking::new(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// A client on its machine that reads the file again and again for so many seconds.
    pub(crate) fn read(&self, lan: &Lan, seconds: u64) -> Child {
        let mut command = lan.inside(self.number);
        let command = command.arg(std::env::current_exe().unwrap());
        let command = command.args(["as-reader", "127.0.0.1:8098", &lan.url(), &seconds.to_string()]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// What the command line says of it; its admin socket is a file, and needs no namespace.
    fn said(&self, what: &str) -> Option<serde_json::Value> {
        let mut command = Command::new(BINARY);
        let command = command.args([what, "--json", "--config"]).arg(self.home.path().join("larder.toml"));
        let output = command.stderr(Stdio::null()).output().unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Prints what it wrote.
    pub(crate) fn show_log(&self) {
        let log = std::fs::read_to_string(self.home.path().join("log")).unwrap();
        println!("── node {}", self.number);
        log.lines().filter(|line| !line.contains("INFO")).for_each(|line| println!("{line}"));
    }
}
