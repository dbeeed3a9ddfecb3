//! The codec: which fields a message has, and what their values mean.

use std::net::{IpAddr, SocketAddr};

use super::fields::{Fields, Reader, prefix};
use super::{Answer, Beyond, Kind, MAX_WANTS, Malformed, Message, Nonce, QueryId, Sender};
use crate::clock::Timestamp;
use crate::digest::{Digest, StatedKey};
use crate::discovery::holding::TOLD;
use crate::discovery::{Holding, Partial, Wanted};
use crate::policy::{ResourceKey, UrlKey};
use crate::seal::{BootId, GrantId};
use crate::tls::{NodeId, Pin};

/// Longest texts, in bytes.
const NAME: usize = 64;
const VERSION: usize = 32;
const VALIDATOR: usize = 200;
/// How many pins are read.
const PINS: usize = 4;
/// How many readers a busy holder names.
const READERS: usize = 4;

/// Fields of a body.
mod field {
    pub(super) const KIND: u8 = 1;
    pub(super) const NODE: u8 = 2;
    pub(super) const SEQ: u8 = 3;
    pub(super) const TCP_PORT: u8 = 4;
    pub(super) const PIN: u8 = 5;
    pub(super) const SCHEMES: u8 = 6;
    pub(super) const NAME: u8 = 7;
    pub(super) const VERSION: u8 = 8;
    pub(super) const ADVERTISE: u8 = 9;
    pub(super) const LOAD: u8 = 10;
    pub(super) const ASK: u8 = 11;
    pub(super) const ECHO: u8 = 12;
    pub(super) const FLAGS: u8 = 13;
    pub(super) const QUERY: u8 = 14;
    pub(super) const WANT: u8 = 15;
    pub(super) const ANSWER: u8 = 16;
    pub(super) const DIGEST: u8 = 17;
    pub(super) const BEYOND: u8 = 18;
    pub(super) const CLOCK: u8 = 19;
    pub(super) const TOLD: u8 = 20;
    pub(super) const ORDERS: u8 = 21;
    pub(super) const DEPTH: u8 = 22;
}

/// The last field this version knows; what comes after it is of a later one.
#[cfg(test)]
pub(super) const LAST_FIELD: u8 = field::DEPTH;

/// Fields of an answer, itself a list of fields.
mod answer {
    pub(super) const WANT: u8 = 1;
    pub(super) const FLAGS: u8 = 2;
    pub(super) const GRANT: u8 = 3;
    pub(super) const DIGEST: u8 = 4;
    pub(super) const SIZE: u8 = 5;
    pub(super) const ETAG: u8 = 6;
    pub(super) const LAST_MODIFIED: u8 = 7;
    pub(super) const RESOURCE: u8 = 8;
    pub(super) const ROOT: u8 = 9;
    pub(super) const DEPTH: u8 = 10;
    pub(super) const RECEIVED: u8 = 11;
    pub(super) const READER: u8 = 12;
}

const HELLO: u8 = 1;
const BYE: u8 = 2;
const FIND: u8 = 3;
const HAVE: u8 = 4;
const CLAIM: u8 = 5;
const ENOUGH: u8 = 6;
const DOUBT: u8 = 7;
const RELAY: u8 = 8;

const HELLO_FIRST: u8 = 1;
const HELLO_MOVED: u8 = 2;
const HELLO_RELAYED: u8 = 4;
const HAVE_DONE: u8 = 1;
const SERVES_HTTPS: u8 = 1;
const SERVES_HTTP: u8 = 2;
const COMPLETE: u8 = 1;
const BUSY: u8 = 2;
const FIRST_HAND: u8 = 4;
const GUARDED: u8 = 8;
const WANT_BLOB: u8 = 1;
const WANT_URL: u8 = 2;
const WANT_STATED: u8 = 3;

/// What a `Hello` says besides its message: it is put on as the frame leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::discovery) struct Stamp {
    /// What the clock of this machine says.
    pub(in crate::discovery) clock: Option<Timestamp>,
    /// The name of the list of the site's orders, where there are any.
    pub(in crate::discovery) orders: Option<[u8; 16]>,
}

/// Stamps a `Hello`; other messages stay as they are.
pub(in crate::discovery) fn stamp(body: &mut Vec<u8>, stamp: &Stamp) {
    if body.starts_with(&[field::KIND, 1, HELLO]) {
        let mut more = Fields::default();
        if let Some(clock) = stamp.clock {
            more.number(field::CLOCK, clock.0);
        }
        if let Some(orders) = &stamp.orders {
            more.put(field::ORDERS, orders);
        }
        body.extend(more.finish());
    }
}

