//! Tests of `seal::bearer`.

use super::*;
use crate::digest::unhex;
use crate::seal::Secret;
use proptest::prelude::*;
use std::sync::LazyLock;

static KEYS: LazyLock<SiteKeys> = LazyLock::new(|| keys("lab", "a secret of the tests"));

fn keys(site: &str, secret: &str) -> SiteKeys {
    SiteKeys::derive(site, &[Secret::parse(secret.as_bytes()).unwrap()]).unwrap()
}

fn bearer() -> Bearer {
    Bearer {
        grant: GrantId([1; 16]),
        thing: Thing::Blob(Digest::of(b"x")),
        asker: NodeId::from_bytes([2; 16]),
        holder: NodeId::from_bytes([3; 16]),
        counter: 9,
    }
}

#[test]
fn the_vectors_of_version_1_hold() {
    let text = include_str!("../../../tests/fixtures/frames/bearer-v1.json");
    let vectors: serde_json::Value = serde_json::from_str(text).unwrap();
    let keys = keys(vectors["site"].as_str().unwrap(), vectors["secret"].as_str().unwrap());
    for vector in vectors["bearers"].as_array().unwrap() {
        let bytes = |name: &str| unhex(vector[name].as_str().unwrap()).unwrap();
        let thing: [u8; 32] = bytes("thing").try_into().unwrap();
        let bearer = Bearer {
            grant: GrantId(bytes("grant").try_into().unwrap()),
            thing: match vector["kind"].as_u64() {
                Some(0) => Thing::Blob(Digest::from_bytes(thing)),
                _ => Thing::Resource(thing),
            },
            asker: NodeId::from_bytes(bytes("asker").try_into().unwrap()),
            holder: NodeId::from_bytes(bytes("holder").try_into().unwrap()),
            counter: vector["counter"].as_u64().unwrap(),
        };
        let token = vector["token"].as_str().unwrap();
        assert_eq!(keys.open_bearer(token).unwrap(), bearer);
        let salt = bytes("salt").try_into().unwrap();
        assert_eq!(keys.seal_bearer_with(&bearer, salt).unwrap(), token);
    }
}

#[test]
fn tokens_of_one_bearer_differ_and_all_have_one_length() {
    let (a, b) = (KEYS.seal_bearer(&bearer()).unwrap(), KEYS.seal_bearer(&bearer()).unwrap());
    let c = KEYS.seal_bearer(&Bearer { thing: Thing::Resource([0; 32]), ..bearer() }).unwrap();
    assert!(a != b && a.len() == b.len() && a.len() == c.len());
    assert_eq!(KEYS.open_bearer(&a).unwrap(), bearer());
}

#[test]
fn foreign_changed_and_cut_tokens_do_not_open() {
    let token = KEYS.seal_bearer(&bearer()).unwrap();
    assert!(keys("lab", "another secret of the tests").open_bearer(&token).is_err());
    let raw = URL_SAFE_NO_PAD.decode(&token).unwrap();
    for place in 0..raw.len() {
        let mut changed = raw.clone();
        changed[place] ^= 1;
        assert!(KEYS.open_bearer(&URL_SAFE_NO_PAD.encode(changed)).is_err(), "byte {place}");
        assert!(KEYS.open_bearer(&URL_SAFE_NO_PAD.encode(&raw[..place])).is_err(), "cut at {place}");
    }
    assert!(KEYS.open_bearer(&format!("{token}=")).is_err());
}

proptest! {
    #[test]
    fn no_text_opens_or_panics(text in "[A-Za-z0-9_-]{0,220}|.{0,40}") {
        prop_assert!(KEYS.open_bearer(&text).is_err());
    }
}
