//! Which server, how it is reached, and the password.
//!
//! A URL as libpq has it: `postgres://USER@HOST[:PORT]/DATABASE`, a Unix socket as `?host=/run/postgresql`. Another
//! machine is spoken to by TLS, with a certificate that the system's authorities or a named one vouch for, unless
//! the URL says `sslmode=disable`; on this machine it is the other way round. The password is read anew for each
//! session: it may change while the program runs.

use std::fmt;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use zeroize::Zeroizing;

use crate::orm::DbError;

/// How long one address of the server may take to answer.
const CONNECT: Duration = Duration::from_secs(5);

/// A server and a database on it.
#[derive(Clone)]
pub struct Server {
    config: Config,
    with_tls: bool,
    password_file: Option<PathBuf>,
    pass_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

/// Why a URL cannot be used: a sentence without its password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServerError(String);

type Connection = std::pin::Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

impl FromStr for Server {
    type Err = ServerError;

    fn from_str(url: &str) -> Result<Self, ServerError> {
        let wrong = |what: &str| ServerError(what.to_owned());
        if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
            return Err(wrong("it does not begin with postgres://"));
        }
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            // what is wrong stands in the cause, and names a key at most
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            ServerError(cause.unwrap_or_else(|| "it is no URL of a database".to_owned()))
        })?;
        let has = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
        if config.get_hosts().is_empty() || !has(config.get_user()) || !has(config.get_dbname()) {
            return Err(wrong("it names no host, no user or no database"));
        }
        let is_said = url.split(['?', '&']).any(|part| part.starts_with("sslmode="));
        let with_tls = match config.get_ssl_mode() {
            SslMode::Disable => false,
            SslMode::Require => true,
            SslMode::Prefer | _ if is_said => {
                return Err(wrong(
                    "sslmode is disable or require: who only prefers TLS can be talked out of it",
                ));
            }
            SslMode::Prefer | _ => !config.get_hosts().iter().all(is_here),
        };
        config.ssl_mode(if with_tls { SslMode::Require } else { SslMode::Disable });
        config.connect_timeout(CONNECT);
        Ok(Self { config, with_tls, password_file: None, pass_file: None, ca_file: None })
    }
}

impl Server {
    /// The password stands in this file, where the URL has none.
    #[must_use]
    pub fn with_password_file(self, file: Option<PathBuf>) -> Self {
        Self { password_file: file, ..self }
    }

    /// Else it stands in this one, as `$PGPASSFILE` of libpq has it.
    #[must_use]
    pub fn with_pass_file(self, file: Option<PathBuf>) -> Self {
        Self { pass_file: file, ..self }
    }

    /// This file names further authorities for the server's certificate.
    #[must_use]
    pub fn with_ca_file(self, file: Option<PathBuf>) -> Self {
        Self { ca_file: file, ..self }
    }

    /// Whether what is said can be read on the way to another machine.
    pub fn is_in_clear(&self) -> bool {
        !self.with_tls && !self.config.get_hosts().iter().all(is_here)
    }

    pub(super) async fn connect(&self) -> Result<(Client, Connection), DbError> {
        let mut config = self.config.clone();
        if config.get_password().is_none()
            && let Some(password) = self.password()?
        {
            config.password(password.as_bytes());
        }
        if !self.with_tls {
            let (client, connection) = config.connect(NoTls).await?;
            return Ok((client, Box::pin(connection)));
        }
        let tls = crate::tls::origin_client(self.ca_file.as_deref())
            .map_err(|error| DbError::Schema(error.to_string()))?;
        let (client, connection) = config.connect(MakeRustlsConnect::new(tls)).await?;
        Ok((client, Box::pin(connection)))
    }

    fn password(&self) -> Result<Option<Zeroizing<String>>, DbError> {
        if let Some(file) = &self.password_file {
            let text = read(file)?;
            return Ok(Some(Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned())));
        }
        let Some(file) = &self.pass_file else { return Ok(None) };
        let text = read(file)?;
        let open = std::fs::metadata(file)?.permissions().mode() & 0o077 != 0;
        if open {
            return Err(refused(file, "others than its owner can read it; chmod 0600"));
        }
        let config = &self.config;
        let (user, database) =
            (config.get_user().unwrap_or_default(), config.get_dbname().unwrap_or_default());
        let ports = config.get_ports();
        let places = config.get_hosts().iter().enumerate().map(|(at, host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            let host = match host {
                Host::Tcp(name) => name.clone(),
                // a socket goes by this name in the file
                Host::Unix(_) => "localhost".to_owned(),
            };
            [host, port.to_string(), database.to_owned(), user.to_owned()]
        });
        let places: Vec<[String; 4]> = places.collect();
        let found = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .find_map(|line| places.iter().find_map(|place| in_line(line, place)));
        Ok(found)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("hosts", &self.config.get_hosts()).finish_non_exhaustive()
    }
}

