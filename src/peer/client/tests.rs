//! What answers are accepted, by a table.

use super::*;

const DIGEST: Digest = Digest::from_bytes([7; 32]);

fn judge(
    status: u16,
    fields: &[(&'static str, &str)],
    size: Option<u64>,
    from: u64,
) -> Result<Range<u64>, PullError> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    judge_blob(StatusCode::from_u16(status).unwrap(), &headers, &DIGEST, size, from)
}

#[test]
fn p02_only_an_answer_that_keeps_to_the_offer_is_read() {
    let part =
        |range: &'static str, length: &'static str| [("content-range", range), ("content-length", length)];
    assert_eq!(judge(200, &[("content-length", "10")], Some(10), 0), Ok(0..10));
    assert_eq!(judge(200, &[("content-length", "10")], None, 0), Ok(0..10));
    assert_eq!(judge(206, &part("bytes 4-9/10", "6"), Some(10), 4), Ok(4..10));
    for (status, fields, size, from) in [
        (200, vec![], Some(10), 0),
        (200, vec![("content-length", "-1")], None, 0),
        (200, vec![("content-length", "99999999999999999999999")], None, 0),
        (200, vec![("content-length", "1")], Some(10), 0),
        (200, vec![("content-length", "1099511627776")], Some(10), 0),
        (200, vec![("content-length", "10")], Some(10), 4),
        (206, part("bytes 0-9/10", "10").to_vec(), Some(10), 0),
        (206, part("bytes 3-9/10", "7").to_vec(), Some(10), 4),
        (206, part("bytes 4-8/10", "5").to_vec(), Some(10), 4),
        (206, part("bytes 4-9/*", "6").to_vec(), Some(10), 4),
        (206, part("bytes 4-9/10", "7").to_vec(), Some(10), 4),
        (206, part("bytes 4-11/12", "8").to_vec(), Some(10), 4),
        (206, vec![("content-length", "6")], Some(10), 4),
        (416, vec![("content-range", "bytes */3")], Some(10), 4),
        (302, vec![("location", "http://elsewhere/")], Some(10), 0),
    ] {
        let judged = judge(status, &fields, size, from);
        assert!(matches!(judged, Err(PullError::Protocol(_))), "{status} {fields:?}: {judged:?}");
    }
    let other = Digest::from_bytes([8; 32]).repr_digest();
    let stated = |digest: &str| judge(200, &[("content-length", "1"), ("repr-digest", digest)], None, 0);
    assert!(stated(&other).is_err() && stated(&DIGEST.repr_digest()).is_ok());
}

#[test]
fn p12_everyday_answers_are_told_apart() {
    for (status, error) in [
        (404, PullError::Gone),
        (410, PullError::Left),
        (403, PullError::AskAgain),
        (429, PullError::Busy),
        (500, PullError::Busy),
        (503, PullError::Busy),
    ] {
        assert_eq!(judge(status, &[], Some(10), 0), Err(error));
    }
}
