//! A small blocking HTTP/1.1 client on raw sockets: it sends what it is told, byte for byte, and says
//! honestly how an answer ended.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::script::Script;
use super::{GUARD, find};

/// How the body of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As its framing promised.
    Complete,
    /// Before that, by a close or a reset.
    Truncated,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub version: String,
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub ending: Ending,
    pub first_byte: Duration,
    pub took: Duration,
}

/// A request that is being put together.
#[derive(Clone, Debug)]
pub struct Ask {
    to: SocketAddr,
    from: Option<IpAddr>,
    method: String,
    target: String,
    version: &'static str,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A connection whose answers are read one after the other.
pub struct Connection {
    stream: TcpStream,
    ahead: Vec<u8>,
    closed: bool,
}

/// An answer whose body is still coming.
pub struct Reading {
    connection: Connection,
    head: Head,
    left: Left,
    body: Vec<u8>,
    start: Instant,
    first_byte: Duration,
}

#[derive(Clone)]
struct Head {
    version: String,
    status: u16,
    fields: Vec<(String, String)>,
}

/// What of the body is still to come.
enum Left {
    Bytes(u64),
    Chunks { open: u64 },
    UntilClose,
    Done,
    Broken,
}

impl Ask {
    /// A request in absolute form, as a program sends it that has `proxy` as its proxy.
    pub fn through(proxy: SocketAddr, url: &str) -> Self {
        let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        Self::new(proxy, "GET", url).field("Host", host)
    }

    /// A request with exactly this target and no fields.
    pub fn new(to: SocketAddr, method: &str, target: &str) -> Self {
        Self {
            to,
            from: None,
            method: method.into(),
            target: target.into(),
            version: "HTTP/1.1",
            fields: Vec::new(),
            body: Vec::new(),
        }
    }

    pub fn method(mut self, method: &str) -> Self {
        self.method = method.into();
        self
    }

    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// `Range: bytes=…`.
    pub fn range(self, range: &str) -> Self {
        self.field("Range", &format!("bytes={range}"))
    }

    pub fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.field("Content-Length", &body.len().to_string())
    }

    /// An HTTP/1.0 request.
    pub fn http10(mut self) -> Self {
        self.version = "HTTP/1.0";
        self
    }

    /// From this address of our own.
    pub fn from(mut self, address: IpAddr) -> Self {
        self.from = Some(address);
        self
    }

    /// Sends it and reads the whole answer.
    pub fn send(self) -> Answer {
        self.try_send().unwrap()
    }

    /// The same where no answer is a possible outcome.
    pub fn try_send(self) -> io::Result<Answer> {
        Ok(self.try_open()?.rest())
    }

    /// Sends it and reads the head.
    pub fn open(self) -> Reading {
        self.try_open().unwrap()
    }

    /// The same where no answer is a possible outcome.
    pub fn try_open(self) -> io::Result<Reading> {
        let start = Instant::now();
        let mut connection = Connection::from(self.to, self.from)?;
        connection.write(&self.bytes())?;
        connection.read(&self.method, start)
    }

    /// The request as it stands on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} {}\r\n", self.method, self.target, self.version);
        self.fields.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }
}

impl Connection {
    /// Connects.
    pub fn to(address: SocketAddr) -> io::Result<Self> {
        Self::from(address, None)
    }

