//! The same through HTTP on the loopback: a server as the administrator's side has one, and one connection to it.

use std::convert::Infallible;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use larder::orm::{Cell, Feed, Record as _};
use larder::rest::{Api, Ask, Resource, Rows};
use tokio::net::TcpListener;

use super::ours::{PAGE, query};
use super::person::Person;
use super::{Turn, rate};

/// The most rows that are added at once.
const LIST: usize = 1000;

pub(crate) fn turn(fresh: impl Fn() -> Rows, people: &[Person]) -> Turn {
    let direct = {
        let mut client = Client::to(serve(fresh()));
        rate(people.len(), || people.iter().for_each(|person| client.add(&json(person))))
    };
    let mut client = Client::to(serve(fresh()));
    let lists = rate(people.len(), || {
        for some in people.chunks(LIST) {
            let rows: Vec<String> = some.iter().map(json).collect();
            client.add(&format!("[{}]", rows.join(",")));
        }
    });
    let by_one = rate(people.len(), || {
        for person in people {
            black_box(client.get(&format!("/people/{}", person.id), "application/json"));
        }
    });
    let pages = 0..people.len().div_ceil(PAGE);
    let all_virtual = rate(people.len(), || {
        for page in pages.clone() {
            black_box(client.get(&format!("/people?{}", query(page)), "application/json"));
        }
    });
    let all_direct = rate(people.len(), || {
        let page = |page| records(&client.get(&format!("/people?{}", query(page)), "text/csv"));
        let all: Vec<Person> = pages.flat_map(page).collect();
        assert_eq!(black_box(all).len(), people.len());
    });
    [direct, lists, direct, lists, by_one, all_virtual, all_direct]
}

/// A server that ends with the process.
fn serve(rows: Rows) -> SocketAddr {
    let api = Arc::new(Api::new(Feed::new()).with(Resource::of::<Person>(rows).writable()));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let (stream, _) = TcpListener::from_std(listener).unwrap().accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let service = service_fn(|request| answer(Arc::clone(&api), request));
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    });
    address
}

async fn answer(
    api: Arc<Api>,
    request: hyper::Request<hyper::body::Incoming>,
) -> Result<hyper::Response<larder::http::Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let answered = tokio::task::spawn_blocking(move || {
        let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
        let ask = Ask { method: &head.method, path, query, headers: &head.headers, body: &body };
        api.answer(path, &ask)
    });
    Ok(answered.await.unwrap())
}

/// One connection that is kept.
struct Client(BufReader<TcpStream>);

impl Client {
    fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::with_capacity(256 * 1024, stream))
    }

    fn add(&mut self, body: &str) {
        let length = body.len();
        let head = "POST /people HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nPrefer: return=minimal";
        self.ask(&format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}"), " 201 ");
    }

    fn get(&mut self, path: &str, accept: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: {accept}\r\n\r\n"), " 200 ")
    }

    fn ask(&mut self, request: &str, expected: &str) -> String {
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        self.0.read_line(&mut line).unwrap();
        assert!(line.contains(expected), "{line}");
        while line != "\r\n" {
            if let Some((_, number)) =
                line.split_once("ontent-length: ").or_else(|| line.split_once("ontent-Length: "))
            {
                length = number.trim().parse().unwrap();
            }
            line.clear();
            self.0.read_line(&mut line).unwrap();
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }
}

fn json(person: &Person) -> String {
    let cells = person.cells();
    let mut text = Vec::from(*b"{");
    for (column, cell) in Person::table().columns.iter().zip(&cells) {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(format!("\"{}\":", column.name).as_bytes());
        column.shape.write_json(cell, &mut text);
    }
    text.push(b'}');
    String::from_utf8(text).unwrap()
}

/// The rows of comma-separated values, which here have no commas in them.
fn records(text: &str) -> Vec<Person> {
    let record = |line: &str| {
        let cells: Vec<Cell<'static>> = Person::table()
            .columns
            .iter()
            .zip(line.split(','))
            .map(|(column, text)| column.shape.parse(text).unwrap())
            .collect();
        Person::decode(cells.as_slice()).unwrap()
    };
    text.lines().skip(1).map(record).collect()
}
