//! Which bytes of a thing an answer brings, where the thing is asked for from some byte to its end.

use std::ops::Range;

use http::{HeaderMap, StatusCode, header};

use crate::range::ContentRange;

/// The bytes that a 200 or 206 brings, for a request of everything from the byte `from` on; the end of the range
/// is the size of the thing. Says what is wrong with an answer that does not keep to that.
pub fn part(status: StatusCode, headers: &HeaderMap, from: u64) -> Result<Range<u64>, &'static str> {
    let length = length(headers);
    let told = match status {
        StatusCode::OK if from == 0 => length.map(|length| 0..length),
        StatusCode::OK => return Err("the whole came where a part was asked for"),
        StatusCode::PARTIAL_CONTENT if from > 0 => headers
            .get(header::CONTENT_RANGE)
            .and_then(|field| ContentRange::parse(field.to_str().ok()?))
            .filter(|told| told.size == Some(told.bytes.end) && told.bytes.start == from)
            .filter(|told| length == Some(told.bytes.end - told.bytes.start))
            .map(|told| told.bytes),
        StatusCode::PARTIAL_CONTENT => return Err("a part came where the whole was asked for"),
        _ => return Err("no bytes came"),
    };
    told.ok_or("it does not say which bytes it sends")
}

/// The value of `Content-Length`, digits only.
pub fn length(headers: &HeaderMap) -> Option<u64> {
    let field = headers.get(header::CONTENT_LENGTH)?.to_str().ok()?;
    field.bytes().all(|byte| byte.is_ascii_digit()).then(|| field.parse().ok())?
}
