//! Which request fields selected an answer (RFC 9111 section 4.1).
//!
//! A [`Variance`] holds the names that `Vary` listed and a hash of each value, normalised so that requests
//! which mean the same have the same hash: lines of one name joined, white space around commas dropped, and
//! for the content-negotiation fields letter case, `q=1` and the order that the qualities already decide.
//! Values that are secrets are refused rather than hashed: a hash of a weak password is as good as the password.

use http::header::{self, HeaderMap, HeaderName};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{NoStore, list};
use crate::digest::{Hasher, hex, unhex};

/// The fields that selected an answer, by name, with the hash of their value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Variance(Vec<(String, Hashed)>);

/// The hash of a normalised value; hexadecimal in serde.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Hashed([u8; 32]);

impl Variance {
    /// What selected this response to this request; an error where it can never be chosen again.
    pub fn of(response: &HeaderMap, request: &HeaderMap) -> Result<Self, NoStore> {
        let mut names = Vec::new();
        for line in response.get_all(header::VARY) {
            let line = line.to_str().map_err(|_ignored| NoStore::VaryStar)?;
            for name in line.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                if name == "*" {
                    return Err(NoStore::VaryStar);
                }
                names.push(name.parse::<HeaderName>().map_err(|_ignored| NoStore::VaryStar)?);
            }
        }
        if names.iter().any(|name| is_secret(name) && request.contains_key(name)) {
            return Err(NoStore::VarySecret);
        }
        let mut fields: Vec<_> = names.iter().map(|n| (n.as_str().to_owned(), hashed(n, request))).collect();
        fields.sort();
        fields.dedup();
        Ok(Self(fields))
    }

    /// Whether this request would have selected the same answer.
    pub fn matches(&self, request: &HeaderMap) -> bool {
        self.0.iter().all(|(name, value)| {
            name.parse::<HeaderName>().is_ok_and(|name| hashed(&name, request) == *value)
        })
    }

    /// Whether the answer is the same for every request.
    pub const fn is_plain(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and hashes, in order of name.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8; 32])> {
        self.0.iter().map(|(name, value)| (name.as_str(), &value.0))
    }
}

impl Serialize for Hashed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Hashed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = unhex(&String::deserialize(from)?).map_err(serde::de::Error::custom)?;
        bytes.try_into().map(Self).map_err(|_ignored: Vec<u8>| serde::de::Error::custom("not 32 bytes"))
    }
}

fn is_secret(name: &HeaderName) -> bool {
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION].contains(name)
}

/// An absent field differs from an empty one.
fn hashed(name: &HeaderName, request: &HeaderMap) -> Hashed {
    let mut hasher = Hasher::new();
    if request.contains_key(name) {
        hasher.update(b"=");
        hasher.update(&normalised(name, request));
    }
    Hashed(*hasher.finish().as_bytes())
}

fn normalised(name: &HeaderName, request: &HeaderMap) -> Vec<u8> {
    let mut elements: Vec<Vec<u8>> = Vec::new();
    for line in request.get_all(name) {
        elements.extend(list::elements(line.as_bytes()).map(<[u8]>::to_vec));
    }
    let negotiates =
        [header::ACCEPT, header::ACCEPT_ENCODING, header::ACCEPT_LANGUAGE, header::ACCEPT_CHARSET];
    if negotiates.contains(name) {
        let mut weighed: Vec<(u16, Vec<u8>)> = elements.iter().map(|e| weighed(e)).collect();
        // stable: among equal qualities some origins take the order for a preference (RFC 9110 section 12.5.4)
        weighed.sort_by_key(|(quality, _)| u16::MAX - quality);
        elements =
            weighed.into_iter().map(|(quality, e)| [&e, &quality.to_be_bytes()[..]].concat()).collect();
    }
    elements.join(&b',')
}

/// A preference in lower case without white space, and its quality in thousandths taken out of it.
fn weighed(element: &[u8]) -> (u16, Vec<u8>) {
    let mut quality = 1000;
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for part in element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
        let part = part.to_ascii_lowercase();
        match part.strip_prefix(b"q=").and_then(thousandths) {
            Some(value) => quality = value,
            None => kept.push(part),
        }
    }
    (quality, kept.join(&b';'))
}

