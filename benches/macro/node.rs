//! A node of ours, with the settings a user would have.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Settings;
use super::programs::{Program, address, free_port, pinned};

/// A running node.
pub(crate) struct Node {
    pub(crate) program: Program,
    pub(crate) proxy: u16,
    pub(crate) admin: u16,
}

/// A node that is described.
pub(crate) struct Description {
    home: PathBuf,
    proxy: u16,
    admin: u16,
}

impl Description {
    /// A node at home in `folder`, with further lines of configuration.
    pub(crate) fn write(folder: &Path, name: &str, more: &str) -> Self {
        let home = folder.join(name);
        std::fs::create_dir_all(&home).unwrap();
        let (proxy, admin) = (free_port(), free_port());
        let text = home.display();
        let config = format!(
            "state_dir = \"{text}/state\"\nnode_name = \"{name}\"\ndrain_timeout = \"1s\"\n\
             cache.dir = \"{text}/cache\"\ncache.min_free = \"1MiB\"\ncache.max_size = \"4TiB\"\n\
             proxy.listen = [\"127.0.0.1:{proxy}\"]\nadmin.listen = [\"127.0.0.1:{admin}\"]\n\
             log.level = \"warn\"\n{more}\n"
        );
        std::fs::write(home.join("larder.toml"), config).unwrap();
        Self { home, proxy, admin }
    }

    /// The command that runs it.
    pub(crate) fn command(&self, settings: &Settings, core: &str) -> Command {
        let mut command = pinned(core, &settings.larder);
        command.arg("--config").arg(self.home.join("larder.toml")).arg("run");
        command.env_remove("LARDER_SECRET");
        command
    }

    /// Its configuration.
    pub(crate) fn file(&self) -> PathBuf {
        self.home.join("larder.toml")
    }

    pub(crate) const fn proxy(&self) -> u16 {
        self.proxy
    }

    pub(crate) const fn admin(&self) -> u16 {
        self.admin
    }

    /// Starts it and waits until it serves.
    pub(crate) fn start(self, settings: &Settings, core: &str) -> Node {
        let program = Program::start(self.command(settings, core), address(self.proxy));
        let node = Node { program, proxy: self.proxy, admin: self.admin };
        let patience = Instant::now() + Duration::from_secs(60);
        while !is_ready(node.admin) {
            assert!(Instant::now() < patience, "the node becomes ready");
            std::thread::sleep(Duration::from_millis(2));
        }
        node
    }
}

/// Whether a node says that it is ready.
pub(crate) fn is_ready(admin: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(address(admin)) else { return false };
    let request = format!("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:{admin}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}
