//! A mORMot peer as the protocol's page describes it: its own codec, its broadcasts, its HTTP, its grudges.
//!
//! It shares no line with the program's room of that name. It listens where a POSIX original does (on the
//! broadcast address alone) or where a Windows one does (on its own address alone), bans whoever sends a bad
//! frame or earns a status that bans, and remembers whom. What it would ban this suite looks at in the end.

mod http;
pub mod wire;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::body;
use super::script::Script;
pub use http::{Got, Request};
use wire::{Keys, Message};

/// How often a thread looks whether it should end.
const LOOK: Duration = Duration::from_millis(20);

/// What one of them holds.
#[derive(Clone, Debug)]
pub struct File {
    pub bytes: Vec<u8>,
    /// So many bytes at once, then a pause: it is still being downloaded.
    pub arriving: Option<(usize, Duration)>,
    /// What is answered instead of it.
    pub status: Option<u16>,
    /// The connection ends after so many bytes.
    pub cut: Option<usize>,
}

/// A running peer; it ends when it is dropped.
pub struct Original {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What its threads share.
pub struct Shared {
    pub ip: Ipv4Addr,
    pub broadcast: Ipv4Addr,
    pub port: u16,
    pub keys: Keys,
    pub windows: bool,
    seq: AtomicU32,
    stop: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    files: HashMap<String, File>,
    heard: Vec<(Message, Ipv4Addr)>,
    requests: Vec<Request>,
    /// Why each of them was banned.
    bans: HashMap<IpAddr, String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn ban(&self, address: IpAddr, why: impl Into<String>) {
        self.state().bans.entry(address).or_insert_with(|| why.into());
    }

    /// A message of its own, to be filled in.
    fn say(&self, kind: u8) -> Message {
        let mut message = Message::new(kind);
        message.set_seq(self.seq.fetch_add(1, Ordering::SeqCst));
        message.set_uuid([0x5a; 16]);
        message.set_os(if self.windows { [1, 22, 0x65, 0x4a] } else { [8, 44, 18, 6] });
        message.set_addresses(self.ip, self.broadcast, Ipv4Addr::new(255, 255, 255, 0), self.broadcast);
        message.set_link(1000, 1);
        message.set_timestamp(313_000_000);
        message
    }

