//! Service records (RFC 2782): the hosts and ports that a domain names for a service.
//!
//! The servers are those of the system (`/etc/resolv.conf`), asked only when something is looked up. An answer is
//! kept as long as it says; every question has a deadline of its own.

use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::ResolverConfig;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, RecordType};

/// How long one question may take: each server is asked twice.
const ATTEMPT: Duration = Duration::from_secs(2);
/// The most places one name may lead to.
const MOST: usize = 64;

/// A name was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Hosts with their ports, the preferred first.
    pub targets: Vec<(String, u16)>,
    /// Until when this holds.
    pub until: Instant,
}

/// Why there is no answer: a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SrvError(String);

/// Looks service records up; a cheap clone.
#[derive(Clone)]
pub struct Services(TokioResolver);

impl Services {
    /// Asks the system's servers. Reads the file that names them.
    pub fn of_system() -> Result<Self, SrvError> {
        let mut builder = TokioResolver::builder_tokio()
            .map_err(|error| SrvError(format!("the system's name servers are unknown: {error}")))?;
        builder.options_mut().timeout = ATTEMPT;
        builder.build().map(Self).map_err(|error| SrvError(error.to_string()))
    }

    /// Asks these servers.
    pub fn of(servers: ResolverConfig) -> Result<Self, SrvError> {
        let mut builder = TokioResolver::builder_with_config(servers, TokioRuntimeProvider::default());
        builder.options_mut().timeout = ATTEMPT;
        builder.build().map(Self).map_err(|error| SrvError(error.to_string()))
    }

    /// The places of a service, such as `_larder._tcp.example.org`.
    pub async fn find(&self, name: &str) -> Result<Places, SrvError> {
        let answer = self
            .0
            .lookup(name, RecordType::SRV)
            .await
            .map_err(|error| SrvError(format!("{name} has no service records: {error}")))?;
        let mut records: Vec<_> = answer
            .answers()
            .iter()
            .filter_map(|record| if let RData::SRV(srv) = &record.data { Some(srv) } else { None })
            .collect();
        records.sort_by_key(|srv| (srv.priority, std::cmp::Reverse(srv.weight)));
        // "." says that the service is not offered (RFC 2782)
        let offered = records.iter().filter(|srv| !srv.target.is_root());
        let targets: Vec<_> = offered.map(|srv| (srv.target.to_ascii(), srv.port)).take(MOST).collect();
        if targets.is_empty() {
            return Err(SrvError(format!("{name} says that there is no such service")));
        }
        Ok(Places { targets, until: answer.valid_until() })
    }
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use hickory_resolver::config::{ConnectionConfig, NameServerConfig};
    use tokio::net::UdpSocket;

    use super::*;
    use crate::clock::{Clock as _, SystemClock};

    const TTL: u32 = 70;

    /// Answers every question with these records; priority, weight, port, target.
    async fn server(records: Vec<(u16, u16, u16, &'static str)>) -> Services {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut question = [0; 512];
            loop {
                let (length, from) = socket.recv_from(&mut question).await.unwrap();
                socket.send_to(&answer(&question[..length], &records), from).await.unwrap();
            }
        });
        let mut over_udp = ConnectionConfig::udp();
        over_udp.port = port;
        let one = NameServerConfig::new(IpAddr::V4(Ipv4Addr::LOCALHOST), true, vec![over_udp]);
        Services::of(ResolverConfig::from_name_servers(vec![one])).unwrap()
    }

    fn answer(question: &[u8], records: &[(u16, u16, u16, &str)]) -> Vec<u8> {
        let end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
        let count = u16::try_from(records.len()).unwrap();
        let mut out = question[..2].to_vec();
        out.extend([0x81, 0x80, 0, 1]);
        out.extend(count.to_be_bytes());
        out.extend([0, 0, 0, 0]);
        out.extend(&question[12..end]);
        for (priority, weight, port, target) in records {
            let mut data: Vec<u8> =
                [*priority, *weight, *port].iter().flat_map(|number| number.to_be_bytes()).collect();
            for label in target.split('.').filter(|label| !label.is_empty()) {
                data.push(u8::try_from(label.len()).unwrap());
                data.extend(label.as_bytes());
            }
            data.push(0);
            out.extend([0xc0, 12, 0, 33, 0, 1]);
            out.extend(TTL.to_be_bytes());
            out.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            out.extend(data);
        }
        out
    }

    #[tokio::test]
    async fn the_preferred_places_come_first_and_hold_as_long_as_they_say() {
        let services =
            server(vec![(20, 0, 3, "last.test."), (10, 1, 2, "b.test."), (10, 9, 1, "a.test.")]).await;
        let before = SystemClock.instant();
        let found = services.find("_larder._tcp.example.test.").await.unwrap();
        let names: Vec<_> = found.targets.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        assert_eq!(names, ["a.test.:1", "b.test.:2", "last.test.:3"]);
        let holds = found.until.duration_since(before).as_secs();
        assert!((60..=u64::from(TTL) + 10).contains(&holds), "{holds}");
    }

    #[tokio::test]
    async fn a_service_that_is_not_offered_is_an_error_with_its_name() {
        for records in [vec![], vec![(0, 0, 0, ".")]] {
            let error = server(records).await.find("_larder._tcp.example.test.").await.unwrap_err();
            assert!(error.to_string().contains("_larder._tcp.example.test"), "{error}");
        }
    }
}
