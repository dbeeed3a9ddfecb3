//! Programs beside each other: started, pinned to a core, watched, ended.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The core of servers, and that of clients.
pub(crate) const SERVER: &str = "0";
pub(crate) const CLIENT: &str = "1";
/// The kernel counts processor time in hundredths of a second.
const TICK: f64 = 0.01;

/// A program that runs until this is dropped.
pub(crate) struct Program {
    child: Child,
}

/// A folder of one scenario, readable by servers that give up their rights.
pub(crate) fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::Builder::new().prefix("larder-bench-").tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A port of this machine that is free now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A file of so many bytes that no compression makes smaller.
pub(crate) fn write_file(path: &Path, size: u64) {
    let mut block = vec![0; 1 << 20];
    getrandom::fill(&mut block).unwrap();
    let mut file = std::fs::File::create(path).unwrap();
    let mut left = size;
    let mut number = 0_u64;
    while left > 0 {
        // no two blocks are alike
        number += 1;
        block.splice(..8, number.to_le_bytes());
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        file.write_all(block.get(..part).unwrap()).unwrap();
        left -= part as u64;
    }
}

/// A command that runs on this core.
pub(crate) fn pinned(core: &str, program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core, program]).stdin(Stdio::null());
    command
}

impl Program {
    /// Starts it and waits until it listens.
    pub(crate) fn start(mut command: Command, listens: SocketAddr) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let program = Self { child };
        let patience = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(listens).is_err() {
            assert!(Instant::now() < patience, "{command:?} does not listen on {listens}");
            std::thread::sleep(Duration::from_millis(5));
        }
        program
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Processor time of it and its children so far.
    pub(crate) fn cpu(&self) -> f64 {
        family(self.id()).into_iter().filter_map(cpu_of).sum()
    }

    /// The most memory it and its children had, in MiB.
    pub(crate) fn peak(&self) -> f64 {
        family(self.id()).into_iter().map(|id| memory_of(id, "VmHWM:")).sum()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        for id in family(self.id()) {
            let _gone_already = Command::new("kill").arg(id.to_string()).stderr(Stdio::null()).status();
        }
        let patience = Instant::now() + Duration::from_secs(5);
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// The process and those it started.
fn family(id: u32) -> Vec<u32> {
    let mut family = vec![id];
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let processes: Vec<u32> =
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(processes.iter().copied().filter(|id| parent_of(*id) == Some(parent)));
        at += 1;
    }
    family
}

/// The fields of `/proc/<id>/stat` behind the name.
fn stat_of(id: u32) -> Option<Vec<u64>> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split(' ').map(|field| field.trim().parse().unwrap_or(0)).collect())
}

fn parent_of(id: u32) -> Option<u32> {
    stat_of(id)?.get(1).and_then(|parent| u32::try_from(*parent).ok())
}

fn cpu_of(id: u32) -> Option<f64> {
    let fields = stat_of(id)?;
    let ticks = fields.get(11)? + fields.get(12)?;
    Some(ticks as f64 * TICK)
}

/// A line of `/proc/<id>/status`, in MiB.
pub(crate) fn memory_of(id: u32, line: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let value = text.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_default();
    value.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(0.0) / 1024.0
}

/// An nginx of one worker with these `http` directives.
pub(crate) fn nginx(folder: &Path, name: &str, core: &str, port: u16, http: &str) -> Program {
    let home = folder.join(name);
    std::fs::create_dir_all(home.join("cache")).unwrap();
    let home_text = home.display();
    let config = format!(
        "daemon off; worker_processes 1; pid {home_text}/pid; error_log {home_text}/error.log; user root;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; keepalive_timeout 600;\n\
         default_type application/octet-stream; client_body_temp_path {home_text}/body;\n\
         proxy_temp_path {home_text}/cache/temp; fastcgi_temp_path {home_text}/f; uwsgi_temp_path {home_text}/u;\n\
         scgi_temp_path {home_text}/s;\n{http}\n}}\n"
    );
    let file = home.join("nginx.conf");
    std::fs::write(&file, config).unwrap();
    let mut command = pinned(core, "nginx");
    command.arg("-c").arg(&file).arg("-p").arg(&home);
    Program::start(command, address(port))
}

/// A squid that keeps what passes, in memory what is small and on disk what is large.
pub(crate) fn squid(folder: &Path, core: &str, port: u16) -> Program {
    let home = folder.join("squid");
    std::fs::create_dir_all(home.join("cache")).unwrap();
    let owned = Command::new("chown").args(["-R", "proxy"]).arg(&home).status().unwrap();
    assert!(owned.success(), "squid's user owns its folder");
    let text = home.display();
    let config = format!(
        "http_port 127.0.0.1:{port}\nhttp_access allow all\nvisible_hostname bench\npid_filename {text}/pid\n\
         cache_dir aufs {text}/cache 16384 16 256\ncache_mem 256 MB\nmaximum_object_size 8 GB\n\
         maximum_object_size_in_memory 4 MB\naccess_log none\ncache_log {text}/log\ncache_store_log none\n\
         shutdown_lifetime 0 seconds\nclient_persistent_connections on\ncoredump_dir {text}\n"
    );
    let file = home.join("squid.conf");
    std::fs::write(&file, config).unwrap();
    let made = Command::new("squid").args(["-N", "-z", "-f"]).arg(&file).stderr(Stdio::null()).status();
    assert!(made.unwrap().success(), "squid makes its folders");
    let mut command = pinned(core, "squid");
    command.args(["-N", "-f"]).arg(&file);
    Program::start(command, address(port))
}

/// On loopback.
pub(crate) fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Where a thing is kept during one scenario.
pub(crate) fn place(folder: &Path, name: &str) -> PathBuf {
    let place = folder.join(name);
    std::fs::create_dir_all(&place).unwrap();
    place
}
