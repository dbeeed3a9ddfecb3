//! RFC 9110 section 13, RFC 9111 sections 3.2 and 4.3; CASES H18, H19, H21.

use super::super::support::{START, answer, at, fields};
use super::Condition::{NotModified, PreconditionFailed, Proceed};
use super::*;
use http::HeaderValue;
use proptest::prelude::*;

#[test]
fn section_4_3_1_what_a_revalidation_asks() {
    for (kept, request, want) in [
        ("etag: \"a\"", "", "if-none-match: \"a\""),
        ("etag: W/\"a\"", "", "if-none-match: W/\"a\""),
        ("etag: \"é\"", "", "if-none-match: \"é\""),
        ("last-modified: @-5", "", "if-modified-since: @-5"),
        ("etag: \"a\" | last-modified: @-5", "", "if-none-match: \"a\" | if-modified-since: @-5"),
        ("last-modified: nonsense", "", ""),
        ("", "x: 1", "x: 1"),
        ("etag: \"a\"", "x: 1 | if-none-match: \"b\", \"c\"", "x: 1 | if-none-match: \"a\""),
        ("etag: \"a\"", "if-modified-since: @-5", "if-none-match: \"a\""),
        ("", "if-match: \"b\" | if-unmodified-since: @0 | if-range: \"b\" | range: bytes=0-1", ""),
    ] {
        let mut request_fields = fields(request);
        validators(&answer(kept).head, &mut request_fields);
        assert_eq!(request_fields, fields(want), "{kept} {request}");
    }
}

#[test]
fn h21_section_13_1_if_none_match() {
    for (tag, request, want) in [
        ("\"a\"", "\"a\"", NotModified),
        ("\"a\"", "W/\"a\"", NotModified),
        ("W/\"a\"", "\"a\"", NotModified),
        ("W/\"a\"", "W/\"a\"", NotModified),
        ("\"a\"", "\"b\"", Proceed),
        ("\"a\"", "\"A\"", Proceed),
        ("\"a\"", "*", NotModified),
        ("\"a\"", " * ", NotModified),
        ("\"a\"", "\"*\"", Proceed),
        ("\"a\"", "\"a\", \"1\", \"2\"", NotModified),
        ("\"a\"", "\"1\", \"a\",\"2\"", NotModified),
        ("\"a\"", ",, \"1\"\t, W/\"a\"", NotModified),
        ("\"a,b\"", "\"1\", \"a,b\"", NotModified),
        ("\"a\"", "\"1,\"a\"", Proceed),
        ("\"a\\\"", "\"1\", \"a\\\"", NotModified),
        ("\"a\"", "a", Proceed),
        ("a", "a", NotModified),
        ("\"é\"", "\"é\"", NotModified),
        ("\"a\"", "\"a", Proceed),
        ("\"\"", "\"\"", NotModified),
        ("\"a\"", "", Proceed),
        ("\"a\"", "w/\"a\"", Proceed),
    ] {
        let head = answer(&format!("etag: {tag}")).head;
        let request = fields(&format!("if-none-match: {request}"));
        assert_eq!(evaluate(&Method::GET, &request, &head), want, "{tag} {request:?}");
        assert_eq!(evaluate(&Method::HEAD, &request, &head), want, "{tag} {request:?}");
        let other = if want == NotModified { PreconditionFailed } else { want };
        assert_eq!(evaluate(&Method::PUT, &request, &head), other, "{tag} {request:?}");
    }
    let two = fields("if-none-match: \"b\" | if-none-match: \"a\"");
    assert_eq!(evaluate(&Method::GET, &two, &answer("etag: \"a\"").head), NotModified);
    assert_eq!(evaluate(&Method::GET, &fields("if-none-match: \"a\""), &answer("").head), Proceed);
    assert_eq!(evaluate(&Method::GET, &fields("if-none-match: *"), &answer("").head), NotModified);
}

