//! The peer's own codec, byte by byte from the page.

use std::net::Ipv4Addr;

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes128Gcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};

/// 192 bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Message(Vec<u8>);

/// What the secret gives.
#[derive(Clone)]
pub struct Keys {
    cipher: Aes128Gcm,
    magic: u32,
}

impl Message {
    pub fn new(kind: u8) -> Self {
        let mut bytes = vec![0; 192];
        getrandom::fill(&mut bytes[150..]).unwrap();
        bytes[0] = kind;
        Self(bytes)
    }

    pub fn kind(&self) -> u8 {
        self.0[0]
    }

    pub fn set_kind(&mut self, kind: u8) {
        self.0[0] = kind;
    }

    pub fn is_answer(&self) -> bool {
        matches!(self.kind(), 1 | 3..=6)
    }

    pub fn seq(&self) -> u32 {
        u32::from_le_bytes(self.0[1..5].try_into().unwrap())
    }

    pub fn set_seq(&mut self, seq: u32) {
        self.0[1..5].copy_from_slice(&seq.to_le_bytes());
    }

    pub fn uuid(&self) -> [u8; 16] {
        self.0[5..21].try_into().unwrap()
    }

    pub fn set_uuid(&mut self, uuid: [u8; 16]) {
        self.0[5..21].copy_from_slice(&uuid);
    }

    pub fn os(&self) -> [u8; 4] {
        self.0[21..25].try_into().unwrap()
    }

    pub fn set_os(&mut self, os: [u8; 4]) {
        self.0[21..25].copy_from_slice(&os);
    }

    pub fn address(&self) -> Ipv4Addr {
        <[u8; 4]>::try_from(&self.0[25..29]).unwrap().into()
    }

    pub fn set_address(&mut self, address: Ipv4Addr) {
        self.0[25..29].copy_from_slice(&address.octets());
    }

    pub fn to(&self) -> Ipv4Addr {
        <[u8; 4]>::try_from(&self.0[29..33]).unwrap().into()
    }

    pub fn set_to(&mut self, to: Ipv4Addr) {
        self.0[29..33].copy_from_slice(&to.octets());
    }

    pub fn set_addresses(&mut self, own: Ipv4Addr, to: Ipv4Addr, mask: Ipv4Addr, broadcast: Ipv4Addr) {
        for (at, address) in [(25, own), (29, to), (33, mask), (37, broadcast)] {
            self.0[at..at + 4].copy_from_slice(&address.octets());
        }
    }

    pub fn set_link(&mut self, speed: u32, hardware: u8) {
        self.0[41..45].copy_from_slice(&speed.to_le_bytes());
        self.0[45] = hardware;
    }

    pub fn set_timestamp(&mut self, timestamp: u32) {
        self.0[46..50].copy_from_slice(&timestamp.to_le_bytes());
    }

    pub fn hash_hex(&self) -> String {
        hex(&self.0[53..85])
    }

    pub fn set_hash(&mut self, algorithm: u8, value: &[u8]) {
        self.0[52] = algorithm;
        self.0[53..53 + value.len()].copy_from_slice(value);
    }

    pub fn copy_hash(&mut self, other: &Self) {
        self.0[52..117].copy_from_slice(&other.0[52..117]);
    }

    pub fn size(&self) -> u64 {
        u64::from_le_bytes(self.0[117..125].try_into().unwrap())
    }

    pub fn set_size(&mut self, size: u64) {
        self.0[117..125].copy_from_slice(&size.to_le_bytes());
    }
}

impl Keys {
    pub fn derive(secret: &[u8]) -> Self {
        let first = hmac(b"4b0fb62af680447c9d0604fc74b908fa", secret);
        let second = hmac(&first, b"2b6f48c3ffe847b9beb6d8de602c9f25");
        let cipher = Aes128Gcm::new_from_slice(&first[..16]).unwrap();
        Self { cipher, magic: u32::from_le_bytes(second[28..32].try_into().unwrap()) }
    }

    pub fn seal(&self, message: &Message) -> Vec<u8> {
        let mut iv = [0; 16];
        getrandom::fill(&mut iv).unwrap();
        self.seal_with(iv, message)
    }

    pub fn seal_with(&self, iv: [u8; 16], message: &Message) -> Vec<u8> {
        let plain = [&message.0[..], &[16; 16]].concat();
        let nonce: &[u8; 12] = iv[..12].try_into().unwrap();
        let sealed = self.cipher.encrypt(nonce.into(), Payload { msg: &plain, aad: &[] }).unwrap();
        let body = [&iv[..], &sealed].concat();
        let checksum = crc32c(self.magic, &body).to_le_bytes();
        [&body[..], &checksum].concat()
    }

    /// The message, or why its sender is banned.
    pub fn open(&self, frame: &[u8]) -> Result<Message, String> {
        if frame.len() != 244 {
            return Err(format!("a frame of {} bytes", frame.len()));
        }
        if crc32c(self.magic, &frame[..240]).to_le_bytes() != frame[240..] {
            return Err("a wrong checksum".into());
        }
        let nonce: &[u8; 12] = frame[..12].try_into().unwrap();
        let payload = Payload { msg: &frame[16..240], aad: &[] };
        let plain = self.cipher.decrypt(nonce.into(), payload).map_err(|_| "a forged frame".to_owned())?;
        if plain[192..] != [16; 16] {
            return Err("a wrong padding".into());
        }
        if plain[0] > 9 || plain[45] > 6 || plain[52] > 14 {
            return Err(format!("kind {}, hardware {}, algorithm {}", plain[0], plain[45], plain[52]));
        }
        Ok(Message(plain[..192].to_vec()))
    }

    pub fn token(&self, message: &Message) -> String {
        URL_SAFE_NO_PAD.encode(self.seal(message))
    }

    pub fn open_token(&self, token: &str) -> Result<Message, String> {
        if token.len() < 326 {
            return Err("a short token".into());
        }
        let frame = URL_SAFE_NO_PAD.decode(&token[..326]).map_err(|_| "no base64".to_owned())?;
        self.open(&frame)
    }
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// Castagnoli, reflected, bit by bit.
fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let mut crc = !seed;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

#[test]
fn the_peers_own_codec_keeps_to_the_page() {
    assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(0x0102_0304, b"123456789"), 0xd9bb_e550);
    let keys = Keys::derive(b"secret");
    assert_eq!(keys.magic, 0xfab3_6c2b);
    let head = unhex(
        "024433221133221100554477668899aabbccddeeff08010206c0a8010ac0a801ffffffff00c0a801ffe80300000100a3e111030002",
    );
    let hash: Vec<u8> = (0..32).chain([0; 32]).collect();
    let numbers = unhex("15cd5b0700000000e80300000000000000000000000000000000000000000000");
    let message = Message([head, hash, numbers, vec![0], (0xc0..=0xe9).collect()].concat());
    assert_eq!(message.0.len(), 192);
    let iv: Vec<u8> = (0..16).collect();
    let frame = keys.seal_with(iv.try_into().unwrap(), &message);
    assert_eq!(hex(&frame[16..32]), "898992e1604abe8498ca4c93187ae3b5");
    assert_eq!(hex(&frame[240..]), "e51281b7");
    assert_eq!(keys.open(&frame), Ok(message.clone()));
    assert_eq!(keys.open_token(&keys.token(&message)), Ok(message));
    assert!(keys.open(&frame[1..]).is_err());
}