    /// Connects from this address of our own, if one is named.
    pub fn from(address: SocketAddr, from: Option<IpAddr>) -> io::Result<Self> {
        let socket =
            socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
        if let Some(own) = from {
            socket.bind(&SocketAddr::new(own, 0).into())?;
        }
        socket.connect_timeout(&address.into(), GUARD)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(GUARD * 2))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, ahead: Vec::new(), closed: false })
    }

    /// Sends these bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Closes our sending half.
    pub fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Reads the next answer whole; the connection can be used again.
    pub fn answer(&mut self, method: &str) -> Answer {
        let start = Instant::now();
        let taken = Self {
            stream: self.stream.try_clone().unwrap(),
            ahead: std::mem::take(&mut self.ahead),
            closed: self.closed,
        };
        let mut reading = taken.read(method, start).unwrap();
        while reading.step().is_some() {}
        let (answer, connection) = reading.finish();
        self.ahead = connection.ahead;
        self.closed = connection.closed;
        answer
    }

    /// Whatever else arrives until the other side closes.
    pub fn drain(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.ahead)
    }

    fn read(mut self, method: &str, start: Instant) -> io::Result<Reading> {
        let head = self.head()?;
        let left = Left::of(method, &head);
        Ok(Reading { connection: self, head, left, body: Vec::new(), start, first_byte: start.elapsed() })
    }

    /// The next final head; interim ones are skipped.
    fn head(&mut self) -> io::Result<Head> {
        loop {
            let end = loop {
                if let Some(at) = find(&self.ahead, b"\r\n\r\n") {
                    break at;
                }
                if !self.more() {
                    let had = String::from_utf8_lossy(&self.ahead).into_owned();
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        format!("no answer, but {had:?}"),
                    ));
                }
            };
            let bytes: Vec<u8> = self.ahead.drain(..end + 4).collect();
            let head = Head::parse(&String::from_utf8_lossy(&bytes[..end]));
            if head.status >= 200 || head.status == 101 {
                return Ok(head);
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        while find(&self.ahead, b"\r\n").is_none() {
            if !self.more() {
                return None;
            }
        }
        let end = find(&self.ahead, b"\r\n")?;
        let line: Vec<u8> = self.ahead.drain(..end + 2).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    fn more(&mut self) -> bool {
        if self.closed {
            return false;
        }
        let mut buffer = vec![0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(count) if count > 0 => {
                self.ahead.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                panic!("nothing came for {:?}", GUARD * 2)
            }
            // a socket with a read timeout is never restarted by the kernel
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.more(),
            _ => {
                self.closed = true;
                false
            }
        }
    }
}

impl Head {
    fn parse(text: &str) -> Self {
        let mut lines = text.split("\r\n");
        let mut first = lines.next().unwrap_or_default().splitn(3, ' ');
        let version = first.next().unwrap_or_default().to_owned();
        let status = first.next().and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("not an HTTP answer: {text:?}"));
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        Self { version, status, fields }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Left {
    fn of(method: &str, head: &Head) -> Self {
        let bodyless = method == "HEAD" || head.status == 304 || head.status == 204;
        if bodyless || (method == "CONNECT" && head.status == 200) {
            return Self::Done;
        }
        if head.field("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return Self::Chunks { open: 0 };
        }
        match head.field("Content-Length") {
            Some(length) => Self::Bytes(length.parse().unwrap()),
            None => Self::UntilClose,
        }
    }
}

impl Reading {
    pub fn status(&self) -> u16 {
        self.head.status
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.field(name)
    }

    /// Reads until at least `count` body bytes are here, or the body has ended; says how many there are.
    pub fn read_to(&mut self, count: u64) -> u64 {
        while (self.body.len() as u64) < count && self.step().is_some() {}
        self.body.len() as u64
    }

    /// Reads to the end.
    pub fn rest(mut self) -> Answer {
        while self.step().is_some() {}
        self.finish().0
    }

    /// Reads to the end with a pause after each `bytes`.
    pub fn rest_slowly(mut self, bytes: u64, pause: Duration) -> Answer {
        while !matches!(self.left, Left::Done | Left::Broken) {
            self.read_to(self.body.len() as u64 + bytes);
            std::thread::sleep(pause);
        }
        self.finish().0
    }

    /// Goes away in the middle, by RST.
    pub fn abort(self) -> Vec<u8> {
        drop(socket2::SockRef::from(&self.connection.stream).set_linger(Some(Duration::ZERO)));
        self.body
    }

