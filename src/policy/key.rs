//! The names of URLs and of what they led to: unkeyed hashes, equal on every node of a site.
//!
//! A [`UrlKey`] hashes scheme, authority and the request target exactly as it came (two encodings of one path
//! are two things, RFC 3986 section 6.2.2 or not); parameters that a rule ignores do not count. A
//! [`ResourceKey`] adds the request fields that selected the answer and its validator, so that it names one
//! version of one variant. Each part is hashed with its length, so no two lists of parts meet.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Variance, glob};
use crate::digest::{Hasher, hex, unhex};
use crate::http::Target;

/// The name of a URL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlKey([u8; 32]);

/// The name of one version of one variant of what a URL led to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey([u8; 32]);

impl UrlKey {
    /// One of many, for tests.
    #[cfg(test)]
    pub(crate) fn numbered(number: usize) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Self(bytes)
    }

    /// Of a target; query parameters whose name matches one of `ignore_query` (`*` = any characters) are left out.
    pub fn of(target: &Target, ignore_query: &[String]) -> Self {
        let path = without_ignored(target.path(), ignore_query);
        Self(of_parts(
            "larder url v1",
            [target.scheme().as_str().as_bytes(), target.authority().as_bytes(), path.as_bytes()],
        ))
    }
}

impl ResourceKey {
    /// Of a URL's variant with this validator.
    pub fn of(url: &UrlKey, variance: &Variance, validator: Option<&str>) -> Self {
        let mut parts: Vec<&[u8]> = vec![&url.0];
        for (name, value) in variance.fields() {
            parts.extend([name.as_bytes(), value.as_slice()]);
        }
        // a validator stands behind one more, empty part: without it the list is the shorter one
        parts.extend(validator.iter().flat_map(|v| [b"".as_slice(), v.as_bytes()]));
        Self(of_parts("larder resource v1", parts))
    }
}

/// SHA-256 of a label and parts, each with its length before it.
fn of_parts<'a>(label: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hasher = Hasher::new();
    for part in std::iter::once(label.as_bytes()).chain(parts) {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    *hasher.finish().as_bytes()
}

/// The target without the parameters that a rule ignores; untouched where there are none.
fn without_ignored(path: &str, ignore: &[String]) -> String {
    let Some((bare, query)) = path.split_once('?') else { return path.to_owned() };
    let ignored = |pair: &str| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        ignore.iter().any(|pattern| glob::matches(pattern, name))
    };
    if !query.split('&').any(ignored) {
        return path.to_owned();
    }
    let kept: Vec<&str> = query.split('&').filter(|pair| !ignored(pair)).collect();
    if kept.is_empty() { bare.to_owned() } else { format!("{bare}?{}", kept.join("&")) }
}

/// What both names share: bytes, hexadecimal text, serde as that text.
macro_rules! key {
    ($($name:ident),+) => {$(
        impl $name {
            /// From the 32 bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The 32 bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// From 64 hexadecimal characters; none if it is something else.
            pub fn from_hex(text: &str) -> Option<Self> {
                unhex(text).ok()?.try_into().ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("a key is 64 hexadecimal characters"))
            }
        }
    )+};
}
key!(UrlKey, ResourceKey);

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    fn key(url: &str, ignore: &[&str]) -> UrlKey {
        let ignore: Vec<String> = ignore.iter().map(|&s| s.to_owned()).collect();
        UrlKey::of(&Target::from_uri(&url.parse().unwrap()).unwrap(), &ignore)
    }

    #[test]
    fn equal_targets_have_equal_keys() {
        for (one, other) in [
            ("http://h/a", "HTTP://H:80/a"),
            ("https://h/", "https://h:443"),
            ("http://h/a?b=1&c=2", "http://h/a?b=1&c=2"),
        ] {
            assert_eq!(key(one, &[]), key(other, &[]), "{one}");
        }
    }

    #[test]
    fn h27_other_targets_have_other_keys() {
        for (one, other) in [
            ("http://h/a", "https://h/a"),
            ("http://h/a", "http://h:81/a"),
            ("http://h/a", "http://i/a"),
            ("http://h/a", "http://h/A"),
            ("http://h/a%2Fb", "http://h/a%2fb"),
            ("http://h/a%2Fb", "http://h/a/b"),
            ("http://h/a", "http://h/a?"),
            ("http://h/a?b&c", "http://h/a?c&b"),
        ] {
            assert_ne!(key(one, &[]), key(other, &[]), "{one} {other}");
        }
    }

    #[test]
    fn ignored_parameters_do_not_count() {
        let ignore = ["X-Amz-*", "sig"];
        for (one, other, equal) in [
            ("http://h/a?X-Amz-Date=1&sig=2", "http://h/a", true),
            ("http://h/a?v=1&X-Amz-Date=1", "http://h/a?v=1&sig=4", true),
            ("http://h/a?v=1&sig=1", "http://h/a?v=2&sig=1", false),
            ("http://h/a?signature=1", "http://h/a", false),
            ("http://h/a?sig", "http://h/a", true),
            ("http://h/a?x-amz-date=1", "http://h/a", false),
            ("http://h/sig=1", "http://h/", false),
        ] {
            assert_eq!(key(one, &ignore) == key(other, &ignore), equal, "{one} {other}");
        }
    }

    #[test]
    fn a_resource_is_url_variant_and_validator() {
        let url = key("http://h/a", &[]);
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            pairs.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect()
        };
        let plain = Variance::default();
        let vary = headers(&[("vary", "x")]);
        let varied = Variance::of(&vary, &headers(&[("x", "1")])).unwrap();
        let absent = Variance::of(&vary, &headers(&[])).unwrap();
        let mut keys = vec![
            ResourceKey::of(&url, &plain, None),
            ResourceKey::of(&url, &plain, Some("")),
            ResourceKey::of(&url, &plain, Some("\"a\"")),
            ResourceKey::of(&url, &varied, None),
            ResourceKey::of(&url, &varied, Some("\"a\"")),
            ResourceKey::of(&url, &absent, None),
            ResourceKey::of(&key("http://h/b", &[]), &plain, None),
        ];
        assert_eq!(keys[2], ResourceKey::of(&url, &plain, Some("\"a\"")));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 7);
    }

    #[test]
    fn keys_are_hexadecimal_text() {
        let url = key("http://h/a", &[]);
        let json = serde_json::to_string(&url).unwrap();
        assert_eq!(json, format!("\"{url}\""));
        assert_eq!(serde_json::from_str::<UrlKey>(&json).unwrap(), url);
        assert_eq!(UrlKey::from_bytes(*url.as_bytes()), url);
        for wrong in ["", "00", "zz", &"0".repeat(63), &"0".repeat(66)] {
            assert_eq!(ResourceKey::from_hex(wrong), None, "{wrong}");
            assert!(serde_json::from_str::<ResourceKey>(&format!("\"{wrong}\"")).is_err());
        }
    }

    #[test]
    fn keys_of_one_format_never_change() {
        // other nodes and the index hold these: a change here needs a new label
        let url = key("https://example.org/a?b=1", &[]);
        assert_eq!(url.to_string(), "8f1434a599528f3a3ff2c8d3b9185bcfb0402966859e0562f60a1b0e4707723a");
        assert_eq!(
            ResourceKey::of(&url, &Variance::default(), Some("\"v\"")).to_string(),
            "07823c32c2ebb5675b4b58645822ead1ade4b0fba88520c8c972baf2251d23a5"
        );
    }
}
