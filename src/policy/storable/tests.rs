//! RFC 9111 sections 3, 3.5 and 5.2.2; CASES H29, H30, H32, K14, K24.

use super::super::support::{fields, rule};
use super::*;
use proptest::prelude::*;

const YES: Result<bool, NoStore> = Ok(true);
const MINE: Result<bool, NoStore> = Ok(false);

fn ask(method: &str, request: &str, status: u16, response: &str, rule: &Rule) -> Result<bool, NoStore> {
    let status = StatusCode::from_u16(status).unwrap();
    storable(&method.parse().unwrap(), &fields(request), status, &fields(response), rule)
        .map(|storable| storable.shareable)
}

#[test]
fn section_3_what_is_kept() {
    for (method, request, status, response, want) in [
        ("GET", "", 200, "cache-control: max-age=5", YES),
        ("GET", "", 200, "etag: \"a\"", YES),
        ("GET", "", 200, "last-modified: @0", YES),
        ("GET", "", 200, "", YES),
        ("GET", "", 203, "", YES),
        ("GET", "", 204, "", MINE),
        ("GET", "range: bytes=0-1", 200, "", YES),
        ("GET", "if-none-match: \"a\"", 200, "", YES),
        ("GET", "content-length: 0", 200, "", YES),
        ("GET", "", 200, "content-range: bytes 0-1/2 | cache-control: max-age=5", YES),
        ("HEAD", "", 200, "cache-control: max-age=5", Err(NoStore::Method)),
        ("POST", "", 200, "cache-control: max-age=5", Err(NoStore::Method)),
        ("get", "", 200, "cache-control: max-age=5", Err(NoStore::Method)),
        ("GET", "content-length: 3", 200, "", Err(NoStore::Content)),
        ("GET", "content-length: x", 200, "", Err(NoStore::Content)),
        ("GET", "transfer-encoding: chunked", 200, "", Err(NoStore::Content)),
    ] {
        assert_eq!(
            ask(method, request, status, response, &Rule::default()),
            want,
            "{method} {request} {response}"
        );
    }
}

#[test]
fn k14_k24_which_statuses_are_kept() {
    let fresh = "cache-control: max-age=5";
    for (status, response, want) in [
        (201, "", Err(NoStore::NoLifetime)),
        (202, "last-modified: @-1000 | date: @0", Err(NoStore::NoLifetime)),
        (299, fresh, MINE),
        (206, fresh, Err(NoStore::Status)),
        (226, fresh, Err(NoStore::Status)),
        (301, fresh, MINE),
        (301, "", Err(NoStore::NoLifetime)),
        (301, "cache-control: max-age=0", Err(NoStore::NoLifetime)),
        (301, "expires: @10 | date: @0", MINE),
        (301, "expires: @10", MINE),
        (301, "expires: @0 | date: @10", Err(NoStore::NoLifetime)),
        (301, "expires: 0", Err(NoStore::NoLifetime)),
        (308, "cache-control: s-maxage=5", MINE),
        (308, "last-modified: @-1000 | date: @0", Err(NoStore::NoLifetime)),
        (404, "", Err(NoStore::NoLifetime)),
        (404, "last-modified: @-1000 | date: @0", Err(NoStore::NoLifetime)),
        (404, "etag: \"a\"", Err(NoStore::NoLifetime)),
        (404, "cache-control: no-cache, max-age=5", Err(NoStore::NoLifetime)),
        (404, fresh, MINE),
        (410, fresh, MINE),
        (302, fresh, MINE),
        (302, "", Err(NoStore::NoLifetime)),
        (302, "last-modified: @-1000 | date: @0", Err(NoStore::NoLifetime)),
        (302, "cache-control: public | last-modified: @-1000 | date: @0", Err(NoStore::NoLifetime)),
        (303, fresh, MINE),
        (304, fresh, Err(NoStore::Status)),
        (307, fresh, MINE),
        (307, "", Err(NoStore::NoLifetime)),
        (400, fresh, MINE),
        (400, "", Err(NoStore::NoLifetime)),
        (401, fresh, Err(NoStore::Status)),
        (403, fresh, MINE),
        (403, "last-modified: @-1000 | date: @0", Err(NoStore::NoLifetime)),
        (405, "last-modified: @-1000 | date: @0", MINE),
        (410, "last-modified: @-1000 | date: @0", MINE),
        (414, "last-modified: @-1000 | date: @0", MINE),
        (501, "last-modified: @-1000 | date: @0", MINE),
        (407, fresh, Err(NoStore::Status)),
        (408, fresh, Err(NoStore::Status)),
        (416, fresh, Err(NoStore::Status)),
        (429, fresh, Err(NoStore::Status)),
        (431, fresh, Err(NoStore::Status)),
        (500, fresh, MINE),
        (503, fresh, MINE),
        (503, "", Err(NoStore::NoLifetime)),
        (503, "last-modified: @-1000 | date: @0", Err(NoStore::NoLifetime)),
        (511, fresh, Err(NoStore::Status)),
        (599, fresh, MINE),
        (599, "last-modified: @-1000 | date: @0", Err(NoStore::NoLifetime)),
        (599, "cache-control: public | last-modified: @-1000 | date: @0", MINE),
        (599, "cache-control: max-age=5, must-understand", Err(NoStore::Status)),
        (599, "cache-control: max-age=5, no-store, must-understand", Err(NoStore::Status)),
        (600, fresh, Err(NoStore::Status)),
        (999, fresh, Err(NoStore::Status)),
        (101, fresh, Err(NoStore::Status)),
    ] {
        assert_eq!(ask("GET", "", status, response, &Rule::default()), want, "{status} {response}");
    }
}