#[test]
fn h21_section_13_1_times() {
    for (kept, request, want) in [
        ("last-modified: @-50", "if-modified-since: @-50", NotModified),
        ("last-modified: @-50", "if-modified-since: @-20", NotModified),
        ("last-modified: @-50", "if-modified-since: @-51", Proceed),
        ("last-modified: @-50", "if-modified-since: nonsense", Proceed),
        ("last-modified: @-50", "if-modified-since: @-50 | if-modified-since: @-50", Proceed),
        ("last-modified: @-50 | date: @0", "if-modified-since: Monday, 30-Nov-26 11:59:10 GMT", NotModified),
        ("date: @0", "if-modified-since: @0", NotModified),
        ("date: @0", "if-modified-since: @-1", Proceed),
        ("", "if-modified-since: @0", Proceed),
        ("last-modified: @-50 | etag: \"a\"", "if-modified-since: @-20 | if-none-match: \"b\"", Proceed),
        ("last-modified: @-50 | etag: \"a\"", "if-modified-since: @-99 | if-none-match: \"a\"", NotModified),
        ("last-modified: @-50", "if-unmodified-since: @-50", Proceed),
        ("last-modified: @-50", "if-unmodified-since: @-51", PreconditionFailed),
        ("last-modified: @-50", "if-unmodified-since: nonsense", Proceed),
        ("", "if-unmodified-since: @-51", Proceed),
        ("last-modified: @-50", "if-unmodified-since: @-50 | if-modified-since: @-50", NotModified),
        ("last-modified: @-50 | etag: \"a\"", "if-match: \"a\" | if-unmodified-since: @-99", Proceed),
        ("etag: \"a\"", "if-match: \"a\"", Proceed),
        ("etag: \"a\"", "if-match: \"b\", \"a\"", Proceed),
        ("etag: \"a\"", "if-match: *", Proceed),
        ("etag: \"a\"", "if-match: \"b\"", PreconditionFailed),
        ("etag: \"a\"", "if-match: W/\"a\"", PreconditionFailed),
        ("etag: W/\"a\"", "if-match: W/\"a\"", PreconditionFailed),
        ("", "if-match: \"a\"", PreconditionFailed),
        ("etag: \"a\"", "if-match: \"a\" | if-none-match: \"a\"", NotModified),
        ("etag: \"a\"", "", Proceed),
    ] {
        assert_eq!(evaluate(&Method::GET, &fields(request), &answer(kept).head), want, "{kept} {request}");
    }
    let late = fields("if-modified-since: @0");
    assert_eq!(evaluate(&Method::POST, &late, &answer("last-modified: @0").head), Proceed);
}

#[test]
fn conditions_are_for_answers_that_succeed() {
    for status in [301, 308, 404, 410] {
        let mut head = answer("etag: \"a\"").head;
        head.status = status;
        assert_eq!(evaluate(&Method::GET, &fields("if-none-match: *"), &head), Proceed, "{status}");
        assert_eq!(evaluate(&Method::GET, &fields("if-match: \"b\""), &head), Proceed, "{status}");
    }
}

#[test]
fn section_13_1_5_if_range() {
    let dated = "last-modified: @-100 | date: @0";
    for (kept, request, want) in [
        ("etag: \"a\"", "", true),
        ("etag: \"a\"", "range: bytes=0-1", true),
        ("etag: \"a\"", "if-range: \"a\"", true),
        ("etag: \"a\"", "if-range: \"b\"", false),
        ("etag: \"a\"", "if-range: W/\"a\"", false),
        ("etag: W/\"a\"", "if-range: W/\"a\"", false),
        ("etag: W/\"a\"", "if-range: \"a\"", false),
        ("etag: \"a\"", "if-range: a", false),
        ("etag: \"a\"", "if-range: \"a\", \"b\"", false),
        ("etag: \"a\"", "if-range: \"a\" | if-range: \"a\"", false),
        ("etag: \"a\"", "if-range: *", false),
        ("", "if-range: \"a\"", false),
        (dated, "if-range: @-100", true),
        (dated, "if-range: @-99", false),
        (dated, "if-range: @-101", false),
        (dated, "if-range: nonsense", false),
        ("last-modified: @-59 | date: @0", "if-range: @-59", false),
        ("last-modified: @-60 | date: @0", "if-range: @-60", true),
        ("last-modified: @-100", "if-range: @-100", false),
        ("date: @0", "if-range: @0", false),
    ] {
        assert_eq!(if_range_holds(&fields(request), &answer(kept).head), want, "{kept} {request}");
    }
}

