//! What both ends of a transfer agree on: paths, and the form of a stored head.

use http::header::HeaderName;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, hex, unhex};
use crate::http::StoredHead;
use crate::policy::ResourceKey;
use crate::seal::Thing;
use crate::store::PieceHash;
use crate::tls::NodeId;

/// The one media type of a blob: what it is, its head tells.
pub(super) const BLOB_TYPE: &str = "application/octet-stream";

/// The digest of the whole, whatever part is sent (RFC 9530).
pub(super) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// The version that the bytes of a resource are of.
pub(super) const RESOURCE: HeaderName = HeaderName::from_static("larder-resource");

/// In a request for a head: which piece's hash is to come first.
pub(super) const PIECES: HeaderName = HeaderName::from_static("larder-pieces");

/// What a neighbour tells of a response it keeps. Ages, never dates: clocks are not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceHead {
    /// Status and the fields that may be shared.
    pub head: StoredHead,
    /// How old the response was when this was sent, in seconds.
    pub age: u64,
    /// The blob it led to; none for an answer without a body.
    pub digest: Option<Digest>,
    /// The size of the blob; of what is arriving, so far as it is known.
    pub size: u64,
    /// The name of this version.
    #[serde(default)]
    pub resource: Option<ResourceKey>,
    /// Whether this node had all of it from the origin itself.
    #[serde(default)]
    pub first_hand: bool,
    /// What is said of it while it is arriving, and a moment longer.
    #[serde(default)]
    pub arriving: Option<ArrivingHead>,
}

/// What a neighbour says of what it is receiving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivingHead {
    /// The size of the whole, once known.
    pub total: Option<u64>,
    /// How many bytes it has.
    pub received: u64,
    /// The node that gets it from outside.
    pub root: NodeId,
    /// How many nodes stand between that node and this one.
    pub depth: u8,
    /// The piece whose hash comes first, and the hashes; of pieces it got from the origin itself alone.
    pub pieces: (u64, Vec<PieceHash>),
}

/// The site's orders, as a bearer names them: every node with the secret may read them, no grant is needed.
pub(super) const ORDERS: Thing = Thing::Resource(*b"larder site orders, version one.");
const ORDERS_PATH: &str = "/orders";

/// The path under which a thing is asked for.
pub(super) fn path_of(thing: &Thing) -> String {
    match thing {
        orders if *orders == ORDERS => ORDERS_PATH.to_owned(),
        Thing::Blob(digest) => format!("/blob/{digest}"),
        Thing::Resource(key) => format!("/resource/{}", hex(key)),
    }
}

/// The thing a path asks for; none for any other path.
pub(super) fn thing_at(path: &str) -> Option<Thing> {
    if path == ORDERS_PATH {
        return Some(ORDERS);
    }
    if let Some(digest) = path.strip_prefix("/blob/sha256:") {
        return Digest::from_hex(digest).ok().map(Thing::Blob);
    }
    let key = unhex(path.strip_prefix("/resource/")?).ok()?;
    key.try_into().ok().map(Thing::Resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_three_paths_mean_anything() {
        let key = "ab".repeat(32);
        assert_eq!((thing_at("/orders"), path_of(&ORDERS).as_str()), (Some(ORDERS), "/orders"));
        for path in
            ["/", "/orders/", "/blob/", "/blob/sha256:", "/blob/sha256:ab", "/resource/ab", "/status", ""]
        {
            assert_eq!(thing_at(path), None, "{path}");
        }
        for path in [
            format!("/blob/{key}"),
            format!("/blob/md5:{key}"),
            format!("/blob/sha256:{key}/"),
            format!("/blob/../blob/sha256:{key}"),
            format!("/resource/{key}00"),
            format!("//resource/{key}"),
            format!("/resource/+a{}", "ab".repeat(31)),
        ] {
            assert_eq!(thing_at(&path), None, "{path}");
        }
        assert!(thing_at(&format!("/resource/{key}")).is_some());
    }

    #[test]
    fn a_later_version_may_tell_more() {
        let told =
            r#"{"head":{"status":200,"fields":[["etag","\"a\""]]},"age":3,"digest":null,"size":0,"new":1}"#;
        let head: ResourceHead = serde_json::from_str(told).unwrap();
        assert_eq!((head.age, head.head.strong_etag()), (3, Some("\"a\"")));
    }

    proptest! {
        #[test]
        fn a_path_leads_back(bytes: [u8; 32], blob: bool) {
            let thing = if blob { Thing::Blob(Digest::from_bytes(bytes)) } else { Thing::Resource(bytes) };
            prop_assert_eq!(thing_at(&path_of(&thing)), Some(thing));
        }

        #[test]
        fn no_path_panics(path: String) {
            let _unused = thing_at(&path);
        }
    }
}