/// Whether a host is this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

fn read(file: &Path) -> Result<Zeroizing<String>, DbError> {
    std::fs::read_to_string(file).map(Zeroizing::new).map_err(|error| refused(file, &error.to_string()))
}

fn refused(file: &Path, why: &str) -> DbError {
    DbError::Io(std::io::Error::other(format!("the password in {} cannot be used: {why}", file.display())))
}

/// The password in a line `host:port:database:user:password`, if it is of this place; `*` is any, a backslash takes
/// the next as it is.
fn in_line(line: &str, place: &[String; 4]) -> Option<Zeroizing<String>> {
    let mut fields = vec![Zeroizing::new(String::new())];
    let mut chars = line.chars();
    while let Some(next) = chars.next() {
        let is_last = fields.len() == 5;
        match next {
            ':' if !is_last => fields.push(Zeroizing::new(String::new())),
            '\\' => fields.last_mut()?.extend(chars.next()),
            other => fields.last_mut()?.push(other),
        }
    }
    let password = fields.pop().filter(|_| fields.len() == 4)?;
    let fits = fields.iter().zip(place).all(|(field, wanted)| field.as_str() == "*" || **field == *wanted);
    fits.then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_spoken_to_by_tls() {
        for (url, tls, clear) in [
            ("postgres://me@db.example.org/fleet", true, false),
            ("postgres://me@db.example.org/fleet?sslmode=disable", false, true),
            ("postgres://me@127.0.0.1/fleet", false, false),
            ("postgresql://me@[::1]:5433/fleet", false, false),
            ("postgres://me@localhost/fleet?sslmode=require", true, false),
            ("postgres://me@/fleet?host=/run/postgresql", false, false),
            ("postgres://me@127.0.0.1,db.example.org/fleet", true, false),
        ] {
            let server: Server = url.parse().unwrap();
            assert_eq!((server.with_tls, server.is_in_clear()), (tls, clear), "{url}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_told_without_its_password() {
        for url in [
            "",
            "mysql://me:geheim@db/fleet",
            "postgres://db",
            "postgres://me:geheim@db",
            "postgres://:geheim@db/fleet",
            "postgres://me:geheim@db/fleet?sslmode=prefer",
            "postgres://me:geheim@db/fleet?sslrootcert=x",
            "postgres://me:geheim@db:port/fleet",
        ] {
            let error = url.parse::<Server>().unwrap_err().to_string();
            assert!(!error.is_empty() && !error.contains("geheim"), "{url}: {error}");
        }
        let server: Server = "postgres://me:geheim@db/fleet".parse().unwrap();
        assert!(!format!("{server:?}").contains("geheim"));
    }

    #[test]
    fn the_line_of_this_place_has_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        let lines =
            "# nothing\nelse:5432:fleet:me:no\n*:5433:fleet:me:p\\:w\\\\d:x\nlocalhost:*:*:*:socket\n";
        std::fs::write(&file, lines).unwrap();
        let password = |url: &str| {
            let server = url.parse::<Server>().unwrap().with_pass_file(Some(file.clone()));
            server.password().map(|found| found.map(|found| found.to_string()))
        };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(password("postgres://me@db/fleet").unwrap_err().to_string().contains("chmod 0600"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(password("postgres://me@db:5433/fleet").unwrap().unwrap(), "p:w\\d:x");
        assert_eq!(password("postgres://me@db:5434/fleet").unwrap(), None);
        assert_eq!(password("postgres://me@/fleet?host=/run/postgresql").unwrap().unwrap(), "socket");
        let own = folder.path().join("own");
        std::fs::write(&own, "mine\n").unwrap();
        let server = "postgres://me@db/fleet".parse::<Server>().unwrap().with_password_file(Some(own));
        assert_eq!(server.password().unwrap().unwrap().as_str(), "mine");
    }
}