    fn finish(self) -> (Answer, Connection) {
        let ending = if matches!(self.left, Left::Done) { Ending::Complete } else { Ending::Truncated };
        let answer = Answer {
            version: self.head.version,
            status: self.head.status,
            fields: self.head.fields,
            body: self.body,
            ending,
            first_byte: self.first_byte,
            took: self.start.elapsed(),
        };
        (answer, self.connection)
    }

    /// One step forward; nothing when the body is over, well or not.
    fn step(&mut self) -> Option<()> {
        let next = match self.left {
            Left::Done | Left::Broken => return None,
            Left::Bytes(0) => Some(Left::Done),
            Left::Bytes(count) => self.take(count).map(|took| Left::Bytes(count - took)),
            Left::UntilClose => Some(self.take(u64::MAX).map_or(Left::Done, |_| Left::UntilClose)),
            Left::Chunks { open: 0 } => self.chunk_head(),
            Left::Chunks { open } => self.take(open).and_then(|took| self.chunk_end(open - took)),
        };
        self.left = next.unwrap_or(Left::Broken);
        Some(())
    }

    fn chunk_head(&mut self) -> Option<Left> {
        let line = self.connection.line()?;
        let size = u64::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        if size > 0 {
            return Some(Left::Chunks { open: size });
        }
        // Trailers end with an empty line.
        while !self.connection.line()?.is_empty() {}
        Some(Left::Done)
    }

    fn chunk_end(&mut self, open: u64) -> Option<Left> {
        if open == 0 {
            self.connection.line()?;
        }
        Some(Left::Chunks { open })
    }

    fn take(&mut self, most: u64) -> Option<u64> {
        if self.connection.ahead.is_empty() && !self.connection.more() {
            return None;
        }
        let ahead = &mut self.connection.ahead;
        let count = usize::try_from(most).map_or(ahead.len(), |most| most.min(ahead.len()));
        self.body.extend(ahead.drain(..count));
        Some(count as u64)
    }
}

impl Answer {
    /// An answer that was received whole, its connection closed behind it.
    pub fn of_whole(bytes: &[u8]) -> Self {
        let end = find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
        let Head { version, status, fields } = Head::parse(&String::from_utf8_lossy(&bytes[..end]));
        let body = bytes.get(end + 4..).unwrap_or_default().to_vec();
        let took = Duration::ZERO;
        Self { version, status, fields, body, ending: Ending::Complete, first_byte: took, took }
    }

    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether the client would call this a success.
    pub fn is_success(&self) -> bool {
        self.ending == Ending::Complete && (200..300).contains(&self.status)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// `Cache-Status`, or nothing.
    pub fn cache_status(&self) -> &str {
        self.field("Cache-Status").unwrap_or_default()
    }

    pub fn is_hit(&self) -> bool {
        self.cache_status().contains("hit") && !self.cache_status().contains("fwd=")
    }

    pub fn is_from_peer(&self) -> bool {
        self.cache_status().contains("peer ")
    }

    /// 200, complete, and the script's bytes.
    #[track_caller]
    pub fn assert_whole(&self, script: &Script) -> &Self {
        assert_eq!(self.status, 200, "{:?}\n{}", self.fields, self.text().get(..300).unwrap_or_default());
        assert_eq!(self.ending, Ending::Complete, "after {} of {} bytes", self.body.len(), script.size);
        assert!(self.body == script.body(), "wrong bytes: {} of {}", self.body.len(), script.size);
        self
    }

    /// 206 with exactly these bytes of the script's body (`to` excluded).
    #[track_caller]
    pub fn assert_slice(&self, script: &Script, from: u64, to: u64) -> &Self {
        assert_eq!(self.status, 206, "{:?}", self.fields);
        let told = format!("bytes {from}-{}/{}", to - 1, script.size);
        assert_eq!(self.field("Content-Range"), Some(told.as_str()));
        assert_eq!(self.field("Content-Length"), Some((to - from).to_string().as_str()));
        assert_eq!(self.ending, Ending::Complete);
        assert!(self.body == super::body::slice(script.seed, from..to), "wrong bytes in {from}..{to}");
        self
    }
}