/// A `qvalue` of RFC 9110 section 12.4.2; none if it is something else.
fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole, b'.', fraction @ ..] => (whole, fraction),
        [whole] => (whole, b"".as_slice()),
        _ => return None,
    };
    if fraction.len() > 3 || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().chain(b"000").take(3);
    let fraction = digits.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    match (whole, fraction) {
        (b'0', fraction) => Some(fraction),
        (b'1', 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        lines
            .iter()
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn what_can_never_be_chosen_again_is_an_error() {
        for (response, request, want) in [
            ("vary: *", "a: 1", NoStore::VaryStar),
            ("vary: a, *", "a: 1", NoStore::VaryStar),
            ("vary: *, a", "a: 1", NoStore::VaryStar),
            ("vary: a b", "a: 1", NoStore::VaryStar),
            ("vary: é", "a: 1", NoStore::VaryStar),
            ("vary: Cookie", "cookie: a=1", NoStore::VarySecret),
            ("vary: Authorization", "authorization: Basic x", NoStore::VarySecret),
        ] {
            assert_eq!(Variance::of(&headers(&[response]), &headers(&[request])), Err(want), "{response}");
        }
        assert_eq!(Variance::of(&headers(&["vary: a", "vary: *"]), &headers(&[])), Err(NoStore::VaryStar));
        assert!(Variance::of(&headers(&["vary: cookie"]), &headers(&[])).is_ok());
    }

    #[test]
    fn h23_matches_by_meaning() {
        for (vary, first, second, want) in [
            ("vary: x", "x: 1", "x: 1", true),
            ("vary: X", "x: 1", "x: 1", true),
            ("vary: x", "x: 1", "x: 2", false),
            ("vary: x", "x: 1", "y: 1", false),
            ("vary: x", "y: 1", "y: 2", true),
            ("vary: x", "x: a,b", "x: a ,  b", true),
            ("vary: x", "x: a,b", "x: b,a", false),
            ("vary: x", "x: A", "x: a", false),
            ("vary: x", "x: \"a, b\"", "x: \"a,b\"", false),
            ("vary: x", "x: \"a\\\", b\"", "x: \"a\\\",b\"", false),
            ("vary: x, y", "x: 1", "x: 1", true),
            ("vary:  ,x,,", "x: 1", "x: 2", false),
            ("vary: accept-encoding", "accept-encoding: gzip, br", "accept-encoding: GZIP,br;q=1.0", true),
            ("vary: accept-encoding", "accept-encoding: gzip", "x: 1", false),
            ("vary: accept-encoding", "accept-encoding: gzip", "accept-encoding: gzip;q=0", false),
            ("vary: accept-encoding", "accept-encoding: gzip", "accept-encoding: identity", false),
            ("vary: accept-encoding", "accept-encoding: gzip;q=0.5", "accept-encoding: gzip; Q=0.500", true),
            ("vary: accept-language", "accept-language: en, de;q=0.5", "accept-language: de;q=.5, EN", false),
            ("vary: accept-language", "accept-language: en, de;q=0.5", "accept-language: de;q=0.5, EN", true),
            ("vary: accept-language", "accept-language: en, de", "accept-language: de, en", false),
            ("vary: accept", "accept: text/html;level=1", "accept: text/html; level=2", false),
        ] {
            let variance = Variance::of(&headers(&[vary]), &headers(&[first])).unwrap();
            assert!(variance.matches(&headers(&[first])), "{vary} {first}");
            assert_eq!(variance.matches(&headers(&[second])), want, "{vary}: {first} | {second}");
        }
    }

    #[test]
    fn lines_of_one_name_are_one_list() {
        let variance = Variance::of(&headers(&["vary: x"]), &headers(&["x: a", "x: b"])).unwrap();
        assert!(variance.matches(&headers(&["x: a, b"])));
        let empty = Variance::of(&headers(&["vary: x"]), &headers(&["x: "])).unwrap();
        assert!(!empty.matches(&headers(&[])));
    }

    #[test]
    fn repeated_names_and_their_order_make_no_difference() {
        let request = headers(&["a: 1", "b: 2"]);
        let one = Variance::of(&headers(&["vary: a, b"]), &request).unwrap();
        let other = Variance::of(&headers(&["vary: B", "vary: a, b"]), &request).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.fields().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
        assert!(Variance::of(&headers(&[]), &request).unwrap().is_plain());
    }

    #[test]
    fn survives_serde() {
        let variance = Variance::of(&headers(&["vary: a"]), &headers(&["a: 1"])).unwrap();
        let json = serde_json::to_string(&variance).unwrap();
        assert_eq!(serde_json::from_str::<Variance>(&json).unwrap(), variance);
        assert!(serde_json::from_str::<Variance>("[[\"a\",\"00\"]]").is_err());
    }

    proptest! {
        #[test]
        fn a_request_matches_what_it_selected(value in prop::collection::vec(0x20u8..=0xff, 0..40), name in "[a-c]|accept|accept-encoding") {
            prop_assume!(!value.contains(&0x7f));
            let mut request = HeaderMap::new();
            request.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(&value).unwrap());
            let variance = Variance::of(&headers(&["vary: a, accept, accept-encoding"]), &request).unwrap();
            prop_assert!(variance.matches(&request));
        }

        #[test]
        fn no_vary_panics(value in prop::collection::vec(0x20u8..=0xff, 0..40)) {
            prop_assume!(!value.contains(&0x7f));
            let mut response = HeaderMap::new();
            response.append("vary", HeaderValue::from_bytes(&value).unwrap());
            let _unused = Variance::of(&response, &HeaderMap::new());
        }
    }
}
