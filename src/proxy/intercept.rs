//! Interception: https that this machine opens, so that it can be kept and shared like anything else.
//!
//! Off unless `intercept.hosts` names hosts. A `CONNECT` to one of them is answered at once; what the client
//! says first decides. TLS for that very host is met with a certificate of this machine's own authority
//! ([`LocalAuthority`]), and the requests inside go the way of all requests; anything else (no server name,
//! another host, no TLS, a server that is to speak first) is the blind tunnel that was asked for. Upgrades
//! inside, and protocols other than HTTP, are led through to the origin over TLS of its own.
//!
//! Promises: no certificate for an address, nor for a host outside the settings and the authority; the origin
//! is verified as ever; a request for another host than the connection's is refused (421); a client that does
//! not trust the authority is told how in the log, once, and let alone the next time.
//!
//! Without an authority, or with one that does not cover a host, that host is tunnelled, and the log says so.

mod hello;
mod inside;
mod leaves;
mod open;
mod refusals;
mod settings;
mod switch;
mod two;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ServerConfig;

use crate::clock::SharedClock;
use crate::tls::{LocalAuthority, TlsError};
use leaves::Leaves;
use refusals::{Client, Refusal, Refusals};

pub(super) use inside::{Inside, join_cookies};
pub use settings::{Config, HostPattern, OnRefusal, PatternError};
pub(super) use switch::asked;

/// What interception needs: the hosts, the authority, and what is remembered of clients.
#[derive(Debug)]
pub struct Interceptor {
    config: Config,
    authority: Option<LocalAuthority>,
    leaves: Mutex<Leaves>,
    refusals: Mutex<Refusals>,
    clock: SharedClock,
}

impl Interceptor {
    /// Reads the authority, and says in the log what is lacking. Blocks on the disk.
    pub fn open(config: Config, state_dir: &Path, clock: SharedClock) -> Self {
        let authority = if config.hosts.is_empty() { None } else { authority(&config, state_dir) };
        let (leaves, refusals) = (Mutex::default(), Mutex::default());
        Self { config, authority, leaves, refusals, clock }
    }

    /// Whether connections to this host (in lower case) are opened.
    fn opens(&self, host: &str) -> bool {
        let may =
            |authority: &LocalAuthority| authority.permits(host) && self.clock.now() < authority.not_after();
        self.config.named(host).is_some() && self.authority.as_ref().is_some_and(may)
    }

    /// The server's side of TLS for a host that is opened.
    fn server(&self, host: &str) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        let Some(authority) = &self.authority else { return Ok(None) };
        let now = self.clock.now();
        let mut leaves = lock(&self.leaves);
        if let Some(config) = leaves.at_hand(host, now) {
            return Ok(Some(config));
        }
        let config = authority.server(host, now)?;
        leaves.keep(host, &config, now);
        Ok(Some(config))
    }

    fn lets_alone(&self, client: &Client) -> bool {
        self.config.on_refusal == OnRefusal::Tunnel
            && lock(&self.refusals).lets_alone(client, self.clock.instant())
    }

    fn trusts(&self, client: &Client) {
        lock(&self.refusals).trusts(client, self.clock.instant());
    }

    /// Remembers it, and says once for each address and host what to do. Whose it is stands in a line that
    /// only debugging shows.
    fn refused(&self, client: &Client, how: Refusal) {
        tracing::debug!(client.address = %client.address, host = %client.host, ?how, "a client refused our certificate");
        if !lock(&self.refusals).refused(client, how, self.clock.instant()) {
            return;
        }
        let hosts = self.config.named(&client.host).map(ToString::to_string).unwrap_or_default();
        let next = match self.config.on_refusal {
            OnRefusal::Tunnel => "the next time it is tunnelled, without the cache",
            OnRefusal::Refuse => "it is refused until it does (intercept.on_refusal)",
        };
        tracing::warn!(
            intercept.hosts = hosts,
            "a program does not trust this machine's certificate authority: {next}; `larder ca install` makes the system's programs trust it, `larder ca show` says what to set for those with a list of their own"
        );
    }
}

fn authority(config: &Config, state_dir: &Path) -> Option<LocalAuthority> {
    let authority = match LocalAuthority::load(state_dir) {
        Ok(Some(authority)) => authority,
        Ok(None) => {
            tracing::warn!(
                "intercept.hosts names hosts, but there is no certificate authority: they are tunnelled; `larder ca install` makes one"
            );
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, "the certificate authority cannot be used: intercept.hosts are tunnelled; `larder ca install` makes another");
            return None;
        }
    };
    let lacking: Vec<String> =
        config.domains().into_iter().filter(|domain| !authority.permits(domain)).collect();
    if !lacking.is_empty() {
        tracing::warn!(
            ?lacking,
            "intercept.hosts names hosts that the certificate authority was not made for: they are tunnelled; run `larder ca install` again"
        );
    }
    Some(authority)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::{Clock as _, ManualClock, Timestamp};

    const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn interceptor(folder: &Path, hosts: &[&str], clock: &Arc<ManualClock>) -> Interceptor {
        let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
        let config = Config { hosts, on_refusal: OnRefusal::Tunnel };
        Interceptor::open(config, folder, Arc::<ManualClock>::clone(clock))
    }

    #[test]
    fn a_host_is_opened_where_settings_authority_and_time_allow() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(START));
        let hosts = ["a.test", "*.b.test", "c.test"];
        assert!(!interceptor(folder.path(), &hosts, &clock).opens("a.test"), "there is no authority");
        let domains = ["a.test", "b.test", "d.test"].map(str::to_owned);
        LocalAuthority::create(folder.path(), "x", &domains, clock.now()).unwrap();
        let interceptor = interceptor(folder.path(), &hosts, &clock);
        for (host, opens) in [
            ("a.test", true),
            ("x.a.test", false),
            ("x.b.test", true),
            ("b.test", false),
            ("c.test", false),
            ("d.test", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(interceptor.opens(host), opens, "{host}");
        }
        let leaf = interceptor.server("a.test").unwrap().unwrap();
        assert!(Arc::ptr_eq(&leaf, &interceptor.server("a.test").unwrap().unwrap()), "it is kept");
        clock.advance(LocalAuthority::RENEW);
        assert!(!Arc::ptr_eq(&leaf, &interceptor.server("a.test").unwrap().unwrap()), "and made anew");
        clock.advance(Duration::from_secs(6 * 365 * 86_400));
        assert!(!interceptor.opens("a.test"), "the authority has ended");
    }

    #[test]
    fn an_authority_that_cannot_be_read_opens_nothing() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(START));
        std::fs::write(folder.path().join("ca.key"), "nothing").unwrap();
        assert!(!interceptor(folder.path(), &["a.test"], &clock).opens("a.test"));
    }
}