#[test]
fn section_3_3_which_parts_are_kept() {
    let part = |request: &str, response: &str, rule: &Rule| {
        storable_part(&Method::GET, &fields(request), &fields(response), rule).map(|part| part.shareable)
    };
    for (request, response, want) in [
        ("range: bytes=0-1", "", YES),
        ("range: bytes=0-1", "cache-control: max-age=5", YES),
        ("range: bytes=0-1", "cache-control: no-store", Err(NoStore::NoStore)),
        ("range: bytes=0-1", "cache-control: private", Err(NoStore::Private)),
        ("range: bytes=0-1", "set-cookie: a=1", Err(NoStore::SetCookie)),
        ("range: bytes=0-1", "vary: *", Err(NoStore::VaryStar)),
        ("range: bytes=0-1 | cookie: a", "cache-control: public", Err(NoStore::Personal)),
        ("range: bytes=0-1 | authorization: a", "cache-control: public", Err(NoStore::Personal)),
        ("range: bytes=0-1 | cache-control: no-store", "", Err(NoStore::RequestNoStore)),
    ] {
        assert_eq!(part(request, response, &Rule::default()), want, "{request} {response}");
    }
    let alone = Rule { share: false, ..Rule::default() };
    assert_eq!(part("range: bytes=0-1", "", &alone), MINE);
}

#[test]
fn h29_h30_h32_what_is_nobody_elses() {
    for (request, response, want) in [
        ("", "cache-control: no-store", Err(NoStore::NoStore)),
        ("", "cache-control: No-StOrE, max-age=5", Err(NoStore::NoStore)),
        ("", "cache-control: max-age=5 | cache-control: no-store", Err(NoStore::NoStore)),
        ("", "cache-control: no-store, must-understand, max-age=5", YES),
        ("", "cache-control: private, max-age=5", Err(NoStore::Private)),
        ("", "cache-control: private, public, max-age=5", Err(NoStore::Private)),
        ("", "cache-control: private=\"a\", max-age=5 | a: 1", YES),
        ("", "cache-control: no-cache", YES),
        ("", "pragma: no-cache", YES),
        ("cache-control: no-store", "cache-control: max-age=5", Err(NoStore::RequestNoStore)),
        ("cache-control: no-cache", "cache-control: max-age=5", YES),
        ("cache-control: x=\"no-store\"", "cache-control: max-age=5", YES),
        ("", "set-cookie: a=1 | cache-control: public, max-age=5", Err(NoStore::SetCookie)),
        ("", "set-cookie: a=1 | cache-control: no-cache=\"set-cookie\"", Err(NoStore::SetCookie)),
        ("", "set-cookie2: a=1 | cache-control: max-age=5", YES),
        ("", "vary: * | cache-control: max-age=5", Err(NoStore::VaryStar)),
        ("", "vary: a, *", Err(NoStore::VaryStar)),
        ("a: 1", "vary: a", YES),
        ("cookie: a", "vary: cookie | cache-control: public", Err(NoStore::VarySecret)),
        ("", "vary: cookie | cache-control: public", YES),
        ("authorization: x", "cache-control: max-age=5", Err(NoStore::Authorization)),
        ("authorization: x", "", Err(NoStore::Authorization)),
        // what may be kept in spite of credentials is told by the reason: this may not
        ("authorization: x", "cache-control: no-store", Err(NoStore::NoStore)),
        ("authorization: x", "cache-control: public", MINE),
        ("authorization: x", "cache-control: s-maxage=5", MINE),
        ("authorization: x", "cache-control: must-revalidate, max-age=5", MINE),
        ("authorization: x", "cache-control: proxy-revalidate, max-age=5", Err(NoStore::Authorization)),
        ("authorization: x", "cache-control: public, private", Err(NoStore::Private)),
        ("cookie: a", "cache-control: max-age=5", Err(NoStore::Cookie)),
        ("cookie: a", "cache-control: s-maxage=5", Err(NoStore::Cookie)),
        ("cookie: a", "cache-control: public", MINE),
    ] {
        assert_eq!(ask("GET", request, 200, response, &Rule::default()), want, "{request} | {response}");
    }
}

