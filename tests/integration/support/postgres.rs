//! A PostgreSQL server of a test's own, from Debian's package, in a folder of its own.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};

/// The account, which may do everything, and its password.
pub(crate) const USER: &str = "larder";
pub(crate) const PASSWORD: &str = "a word of no account";

/// A running server; it ends with this.
pub(crate) struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    address: IpAddr,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// Starts one that lets in who has the password; none, with a printed reason, where it is not installed.
    pub(crate) fn start(address: IpAddr) -> Option<Self> {
        let Some(programs) = programs() else {
            println!("skipped: postgresql is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        std::fs::write(folder.path().join("password"), PASSWORD).unwrap();
        let port = std::net::TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port();
        let mut postgres = Self { folder, programs, address, port, server: None };
        let mut init = postgres.command("initdb");
        init.args(["-A", "scram-sha-256", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync", "--pwfile"]);
        let made = init.arg(postgres.path("password")).arg("-D").arg(postgres.path("data")).output().unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let access = postgres.path("data").join("pg_hba.conf");
        let everywhere = "local all all trust\nhost all all all scram-sha-256\n";
        std::fs::write(access, everywhere).unwrap();
        postgres.run();
        Some(postgres)
    }

    /// Starts it again after [`Postgres::kill`].
    pub(crate) fn run(&mut self) {
        let settings = [
            format!("listen_addresses={}", self.address),
            format!("unix_socket_directories={}", self.folder.path().display()),
            "fsync=off".to_owned(),
            "max_connections=50".to_owned(),
        ];
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.path("data")).args(["-p", &self.port.to_string()]);
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        let log = std::fs::File::create(self.path("log")).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        self.server = Some(command.spawn().unwrap());
        let ready = || self.ask("postgres", "SELECT 1").is_ok_and(|said| said.trim() == "1");
        let pause = || std::thread::sleep(Duration::from_millis(20));
        let ready = (0..3000).any(|_| {
            let ready = ready();
            (!ready).then(pause);
            ready
        });
        let log = || std::fs::read_to_string(self.path("log")).unwrap_or_default();
        assert!(ready, "postgres does not start:\n{}", log());
    }

    /// Ends it without a goodbye to anybody.
    pub(crate) fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        signal_all(&server, Signal::CONT);
        kill_process(Pid::from_child(&server), Signal::QUIT).unwrap();
        server.wait().unwrap();
    }

    /// It hangs: connections stay, and nothing is answered.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// It goes on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Where it is, without the password.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}:{}/{database}?sslmode=disable", self.address, self.port)
    }

    /// A file with the password.
    pub(crate) fn password_file(&self) -> PathBuf {
        self.path("password")
    }

    /// Makes a database without tables.
    pub(crate) fn database(&self, name: &str) {
        self.sql(&format!("CREATE DATABASE {name}"));
    }

    /// What psql says to a statement.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.sql_in("postgres", sql)
    }

    /// The same in another database.
    pub(crate) fn sql_in(&self, database: &str, sql: &str) -> String {
        self.ask(database, sql).unwrap_or_else(|said| panic!("{sql}: {said}"))
    }

    fn ask(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-t", "-A", "-U", USER, "-p", &self.port.to_string(), "-d", database, "-h"]);
        let said = psql.arg(self.folder.path()).args(["-c", sql]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if said.status.success() { Ok(text(&said.stdout)) } else { Err(text(&said.stderr)) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Under another account where we are root: it refuses to be.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        if !geteuid().is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(program);
        command
    }

    fn signal(&self, signal: Signal) {
        if let Some(server) = &self.server {
            signal_all(server, signal);
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The server and its sessions, which are its children.
fn signal_all(server: &Child, signal: Signal) {
    let of_server = |status: &str| {
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent.is_some_and(|parent| parent.trim() == server.id().to_string())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let children = all.filter(|entry| {
        std::fs::read_to_string(entry.path().join("status")).is_ok_and(|status| of_server(&status))
    });
    let children = children.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let server = i32::try_from(server.id()).unwrap();
    for pid in std::iter::once(server).chain(children).filter_map(Pid::from_raw) {
        // a session may have ended meanwhile
        kill_process(pid, signal).unwrap_or_default();
    }
}

/// Debian has them beside each other, one folder a version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.into_iter().rfind(|folder: &PathBuf| has(folder, "initdb") && has(folder, "psql"))
}

fn has(folder: &Path, program: &str) -> bool {
    folder.join(program).exists()
}
