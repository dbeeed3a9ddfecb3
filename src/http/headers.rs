//! Header fields: which belong to one connection only, and a response head that can be kept.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

/// Fields that never travel further than one connection (RFC 9110 section 7.6.1), besides those that
/// `Connection` names.
const HOP_BY_HOP: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "proxy-authenticate",
    "proxy-authorization",
];

/// Fields that are meant for the other end, whoever names them in `Connection` (RFC 9110 section 7.6.1): a
/// message without them would mean something else. One client could strip another's conditions off a stored
/// answer, or an origin's `private` off its own.
const END_TO_END: [&str; 35] = [
    "accept-encoding",
    "accept-ranges",
    "age",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-security-policy",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expires",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "larder-descriptor",
    "larder-digest",
    "larder-peers",
    "last-modified",
    "location",
    "pragma",
    "range",
    "retry-after",
    "set-cookie",
    "vary",
    "via",
    "www-authenticate",
];

/// A response head as it is kept: status and end-to-end fields in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredHead {
    /// The status code.
    pub status: u16,
    /// Name in lower case, value with each byte as one character (ISO 8859-1).
    pub fields: Vec<(String, String)>,
}

/// Whether a field belongs to one connection by its name alone.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(&name.as_str())
}

/// The fields without those that belong to one connection, `Connection`'s own list included as far as it may
/// decide.
pub fn hop_by_hop_removed(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !END_TO_END.contains(&name.as_str()))
        .collect();
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if !is_hop_by_hop(name) && !named.iter().any(|n| n == name.as_str()) {
            kept.append(name, value.clone());
        }
    }
    kept
}

impl StoredHead {
    /// Keeps the end-to-end fields of a response.
    pub fn keep(status: http::StatusCode, headers: &HeaderMap) -> Self {
        let fields = hop_by_hop_removed(headers)
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), latin1(value.as_bytes())))
            .collect();
        Self { status: status.as_u16(), fields }
    }

    /// The first field of this name (lower case).
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The fields as a header map; what cannot be a field is left out.
    pub fn headers(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.fields.len());
        for (name, value) in &self.fields {
            let bytes: Vec<u8> = value.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name.as_str()), HeaderValue::from_bytes(&bytes))
            {
                map.append(name, value);
            }
        }
        map
    }

    /// The status code; 200 where what was kept is none.
    pub fn status(&self) -> http::StatusCode {
        http::StatusCode::from_u16(self.status).unwrap_or(http::StatusCode::OK)
    }

    /// The entity tag, if it is a strong one (RFC 9110 section 8.8.3).
    pub fn strong_etag(&self) -> Option<&str> {
        self.get("etag").filter(|tag| tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"'))
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_connection_names_stays_behind() {
        let mut headers = HeaderMap::new();
        headers.append("connection", HeaderValue::from_static("close, X-One"));
        headers.append("x-one", HeaderValue::from_static("1"));
        headers.append("x-two", HeaderValue::from_static("2"));
        headers.append("transfer-encoding", HeaderValue::from_static("chunked"));
        let kept = hop_by_hop_removed(&headers);
        assert_eq!(kept.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-two"]);
    }

    #[test]
    fn what_is_for_the_other_end_stays_although_connection_names_it() {
        let mut headers = HeaderMap::new();
        let named = HeaderValue::from_static("Authorization, cache-control, Content-Length, X-One");
        headers.append("connection", named);
        for name in ["authorization", "cache-control", "content-length", "x-one", "http2-settings"] {
            headers.append(name, HeaderValue::from_static("1"));
        }
        let kept = hop_by_hop_removed(&headers);
        let names: Vec<_> = kept.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["authorization", "cache-control", "content-length"]);
        assert!(END_TO_END.is_sorted());
    }

    #[test]
    fn only_a_strong_tag_is_strong() {
        let head = |tag: &str| StoredHead { status: 200, fields: vec![("etag".into(), tag.into())] };
        assert_eq!(head("\"a\"").strong_etag(), Some("\"a\""));
        assert_eq!(head("W/\"a\"").strong_etag(), None);
        assert_eq!(head("\"").strong_etag(), None);
    }

    proptest! {
        #[test]
        fn a_kept_head_gives_the_same_bytes_back(value in prop::collection::vec(0x20u8..=0xff, 0..40)) {
            prop_assume!(!value.contains(&0x7f));
            let mut headers = HeaderMap::new();
            headers.append("x-value", HeaderValue::from_bytes(&value).unwrap());
            let head = StoredHead::keep(http::StatusCode::OK, &headers);
            prop_assert_eq!(head.headers(), headers);
        }
    }
}
