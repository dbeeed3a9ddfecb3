//! The demonstration's nodes: this program, three times, with folders and ports of their own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::digest::{Digest, hex};
use crate::seal::Secret;

const POLL: Duration = Duration::from_millis(20);
const START: Duration = Duration::from_secs(30);

/// All nodes, and the folder they live in.
pub(super) struct Site {
    folder: PathBuf,
    nodes: Vec<Node>,
}

/// One node.
pub(super) struct Node {
    name: String,
    process: Child,
    doors: SocketAddr,
    admin: SocketAddr,
    token: PathBuf,
}

impl Site {
    pub(super) async fn start(count: u8) -> Result<Self, String> {
        let folder = make_folder()?;
        let mut site = Self { folder, nodes: Vec::new() };
        let secret = Secret::generate().map_err(|error| error.to_string())?;
        write(&site.folder.join("secret"), &secret)?;
        let peers = free_port(Ipv4Addr::new(127, 0, 0, 2), true)?;
        for number in 2..2 + count {
            let node = Node::start(&site.folder, number, peers)?;
            site.nodes.push(node);
        }
        for node in &mut site.nodes {
            node.wait_until_ready().await?;
        }
        Ok(site)
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Every node has heard all others.
    pub(super) async fn wait_until_acquainted(&self) -> Result<(), String> {
        let others = self.nodes.len() - 1;
        let acquainted = async {
            for node in &self.nodes {
                while node.peers().await.unwrap_or(0) < others {
                    tokio::time::sleep(POLL).await;
                }
            }
        };
        let late = "the nodes do not hear each other: is broadcast on the loopback interface blocked?";
        tokio::time::timeout(START, acquainted).await.map_err(|_late| late.to_owned())
    }

    /// Asks all nodes to stop and waits for them.
    pub(super) async fn stop(mut self) {
        for node in &self.nodes {
            node.ask_to_stop();
        }
        for node in &mut self.nodes {
            let ended = async {
                while matches!(node.process.try_wait(), Ok(None)) {
                    tokio::time::sleep(POLL).await;
                }
            };
            if tokio::time::timeout(Duration::from_secs(5), ended).await.is_err() {
                tracing::debug!(node = node.name, "a node did not stop in time");
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if matches!(node.process.try_wait(), Ok(None)) {
                let ended = node.process.kill().and_then(|()| node.process.wait().map(drop));
                if let Err(error) = ended {
                    tracing::debug!(%error, "failed to end a node");
                }
            }
        }
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, "failed to remove the demonstration's folder");
        }
    }
}

impl Node {
    fn start(folder: &Path, number: u8, peers: u16) -> Result<Self, String> {
        let name = format!("node-{}", number - 1);
        let address = Ipv4Addr::new(127, 0, 0, number);
        let home = folder.join(&name);
        let (doors, admin) = (free_port(address, false)?, free_port(address, false)?);
        std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
        let config = format!(
            "site = \"demo\"\nnode_name = \"{name}\"\nsecret_file = \"../secret\"\nstate_dir = \"state\"\n\
             drain_timeout = \"1s\"\n\
             [cache]\ndir = \"cache\"\nmax_size = \"1GiB\"\nmin_free = \"0\"\n\
             [proxy]\nlisten = [\"{address}:{doors}\"]\n\
             [admin]\nlisten = [\"{address}:{admin}\"]\nsocket = \"admin.sock\"\n\
             [peers]\nlisten = [\"{address}\"]\nport = {peers}\nbroadcast = [\"127.255.255.255:{peers}\"]\n\
             [log]\nlevel = \"warn\"\n"
        );
        let file = home.join("larder.toml");
        write(&file, &config)?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("run").arg("--config").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        // what is set for a daemon of this user must not reach the demonstration's
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
        }
        let process = command.spawn().map_err(|error| format!("cannot start a node: {error}"))?;
        let token = home.join("state").join("admin.token");
        let (doors, admin) = ((address, doors).into(), (address, admin).into());
        Ok(Self { name, process, doors, admin, token })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    async fn wait_until_ready(&mut self) -> Result<(), String> {
        let ready = async {
            loop {
                if let Ok(Some(status)) = self.process.try_wait() {
                    return Err(format!("{} ended at its start: {status}", self.name));
                }
                if self.ask("/readyz", None).await.is_ok_and(|response| response.status().is_success()) {
                    return Ok(());
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::time::timeout(START, ready).await.map_err(|_late| "a node was not ready in time".to_owned())?
    }

    /// How many neighbours it knows.
    async fn peers(&self) -> Result<usize, String> {
        let token = std::fs::read_to_string(&self.token).map_err(|error| error.to_string())?;
        let response = self.ask("/status", Some(token.trim())).await?;
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        let status: serde_json::Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        Ok(status.get("peers").and_then(|peers| peers.as_array()).map_or(0, Vec::len))
    }

    async fn ask(&self, path: &str, token: Option<&str>) -> Result<http::Response<Incoming>, String> {
        let mut request = Request::get(path).header("host", self.admin.to_string());
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        send(self.admin, request.body(Empty::new()).map_err(|error| error.to_string())?).await
    }

    /// Downloads through the proxy port; gives the source and each piece to `take`.
    pub(super) async fn get(
        &self,
        url: &str,
        digest: Digest,
        mut take: impl FnMut(&str, &[u8]),
    ) -> Result<(), String> {
        let host = self.doors.to_string();
        let request = Request::get(url).header("host", host).header("larder-digest", digest.to_string());
        let request = request.body(Empty::new()).map_err(|error| error.to_string())?;
        let response = send(self.doors, request).await?;
        if !response.status().is_success() {
            return Err(format!("{} was answered {}", self.name, response.status()));
        }
        let status =
            response.headers().get("cache-status").and_then(|status| status.to_str().ok()).unwrap_or("");
        let source = status.split('"').nth(1).unwrap_or("cache").to_owned();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| error.to_string())?;
            if let Some(data) = frame.data_ref() {
                take(&source, data);
            }
        }
        Ok(())
    }

    fn ask_to_stop(&self) {
        let id = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(id) = id
            && let Err(error) = rustix::process::kill_process(id, rustix::process::Signal::TERM)
        {
            tracing::debug!(%error, "failed to ask a node to stop");
        }
    }
}

async fn send(to: SocketAddr, request: Request<Empty<Bytes>>) -> Result<http::Response<Incoming>, String> {
    let stream = TcpStream::connect(to).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // ends with the body
    drop(tokio::spawn(connection));
    sender.send_request(request).await.map_err(|error| error.to_string())
}

fn is_ours(name: &std::ffi::OsStr) -> bool {
    let ours =
        |name: &str| name.starts_with("LARDER_") || name.ends_with("_DIRECTORY") || name == "NOTIFY_SOCKET";
    name.to_str().is_some_and(ours)
}

/// A port that nobody has now, on TCP and, where asked, on UDP.
fn free_port(address: Ipv4Addr, with_udp: bool) -> Result<u16, String> {
    for _ in 0..50 {
        let listener = TcpListener::bind((address, 0))
            .map_err(|error| format!("cannot listen on {address}: {error}"))?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        if !with_udp || UdpSocket::bind((address, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(format!("no free port on {address}"))
}

fn make_folder() -> Result<PathBuf, String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| error.to_string())?;
    let folder = std::env::temp_dir().join(format!("larder-demo-{}", hex(&random)));
    std::fs::create_dir(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    Ok(folder)
}

/// For this user alone: one of the files is a secret.
fn write(file: &Path, text: &str) -> Result<(), String> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let open = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(file);
    open.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}