    fn held(&self, hash: &str, size: u64) -> Option<File> {
        let file = self.state().files.get(hash).cloned()?;
        (size == 0 || size == file.bytes.len() as u64).then_some(file)
    }
}

impl Original {
    /// On its own address of a network with this broadcast address.
    pub fn start(ip: IpAddr, broadcast: &str, port: u16, secret: &str, windows: bool) -> Self {
        let IpAddr::V4(ip) = ip else { panic!("{ip} is no IPv4 address") };
        let shared = Arc::new(Shared {
            ip,
            broadcast: broadcast.parse().unwrap(),
            port,
            keys: Keys::derive(secret.as_bytes()),
            windows,
            seq: AtomicU32::new(0x0102_0304),
            stop: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        // there one socket hears both; here it takes two
        let ears = if windows { vec![ip, shared.broadcast] } else { vec![shared.broadcast] };
        let doors = TcpListener::bind((ip, port)).unwrap_or_else(|error| panic!("{ip}:{port}: {error}"));
        doors.set_nonblocking(true).unwrap();
        let serving = Arc::clone(&shared);
        let mut threads = vec![std::thread::spawn(move || http::serve(&doors, &serving))];
        for at in ears {
            let (ear, hearing) = (socket(SocketAddrV4::new(at, port), true), Arc::clone(&shared));
            let answers = at == ip || !windows;
            threads.push(std::thread::spawn(move || hear(&ear, answers, &hearing)));
        }
        Self { shared, threads }
    }

    pub fn ip(&self) -> IpAddr {
        self.shared.ip.into()
    }

    /// Holds what a script describes.
    pub fn holds(&self, script: &Script) {
        self.holds_as(
            script,
            File { bytes: body::slice(script.seed, 0..script.size), arriving: None, status: None, cut: None },
        );
    }

    /// Says that it holds it, and has this.
    pub fn holds_as(&self, script: &Script, file: File) {
        let hash = script.digest().trim_start_matches("sha256:").to_owned();
        self.shared.state().files.insert(hash, file);
    }

    /// Asks the network, as `mget` does, and gives the answers to it within `wait`, or until there are `enough`.
    pub fn ask(&self, digest: &str, size: u64, enough: usize, wait: Duration) -> Vec<Message> {
        let mut question = self.shared.say(2);
        question.set_hash(2, &wire::unhex(digest.trim_start_matches("sha256:")));
        question.set_size(size);
        self.send(&question, enough, wait)
    }

    /// Who is there?
    pub fn ping(&self, enough: usize, wait: Duration) -> Vec<Message> {
        self.send(&self.shared.say(0), enough, wait)
    }

    fn send(&self, question: &Message, enough: usize, wait: Duration) -> Vec<Message> {
        self.broadcast(&self.shared.keys.seal(question));
        let start = Instant::now();
        let is_ours = |(message, _): &&(Message, Ipv4Addr)| {
            message.seq() == question.seq() && message.to() == self.shared.ip && message.is_answer()
        };
        let mut state = self.shared.state();
        loop {
            let answers: Vec<Message> = state.heard.iter().filter(is_ours).map(|(m, _)| m.clone()).collect();
            if answers.len() >= enough || start.elapsed() >= wait {
                return answers;
            }
            state = self.shared.changed.wait_timeout(state, LOOK).unwrap().0;
        }
    }

    /// Puts bytes on the wire from a fresh socket.
    pub fn broadcast(&self, bytes: &[u8]) {
        let mouth = socket(SocketAddrV4::new(self.shared.ip, 0), false);
        mouth.send_to(bytes, (self.shared.broadcast, self.shared.port)).unwrap();
    }

    /// Downloads from whoever gave this answer, by a token made of it.
    pub fn get(&self, answer: &Message, range: Option<&str>) -> Got {
        self.request("GET", answer, range, |_| ())
    }

    /// The same with another method and a token changed at will.
    pub fn request(
        &self,
        method: &str,
        answer: &Message,
        range: Option<&str>,
        change: impl FnOnce(&mut Message),
    ) -> Got {
        let mut token = answer.clone();
        token.set_kind(7);
        change(&mut token);
        let peer = SocketAddrV4::new(answer.address(), self.shared.port);
        http::get(self.shared.ip, peer, method, &self.shared.keys.token(&token), range)
    }

    /// Every message that others sent.
    pub fn heard(&self) -> Vec<(Message, Ipv4Addr)> {
        self.shared.state().heard.clone()
    }

    /// Every request for files.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// Whom it banned, and why.
    pub fn bans(&self) -> HashMap<IpAddr, String> {
        self.shared.state().bans.clone()
    }

    pub fn keys(&self) -> &Keys {
        &self.shared.keys
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

fn socket(address: SocketAddrV4, shared: bool) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_address(shared).unwrap();
    socket.set_broadcast(true).unwrap();
    socket.bind(&address.into()).unwrap_or_else(|error| panic!("{address}: {error}"));
    socket.set_read_timeout(Some(LOOK)).unwrap();
    socket.into()
}

/// The thread that hears, and answers; where `answers` come another way, those that come here do not count.
fn hear(ear: &UdpSocket, answers: bool, shared: &Shared) {
    let mouth = socket(SocketAddrV4::new(shared.ip, 0), false);
    let mut buffer = [0; 2048];
    let mut refused = HashSet::new();
    while !shared.stop.load(Ordering::SeqCst) {
        let Ok((length, from)) = ear.recv_from(&mut buffer) else { continue };
        let IpAddr::V4(source) = from.ip() else { continue };
        if source == shared.ip || refused.contains(&source) {
            continue;
        }
        let message = match shared.keys.open(&buffer[..length]) {
            Ok(message) => message,
            Err(why) => {
                shared.ban(source.into(), why);
                refused.insert(source);
                continue;
            }
        };
        if let Some(answer) = answer(shared, &message, source) {
            let to = if message.os()[0] == 1 { source } else { shared.broadcast };
            mouth.send_to(&shared.keys.seal(&answer), (to, shared.port)).unwrap();
        }
        if answers || !message.is_answer() {
            shared.state().heard.push((message, source));
            shared.changed.notify_all();
        }
    }
}

fn answer(shared: &Shared, message: &Message, source: Ipv4Addr) -> Option<Message> {
    let kind = match message.kind() {
        0 => 1,
        2 => match shared.held(&message.hash_hex(), message.size()) {
            Some(file) if file.arriving.is_some() => 5,
            Some(_) => 6,
            None => 3,
        },
        _ => return None,
    };
    let mut answer = shared.say(kind);
    answer.set_seq(message.seq());
    answer.copy_hash(message);
    answer.set_to(source);
    if kind >= 5 {
        let held = shared.held(&message.hash_hex(), 0).map_or(0, |file| file.bytes.len());
        answer.set_size(held as u64);
    }
    Some(answer)
}