/// Who sent a `Hello`, and its stamp.
pub(in crate::discovery) fn stamped(body: &[u8]) -> Option<(NodeId, Stamp)> {
    if !body.starts_with(&[field::KIND, 1, HELLO]) {
        return None;
    }
    let fields = Reader::all(body).ok()?;
    let clock = fields.number(field::CLOCK).ok()?.map(Timestamp);
    let orders = fields.array(field::ORDERS).ok()?;
    Some((Sender::decode(&fields).ok()?.node, Stamp { clock, orders }))
}

impl Message {
    /// The bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Fields::default();
        to.put(field::KIND, &[self.kind.code()]);
        self.sender.encode(&mut to);
        to.number(field::SEQ, self.seq);
        if let Some(Nonce(nonce)) = &self.ask {
            to.put(field::ASK, nonce);
        }
        if let Some(Nonce(nonce)) = &self.echo {
            to.put(field::ECHO, nonce);
        }
        self.kind.encode(&mut to);
        to.finish()
    }

    /// Reads a message.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let body = Reader::all(bytes)?;
        let nonce = |tag| body.array(tag).map(|bytes| bytes.map(Nonce));
        Ok(Self {
            sender: Sender::decode(&body)?,
            seq: body.number(field::SEQ)?.ok_or(Malformed)?,
            ask: nonce(field::ASK)?,
            echo: nonce(field::ECHO)?,
            kind: Kind::decode(&body)?,
        })
    }
}

impl Answer {
    /// How many bytes it takes within a message.
    pub(in crate::discovery) fn encoded_len(&self) -> usize {
        let mut to = Fields::default();
        to.put(field::ANSWER, &self.encode());
        to.finish().len()
    }

    fn encode(&self) -> Vec<u8> {
        let mut to = Fields::default();
        let holding = &self.holding;
        to.put(answer::WANT, &[self.want]);
        let flags = [
            (holding.complete, COMPLETE),
            (holding.busy, BUSY),
            (holding.first_hand, FIRST_HAND),
            (holding.guarded, GUARDED),
        ];
        to.put(answer::FLAGS, &[join_flags(&flags)]);
        to.put(answer::GRANT, &self.grant.0);
        if let Some(digest) = &holding.digest {
            to.put(answer::DIGEST, digest.as_bytes());
        }
        if let Some(size) = holding.size {
            to.number(answer::SIZE, size);
        }
        // a validator cut short would be another validator
        let validators = [(answer::ETAG, &holding.etag), (answer::LAST_MODIFIED, &holding.last_modified)];
        for (tag, text) in validators {
            if let Some(text) = text.as_ref().filter(|text| text.len() <= VALIDATOR) {
                to.put(tag, text.as_bytes());
            }
        }
        if let Some(resource) = &holding.resource {
            to.put(answer::RESOURCE, resource.as_bytes());
        }
        if let Some(partial) = &holding.partial {
            to.put(answer::ROOT, partial.root.as_bytes());
            to.put(answer::DEPTH, &[partial.depth]);
            to.number(answer::RECEIVED, partial.received);
            for reader in partial.readers.iter().take(READERS) {
                to.put(answer::READER, reader.as_bytes());
            }
        }
        to.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let body = Reader::all(bytes)?;
        let flags = body.byte(answer::FLAGS)?.unwrap_or(0);
        let holding = Holding {
            digest: body.array(answer::DIGEST)?.map(Digest::from_bytes),
            size: body.number(answer::SIZE)?,
            etag: body.text(answer::ETAG, VALIDATOR)?,
            last_modified: body.text(answer::LAST_MODIFIED, VALIDATOR)?,
            first_hand: flags & FIRST_HAND != 0,
            resource: body.array(answer::RESOURCE)?.map(ResourceKey::from_bytes),
            complete: flags & COMPLETE != 0,
            busy: flags & BUSY != 0,
            guarded: flags & GUARDED != 0,
            partial: partial(&body)?,
        };
        Ok(Self {
            want: body.byte(answer::WANT)?.ok_or(Malformed)?,
            holding,
            grant: GrantId(body.array(answer::GRANT)?.ok_or(Malformed)?),
        })
    }
}