#[test]
fn h18_h19_section_3_2_what_a_304_changes() {
    for (kept, update, name, want) in [
        ("a: 1", "a: 2", "a", Some("2")),
        ("a: 1", "", "a", Some("1")),
        ("", "a: 2", "a", Some("2")),
        ("a: 1 | a: 2", "a: 3", "a", Some("3")),
        ("cache-control: max-age=1", "cache-control: max-age=3600", "cache-control", Some("max-age=3600")),
        ("cache-control: max-age=1", "", "cache-control", Some("max-age=1")),
        ("expires: 0", "expires: 1", "expires", Some("1")),
        ("content-length: 36", "content-length: 10", "content-length", Some("36")),
        ("content-length: 36", "content-length: 0", "content-length", Some("36")),
        ("", "content-length: 0", "content-length", None),
        ("content-encoding: gzip", "content-encoding: br", "content-encoding", Some("gzip")),
        ("content-range: x", "content-range: y", "content-range", Some("x")),
        ("content-digest: x", "content-digest: y", "content-digest", Some("x")),
        ("content-type: a/b", "content-type: c/d", "content-type", Some("c/d")),
        ("content-foo: 1", "content-foo: 2", "content-foo", Some("2")),
        ("x-content-length: 1", "x-content-length: 2", "x-content-length", Some("2")),
        ("content-location: /a", "content-location: /b", "content-location", Some("/b")),
        ("a: 1", "connection: a | a: 2", "a", Some("1")),
        ("", "keep-alive: 5 | transfer-encoding: chunked", "transfer-encoding", None),
        ("", "proxy-authentication-info: x", "proxy-authentication-info", None),
        ("", "set-cookie: a=1", "set-cookie", None),
        ("", "cache-control: private=\"a\" | a: 2", "a", None),
        ("age: 30", "", "age", None),
        ("age: 30", "age: 5", "age", Some("5")),
        ("date: @-900", "date: @55", "date", Some("Mon, 30 Nov 2026 12:00:55 GMT")),
        ("date: @-900", "", "date", Some("Mon, 30 Nov 2026 12:01:00 GMT")),
        ("etag: \"a\"", "etag: \"a\"", "etag", Some("\"a\"")),
        ("etag: \"a\"", "etag: W/\"a\"", "etag", Some("W/\"a\"")),
        ("last-modified: @-9", "etag: \"a\"", "etag", Some("\"a\"")),
    ] {
        let mut answer = answer(kept);
        assert!(freshen(&mut answer, &fields(update), at(59), at(60)), "{kept} {update}");
        assert_eq!(answer.head.get(name), want, "{kept} {update}");
        assert_eq!(answer.head.fields.iter().filter(|(n, _)| n == name).count(), usize::from(want.is_some()));
        assert_eq!((answer.head.status, answer.request_time, answer.response_time), (200, at(59), at(60)));
    }
}

#[test]
fn section_4_3_4_a_304_for_another_version_confirms_nothing() {
    for (kept, update) in [("\"a\"", "\"b\""), ("W/\"a\"", "\"b\""), ("\"a\"", "W/\"b\"")] {
        let before = answer(&format!("etag: {kept} | a: 1"));
        let mut after = before.clone();
        assert!(!freshen(&mut after, &fields(&format!("etag: {update} | a: 2")), at(59), at(60)));
        assert_eq!(after, before, "{kept} {update}");
    }
}

#[test]
fn h18_a_304_makes_fresh_again() {
    let rule = super::super::Rule::default();
    let mut kept = answer("cache-control: max-age=10 | age: 3 | date: @-3");
    assert!(freshen(&mut kept, &fields("date: @100"), at(100), at(100)));
    assert_eq!(super::super::age(&kept, at(105)).as_secs(), 5);
    assert_eq!(super::super::freshness_lifetime(&kept, &rule).as_secs(), 10);
}

proptest! {
    #[test]
    fn no_condition_panics(
        name in prop::sample::select(vec![
            "if-match", "if-none-match", "if-range", "if-modified-since", "if-unmodified-since",
        ]),
        value in prop::collection::vec(0x20u8..=0xff, 0..40),
        tag in prop::collection::vec(0x21u8..=0xff, 0..10),
    ) {
        prop_assume!(!value.contains(&0x7f) && !tag.contains(&0x7f));
        let mut request = HeaderMap::new();
        request.append(name, HeaderValue::from_bytes(&value).unwrap());
        let mut response = HeaderMap::new();
        response.append("etag", HeaderValue::from_bytes(&tag).unwrap());
        let head = StoredHead::keep(http::StatusCode::OK, &response);
        let _unused = (evaluate(&Method::GET, &request, &head), if_range_holds(&request, &head));
        validators(&head, &mut request);
        // what we ask for by ourselves is what we hold
        prop_assert_eq!(request.get("if-none-match").map(HeaderValue::as_bytes), Some(tag.as_slice()));
        let mut kept = Answer { head, request_time: START, response_time: START, queried: false };
        prop_assert!(freshen(&mut kept, &response, START, START));
    }

    #[test]
    fn tags_are_found_wherever_they_stand(before in "[a-z,]{0,5}", after in "[a-z]{0,5}") {
        let request = fields(&format!("if-none-match: \"{before}\" , \"x\", W/\"{after}\""));
        prop_assert_eq!(evaluate(&Method::GET, &request, &answer("etag: \"x\"").head), NotModified);
    }
}
