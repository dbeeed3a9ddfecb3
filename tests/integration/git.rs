//! git over its smart protocol: requests that are streamed and packed, answers that are never old.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::origin::{Seen, Wire};
use crate::support::{Larder, MIB, body, daemon, find, tools};

/// A server that hands every request to git's own program.
struct GitServer {
    address: SocketAddr,
    folder: PathBuf,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl GitServer {
    /// Serves the repository `repo.git` below `home`; none where git or its server side is not installed.
    fn start(home: &Path) -> Option<Self> {
        if !tools::installed("git") {
            return None;
        }
        let libexec = git(home, &["--exec-path"]);
        let backend = Path::new(libexec.trim()).join("git-http-backend");
        if !backend.exists() {
            println!("skipped: git-http-backend is not installed");
            return None;
        }
        let folder = home.join("served");
        std::fs::create_dir_all(&folder).unwrap();
        git(&folder, &["init", "-q", "--bare", "-b", "main", "repo.git"]);
        git(&folder.join("repo.git"), &["config", "http.receivepack", "true"]);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let (log, root) = (Arc::clone(&seen), folder.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, root, backend) = (Arc::clone(&log), root.clone(), backend.clone());
                std::thread::spawn(move || {
                    let mut wire = Wire::new(stream, None);
                    while let Some(request) = wire.read_request() {
                        let answer = backend_answer(&backend, &root, &request);
                        log.lock().unwrap().push(request);
                        if wire.write_all(&answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Some(Self { address, folder, seen })
    }

    fn url(&self) -> String {
        format!("http://{}/repo.git", self.address)
    }

    fn repository(&self) -> PathBuf {
        self.folder.join("repo.git")
    }

    /// The requests for a path with this end, since the last look.
    fn requests(&self, end: &str) -> Vec<Seen> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.into_iter().filter(|seen| seen.path().ends_with(end)).collect()
    }
}

/// What git's server side says to one request (RFC 3875 tells how it is asked).
fn backend_answer(backend: &Path, root: &Path, request: &Seen) -> Vec<u8> {
    let field = |name| request.field(name).unwrap_or_default();
    let mut child = Command::new(backend)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_PROTOCOL", field("Git-Protocol"))
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", request.path())
        .env("QUERY_STRING", request.query().unwrap_or_default())
        .env("CONTENT_TYPE", field("Content-Type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", field("Content-Encoding"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, body) = (child.stdin.take().unwrap(), request.body.clone());
    let writing = std::thread::spawn(move || drop(input.write_all(&body)));
    let output = child.wait_with_output().unwrap().stdout;
    writing.join().unwrap();
    let end = find(&output, b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    let fields: String =
        head.lines().filter(|line| !line.starts_with("Status: ")).map(|line| format!("{line}\r\n")).collect();
    let body = &output[end + 4..];
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Runs git in a folder, and gives what it says.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = daemon::bare_command("git", folder);
    command
        .args(["-c", "user.name=t", "-c", "user.email=t@example.test"])
        .args(arguments)
        .current_dir(folder);
    daemon::run(command).assert_code(0).stdout
}

#[test]
fn k18_git_clones_fetches_and_pushes_and_nothing_it_sees_is_old() {
    let node = Larder::new("a").start();
    let Some(server) = GitServer::start(node.home()) else { return };
    let home = node.home().to_owned();
    // many branches, so that what is wanted is long enough to be packed with gzip
    git(&home, &["init", "-q", "-b", "main", "work"]);
    let work = home.join("work");
    std::fs::write(work.join("file"), body::slice(3, 0..3 * MIB)).unwrap();
    git(&work, &["add", "file"]);
    for number in 0..40 {
        git(&work, &["commit", "-q", "--allow-empty", "-m", &number.to_string()]);
        git(&work, &["branch", &format!("b{number}")]);
    }
    let bare = server.repository().display().to_string();
    git(&work, &["push", "-q", &bare, "--all"]);
    let proxy = format!("http.proxy=http://{}", node.proxy());
    let clone = |name: &str| {
        git(&home, &["-c", &proxy, "clone", "-q", &server.url(), name]);
        home.join(name)
    };
    let tip = |folder: &Path, name: &str| git(folder, &["rev-parse", name]).trim().to_owned();

    let first = clone("first");
    assert_eq!(tip(&first, "HEAD"), tip(&work, "HEAD"));
    assert!(std::fs::read(first.join("file")).unwrap() == std::fs::read(work.join("file")).unwrap());
    let asked = server.requests("/git-upload-pack");
    assert!(asked.iter().any(|seen| seen.field("Content-Encoding") == Some("gzip")), "{asked:?}");

    // a new commit is visible at once, although the list of references was asked for a moment ago
    git(&work, &["commit", "-q", "--allow-empty", "-m", "new"]);
    git(&work, &["push", "-q", &bare, "main"]);
    git(&first, &["-c", &proxy, "fetch", "-q"]);
    assert_eq!(tip(&first, "origin/main"), tip(&work, "HEAD"));
    assert_eq!(server.requests("/info/refs").len(), 1, "the list of references is the server's own");

    // a pack that is larger than what git sends with a length goes in chunks
    std::fs::write(first.join("large"), body::slice(4, 0..20 * MIB)).unwrap();
    git(&first, &["merge", "-q", "origin/main"]);
    git(&first, &["add", "large"]);
    git(&first, &["commit", "-q", "-m", "large"]);
    git(&first, &["-c", &proxy, "push", "-q", "origin", "main"]);
    let pushed = server.requests("/git-receive-pack");
    let large = pushed.iter().find(|seen| seen.body.len() as u64 > 20 * MIB).unwrap();
    assert_eq!(large.field("Transfer-Encoding"), Some("chunked"));
    assert_eq!(large.field("Content-Length"), None);
    let second = clone("second");
    assert_eq!(tip(&second, "HEAD"), tip(&first, "HEAD"));
    assert!(std::fs::read(second.join("large")).unwrap() == std::fs::read(first.join("large")).unwrap());
}