#[test]
fn rules_decide_within_their_bounds() {
    let never = rule(Caching::Never, None, "0s");
    let force = rule(Caching::Force, Some("1h"), "0s");
    let negative = rule(Caching::Default, None, "10s");
    let lasting = rule(Caching::Default, Some("1h"), "0s");
    let unshared = Rule { share: false, ..Rule::default() };
    for (rule, request, status, response, want) in [
        (&never, "", 200, "cache-control: max-age=5", Err(NoStore::Rule)),
        (&unshared, "", 200, "cache-control: max-age=5", MINE),
        (&force, "", 200, "cache-control: no-store", YES),
        (&force, "", 200, "cache-control: private", Err(NoStore::Private)),
        (&force, "", 200, "set-cookie: a", Err(NoStore::SetCookie)),
        (&force, "authorization: x", 200, "", Err(NoStore::Authorization)),
        (&force, "cookie: x", 200, "", Err(NoStore::Cookie)),
        (&force, "cache-control: no-store", 200, "", Err(NoStore::RequestNoStore)),
        (&force, "", 200, "vary: *", Err(NoStore::VaryStar)),
        (&force, "", 302, "", Err(NoStore::NoLifetime)),
        (&force, "", 500, "", Err(NoStore::NoLifetime)),
        (&force, "", 301, "", MINE),
        (&force, "", 404, "", Err(NoStore::NoLifetime)),
        (&negative, "", 404, "", MINE),
        (&negative, "", 410, "", MINE),
        (&negative, "", 404, "cache-control: max-age=0", Err(NoStore::NoLifetime)),
        (&negative, "", 404, "cache-control: no-store", Err(NoStore::NoStore)),
        (&negative, "", 403, "", Err(NoStore::NoLifetime)),
        (&negative, "", 301, "", Err(NoStore::NoLifetime)),
        (&lasting, "", 301, "", MINE),
        (&lasting, "", 404, "", Err(NoStore::NoLifetime)),
        (&lasting, "", 302, "", Err(NoStore::NoLifetime)),
        (&lasting, "", 503, "", Err(NoStore::NoLifetime)),
        (&lasting, "", 503, "cache-control: max-age=5", MINE),
    ] {
        assert_eq!(
            ask("GET", request, status, response, rule),
            want,
            "{request} {status} {response} {rule:?}"
        );
    }
}

#[test]
fn a_neighbour_gets_what_describes_the_bytes() {
    let head = StoredHead::keep(
        StatusCode::OK,
        &fields(
            "content-type: text/plain | set-cookie: a | set-cookie2: a | location: /x | date: @0 | age: 5 \
             | etag: \"a\" | last-modified: @0 | content-length: 3 | content-encoding: gzip | server: x \
             | x-amz-checksum-sha256: y | x-anything: z | via: 1.1 x | www-authenticate: x \
             | content-disposition: attachment | cache-control: max-age=5 | vary: a | clear-site-data: cache \
             | strict-transport-security: x | alt-svc: x | refresh: 0",
        ),
    );
    let shared = shared_fields(&head);
    let names: Vec<&str> = shared.fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "content-type",
            "etag",
            "last-modified",
            "content-length",
            "content-encoding",
            "x-amz-checksum-sha256",
            "content-disposition",
            "cache-control",
            "vary",
        ]
    );
    assert_eq!(shared.status, 200);
    assert!(SHARED.is_sorted());
}

proptest! {
    #[test]
    fn nothing_of_one_user_is_ever_kept_for_all(
        directives in prop::collection::vec(prop::sample::select(vec![
            "public", "max-age=5", "s-maxage=5", "no-cache", "must-revalidate", "immutable", "must-understand",
        ]), 0..4),
        force: bool,
        secret in prop::sample::select(vec!["authorization", "cookie"]),
        status in prop::sample::select(vec![200u16, 204, 301, 404]),
    ) {
        let rule = if force { rule(Caching::Force, None, "1h") } else { Rule::default() };
        let response = format!("cache-control: {}", directives.join(", "));
        let with = |more: &str| ask("GET", "", status, &format!("{response}{more}"), &rule);
        prop_assert!(with(" | set-cookie: a").is_err());
        prop_assert!(with(", private").is_err());
        let secretly = ask("GET", &format!("{secret}: x"), status, &response, &rule);
        prop_assert!(secretly != Ok(true));
    }
}