impl Sender {
    fn encode(&self, to: &mut Fields) {
        to.put(field::NODE, self.node.as_bytes());
        for Pin(pin) in self.pins.iter().take(PINS) {
            to.put(field::PIN, pin);
        }
        to.number(field::TCP_PORT, u64::from(self.tcp_port));
        to.put(field::SCHEMES, &[join_flags(&[(self.https, SERVES_HTTPS), (self.http, SERVES_HTTP)])]);
        to.put(field::NAME, cut(&self.name, NAME).as_bytes());
        to.put(field::VERSION, cut(&self.version, VERSION).as_bytes());
        to.put(field::LOAD, &[self.load]);
        if let Some(address) = self.advertise {
            to.put(field::ADVERTISE, &address_bytes(address));
        }
    }

    fn decode(body: &Reader<'_>) -> Result<Self, Malformed> {
        let node = NodeId::from_bytes(body.array(field::NODE)?.ok_or(Malformed)?);
        let pins = body.every(field::PIN).take(PINS).map(|value| prefix(value).map(Pin));
        let pins: Vec<Pin> = pins.collect::<Result<_, _>>()?;
        // the id follows from a key: nobody can speak for a node and present another key
        if !pins.iter().any(|pin| NodeId::of(pin) == node) {
            return Err(Malformed);
        }
        let port = body.number(field::TCP_PORT)?.unwrap_or(0);
        let schemes = body.byte(field::SCHEMES)?.unwrap_or(0);
        Ok(Self {
            node,
            pins,
            tcp_port: u16::try_from(port).map_err(|_above| Malformed)?,
            https: schemes & SERVES_HTTPS != 0,
            http: schemes & SERVES_HTTP != 0,
            name: body.text(field::NAME, NAME)?.unwrap_or_default(),
            version: body.text(field::VERSION, VERSION)?.unwrap_or_default(),
            advertise: body.first(field::ADVERTISE).map(address).transpose()?,
            load: body.byte(field::LOAD)?.unwrap_or(0),
        })
    }
}

impl Beyond {
    fn encode(&self) -> Vec<u8> {
        let run = [self.boot.counter, self.boot.random].map(u64::to_be_bytes).concat();
        [self.node.as_bytes().as_slice(), &run, &address_bytes(self.address)].concat()
    }

    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let (node, rest) = value.split_first_chunk().ok_or(Malformed)?;
        let (counter, rest) = rest.split_first_chunk().ok_or(Malformed)?;
        let (random, rest) = rest.split_first_chunk().ok_or(Malformed)?;
        let boot = BootId { counter: u64::from_be_bytes(*counter), random: u64::from_be_bytes(*random) };
        Ok(Self { node: NodeId::from_bytes(*node), boot, address: address(rest)? })
    }
}

impl Kind {
    const fn code(&self) -> u8 {
        match self {
            Self::Hello { .. } => HELLO,
            Self::Bye => BYE,
            Self::Find { .. } => FIND,
            Self::Claim { .. } => CLAIM,
            Self::Have { .. } => HAVE,
            Self::Enough { .. } => ENOUGH,
            Self::Doubt { .. } => DOUBT,
            Self::Relay { .. } => RELAY,
            Self::Unknown(code) => *code,
        }
    }

    fn encode(&self, to: &mut Fields) {
        match self {
            Self::Hello { first, moved, relayed, told } => {
                let flags = [(*first, HELLO_FIRST), (*moved, HELLO_MOVED), (*relayed, HELLO_RELAYED)];
                to.put(field::FLAGS, &[join_flags(&flags)]);
                if let Some(told) = told.as_ref().filter(|told| told.len() <= TOLD) {
                    to.put(field::TOLD, told);
                }
            }
            Self::Find { query, wants }
            | Self::Claim { query, wants, .. }
            | Self::Relay { query, wants, .. } => {
                if let Self::Relay { asker, .. } = self {
                    to.put(field::BEYOND, &asker.encode());
                }
                if let Self::Claim { depth: Some(depth), .. } = self {
                    to.put(field::DEPTH, &[*depth]);
                }
                to.put(field::QUERY, &query.0);
                for (number, wanted) in wants.iter().take(MAX_WANTS) {
                    let (code, key) = match wanted {
                        Wanted::Blob(digest) => (WANT_BLOB, digest.as_bytes()),
                        Wanted::Url(key) => (WANT_URL, key.as_bytes()),
                        Wanted::Stated(key) => (WANT_STATED, key.as_bytes()),
                    };
                    to.put(field::WANT, &[&[*number, code], key.as_slice()].concat());
                }
            }
            Self::Have { query, answers, done } => {
                to.put(field::QUERY, &query.0);
                to.put(field::FLAGS, &[join_flags(&[(*done, HAVE_DONE)])]);
                for answer in answers {
                    to.put(field::ANSWER, &answer.encode());
                }
            }
            Self::Enough { query } => to.put(field::QUERY, &query.0),
            Self::Doubt { digest } => to.put(field::DIGEST, digest.as_bytes()),
            Self::Bye | Self::Unknown(_) => {}
        }
    }

    fn decode(body: &Reader<'_>) -> Result<Self, Malformed> {
        let flags = body.byte(field::FLAGS)?.unwrap_or(0);
        let query = || body.array(field::QUERY)?.map(QueryId).ok_or(Malformed);
        Ok(match body.byte(field::KIND)?.ok_or(Malformed)? {
            HELLO => Self::Hello {
                first: flags & HELLO_FIRST != 0,
                moved: flags & HELLO_MOVED != 0,
                relayed: flags & HELLO_RELAYED != 0,
                told: body.first(field::TOLD).filter(|told| told.len() <= TOLD).map(<[u8]>::to_vec),
            },
            BYE => Self::Bye,
            FIND => Self::Find { query: query()?, wants: wants(body)? },
            CLAIM => Self::Claim { query: query()?, depth: body.byte(field::DEPTH)?, wants: wants(body)? },
            HAVE => {
                let answers = body.every(field::ANSWER).take(MAX_WANTS).map(Answer::decode);
                let answers = answers.collect::<Result<_, _>>()?;
                Self::Have { query: query()?, answers, done: flags & HAVE_DONE != 0 }
            }
            ENOUGH => Self::Enough { query: query()? },
            DOUBT => {
                let digest = body.array(field::DIGEST)?.ok_or(Malformed)?;
                Self::Doubt { digest: Digest::from_bytes(digest) }
            }
            RELAY => Self::Relay {
                query: query()?,
                asker: Beyond::decode(body.first(field::BEYOND).ok_or(Malformed)?)?,
                wants: wants(body)?,
            },
            other => Self::Unknown(other),
        })
    }
}

fn wants(body: &Reader<'_>) -> Result<Vec<(u8, Wanted)>, Malformed> {
    body.every(field::WANT).take(MAX_WANTS).filter_map(|value| want(value).transpose()).collect()
}

/// Where a node stands that is still receiving; none if it does not say.
fn partial(body: &Reader<'_>) -> Result<Option<Partial>, Malformed> {
    let Some(root) = body.array(answer::ROOT)? else { return Ok(None) };
    let readers = body.every(answer::READER).take(READERS).map(|value| prefix(value).map(NodeId::from_bytes));
    Ok(Some(Partial {
        root: NodeId::from_bytes(root),
        depth: body.byte(answer::DEPTH)?.ok_or(Malformed)?,
        received: body.number(answer::RECEIVED)?.unwrap_or(0),
        readers: readers.collect::<Result<_, _>>()?,
    }))
}

/// A want; none if it is of a kind that this version does not know.
fn want(value: &[u8]) -> Result<Option<(u8, Wanted)>, Malformed> {
    let (&[number, code], key) = value.split_first_chunk().ok_or(Malformed)?;
    Ok(match code {
        WANT_BLOB => Some((number, Wanted::Blob(Digest::from_bytes(prefix(key)?)))),
        WANT_URL => Some((number, Wanted::Url(UrlKey::from_bytes(prefix(key)?)))),
        WANT_STATED => Some((number, Wanted::Stated(StatedKey::from_bytes(prefix(key)?)))),
        _ => None,
    })
}

fn address_bytes(address: SocketAddr) -> Vec<u8> {
    let mut value = address.port().to_be_bytes().to_vec();
    match address.ip() {
        IpAddr::V4(ip) => value.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => value.extend_from_slice(&ip.octets()),
    }
    value
}

fn address(value: &[u8]) -> Result<SocketAddr, Malformed> {
    let (port, ip) = value.split_first_chunk().ok_or(Malformed)?;
    let ip: IpAddr = if let Ok(v4) = <[u8; 4]>::try_from(ip) {
        v4.into()
    } else {
        <[u8; 16]>::try_from(ip).map_err(|_length| Malformed)?.into()
    };
    Ok(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

fn join_flags(flags: &[(bool, u8)]) -> u8 {
    flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag)
}

/// At most `most` bytes of a text, cut between characters.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}
