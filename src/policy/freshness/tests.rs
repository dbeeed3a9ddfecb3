//! RFC 9111 section 4.2, and CASES S18.

use super::super::Caching;
use super::super::support::{START, answer, at, fields, rule};
use super::*;
use proptest::prelude::*;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

fn lifetime_of(lines: &str) -> u64 {
    freshness_lifetime(&answer(lines), &Rule::default()).as_secs()
}

#[test]
fn section_4_2_1_what_the_origin_states() {
    for (lines, want) in [
        ("cache-control: max-age=60", 60),
        ("cache-control: s-maxage=60", 60),
        ("cache-control: max-age=10, s-maxage=60", 60),
        ("cache-control: max-age=60, s-maxage=10", 10),
        ("cache-control: max-age=60 | cache-control: s-maxage=10", 10),
        ("cache-control: max-age=60 | expires: @-7200 | date: @0", 60),
        ("cache-control: max-age=60 | expires: 0", 60),
        ("cache-control: max-age=0 | expires: @3600 | date: @0", 0),
        ("cache-control: max-age=0, s-maxage=60 | expires: @-10", 60),
        ("cache-control: max-age=99999999999", 1 << 31),
        ("cache-control: no-cache, max-age=60", 0),
        ("cache-control: no-cache=\"a\", max-age=60", 60),
        ("cache-control: max-age=nonsense | last-modified: @-1000", 0),
        ("expires: @60 | date: @0", 60),
        ("expires: @60", 60),
        ("expires: @60 | date: nonsense", 60),
        ("expires: @0 | date: @0", 0),
        ("expires: @-60 | date: @0", 0),
        ("expires: @300 | date: @400", 0),
        ("expires: @20 | date: @10", 10),
        ("expires: 0 | last-modified: @-1000 | date: @0", 0),
        ("expires: -1 | date: @0", 0),
        ("expires: Thu, 18 Aug 2050 02:01:18 UTC | date: @0", 0),
        ("expires: @60 | expires: @60 | date: @0", 60),
        ("expires: @60 | expires: @90 | date: @0", 0),
        ("", 0),
        ("date: @0", 0),
        ("etag: \"a\" | date: @0", 0),
    ] {
        assert_eq!(lifetime_of(lines), want, "{lines}");
    }
}

#[test]
fn who_comes_later_must_ask_where_the_origin_says_so() {
    for (lines, want) in [
        ("cache-control: no-cache", true),
        ("cache-control: no-cache, max-age=60", true),
        ("cache-control: max-age=0", true),
        ("cache-control: s-maxage=0", true),
        ("expires: @-60 | date: @0", true),
        ("cache-control: max-age=60", false),
        ("cache-control: s-maxage=60", false),
        ("expires: @60 | date: @0", false),
        // fresh for no time as far as anybody knows, but nobody said so
        ("", false),
        ("etag: \"a\"", false),
    ] {
        assert_eq!(must_confirm(&answer(lines), &Rule::default()), want, "{lines}");
    }
}

#[test]
fn section_4_2_2_what_is_guessed() {
    for (lines, want) in [
        ("last-modified: @-1000 | date: @0", 100),
        ("last-modified: @-1000", 100),
        ("last-modified: @-5 | date: @0", 0),
        ("last-modified: @-864000 | date: @0", DAY),
        ("last-modified: @-86400000 | date: @0", DAY),
        ("last-modified: @0 | date: @0", 0),
        ("last-modified: @1000 | date: @0", 0),
        ("last-modified: nonsense | date: @0", 0),
        // a date from the future does not make it older than it is
        ("last-modified: @-1000 | date: @500000", 100),
        ("last-modified: @-1000 | date: @0 | pragma: no-cache", 0),
        ("last-modified: @-1000 | date: @0 | cache-control: public", 100),
        ("last-modified: @-1000 | date: @0 | cache-control: no-cache", 0),
    ] {
        assert_eq!(lifetime_of(lines), want, "{lines}");
    }
    let guess = |status, queried| {
        let mut answer = answer("last-modified: @-1000 | date: @0");
        answer.head.status = status;
        answer.queried = queried;
        freshness_lifetime(&answer, &Rule::default()).as_secs()
    };
    for (status, queried, want) in [
        (200, false, 100),
        (203, false, 100),
        (204, false, 100),
        (200, true, 0),
        (404, false, 0),
        (301, false, 0),
    ] {
        assert_eq!(guess(status, queried), want, "{status} {queried}");
    }
}

#[test]
fn rules_lengthen_what_the_origin_leaves_open() {
    let plain = rule(Caching::Default, Some("1h"), "10s");
    let forced = rule(Caching::Force, Some("1h"), "10s");
    let bare = rule(Caching::Force, None, "0s");
    for (rule, status, lines, want) in [
        (&plain, 200, "", HOUR),
        (&plain, 200, "last-modified: @-1000 | date: @0", HOUR),
        (&plain, 200, "cache-control: max-age=5", 5),
        (&plain, 200, "cache-control: no-cache", 0),
        (&plain, 200, "expires: 0", 0),
        (&plain, 301, "", HOUR),
        (&plain, 404, "", 10),
        (&plain, 410, "", 10),
        (&plain, 404, "cache-control: max-age=5", 5),
        (&forced, 200, "cache-control: max-age=5", HOUR),
        (&forced, 200, "cache-control: no-cache, no-store", HOUR),
        (&forced, 404, "cache-control: max-age=5", 10),
        (&bare, 200, "", DAY),
        (&bare, 404, "cache-control: max-age=5", 5),
        (&bare, 404, "", 0),
    ] {
        let mut answer = answer(lines);
        answer.head.status = status;
        assert_eq!(freshness_lifetime(&answer, rule).as_secs(), want, "{status} {lines}");
    }
}

#[test]
fn section_4_2_3_age() {
    // response fields, seconds between request and response, seconds since, age
    for (lines, delay, since, want) in [
        ("", 0, 0, 0),
        ("", 0, 10, 10),
        ("date: @0", 0, 10, 10),
        ("date: @-30", 0, 10, 40),
        ("date: @500", 0, 10, 10),
        ("date: nonsense", 0, 10, 10),
        ("age: 30", 0, 10, 40),
        ("age: 30", 5, 10, 45),
        ("age: 30 | date: @-50", 5, 10, 60),
        ("", 5, 10, 15),
        ("age: 0", 0, 0, 0),
        ("age: 7200, 0", 0, 0, 7200),
        ("age: 0, 7200", 0, 0, 0),
        ("age: 7200 | age: 0", 0, 0, 7200),
        ("age: 0 | age: 7200", 0, 0, 0),
        ("age: abc", 0, 5, 5),
        ("age: -7200", 0, 5, 5),
        ("age: 7200.0", 0, 5, 5),
        ("age: 7200;foo=bar", 0, 5, 5),
        ("age: abc | age: 10", 0, 5, 5),
        ("age: 2147483647", 0, 0, (1 << 31) - 1),
        ("age: 2147483648", 0, 5, 1 << 31),
        ("age: 99999999999999999999999", 0, 5, 1 << 31),
    ] {
        let mut answer = answer(lines);
        answer.request_time = at(-delay);
        assert_eq!(age(&answer, at(since)).as_secs(), want, "{lines} {delay} {since}");
    }
}

#[test]
fn s18_no_jump_of_the_clock_makes_a_thing_immortal() {
    let kept = answer("cache-control: max-age=60 | date: @0");
    for (now, want) in [
        (0, 0),
        (-10, 0),        // a small step back
        (-300, 0),       // the largest small one
        (-301, 1 << 31), // stored two years ahead, then set right
        (-63_072_000, 1 << 31),
        (63_072_000, 63_072_000), // stored in the past
    ] {
        assert_eq!(age(&kept, at(now)).as_secs(), want, "{now}");
    }
    // stored on a machine whose clock said 1970
    let young = Answer { request_time: Timestamp(0), response_time: Timestamp(1000), ..kept };
    assert_eq!(age(&young, Timestamp(3000)).as_secs(), 3);
    assert_eq!(age(&young, START), Duration::from_millis(START.0));
    // the clock went back between request and response
    let torn = Answer { request_time: at(500), ..answer("age: 7") };
    assert_eq!(age(&torn, at(1)).as_secs(), 8);
}

#[test]
fn h44_stale_in_case_of_errors() {
    let window = 100;
    for (lines, since, want) in [
        ("cache-control: max-age=10", 5, true),
        ("cache-control: max-age=10", 110, true),
        ("cache-control: max-age=10", 111, false),
        ("cache-control: max-age=10, stale-if-error=5", 15, true),
        ("cache-control: max-age=10, stale-if-error=5", 16, false),
        ("cache-control: max-age=10, stale-if-error=500", 300, true),
        ("cache-control: max-age=10, stale-if-error=x", 11, false),
        ("cache-control: max-age=10, must-revalidate", 11, false),
        ("cache-control: max-age=10, must-revalidate, stale-if-error=500", 11, false),
        ("cache-control: max-age=10, proxy-revalidate", 11, false),
        ("cache-control: s-maxage=10", 11, false),
        ("cache-control: s-maxage=10, stale-if-error=500", 11, true),
        ("cache-control: no-cache", 1, false),
        ("cache-control: no-cache=\"a\", max-age=10", 11, true),
        ("etag: \"a\"", 100, true),
        ("etag: \"a\"", 101, false),
        ("expires: @10 | date: @0", 110, true),
        ("cache-control: max-age=10", -1000, false),
    ] {
        let got = stale_allowed(&answer(lines), &Rule::default(), at(since), Duration::from_secs(window));
        assert_eq!(got, want, "{lines} {since}");
    }
    let forced = rule(Caching::Force, Some("10s"), "0s");
    let strict = answer("cache-control: must-revalidate");
    assert!(stale_allowed(&strict, &forced, at(110), Duration::from_secs(window)));
}

#[test]
fn section_3_1_what_of_a_head_is_kept() {
    let target = Target::from_uri(&"http://h/a?b".parse().unwrap()).unwrap();
    let keep = |lines| Answer::keep(&target, StatusCode::OK, &fields(lines), at(-1), START).head;
    for (lines, name, want) in [
        ("a: 1 | connection: close, A", "a", None),
        ("connection: close", "connection", None),
        ("keep-alive: 5", "keep-alive", None),
        ("proxy-connection: x", "proxy-connection", None),
        ("proxy-authenticate: x", "proxy-authenticate", None),
        ("proxy-authentication-info: x", "proxy-authentication-info", None),
        ("te: x", "te", None),
        ("transfer-encoding: chunked", "transfer-encoding", None),
        ("upgrade: x", "upgrade", None),
        ("cache-control: no-cache=\"a, b\" | A: 1 | c: 3", "a", None),
        ("cache-control: no-cache=\"a, b\" | A: 1 | c: 3", "c", Some("3")),
        ("cache-control: private=\"set-cookie\" | set-cookie: a", "set-cookie", None),
        ("cache-control: no-cache=\"not a name\" | a: 1", "a", Some("1")),
        ("content-foo: 1", "content-foo", Some("1")),
        ("content-range: x", "content-range", Some("x")),
        ("date: @-5", "date", Some("Mon, 30 Nov 2026 11:59:55 GMT")),
        ("", "date", Some("Mon, 30 Nov 2026 12:00:00 GMT")),
        ("age: 60", "date", Some("Mon, 30 Nov 2026 11:59:00 GMT")),
    ] {
        assert_eq!(keep(lines).get(name), want, "{lines} {name}");
    }
    let kept = Answer::keep(&target, StatusCode::OK, &fields(""), at(-1), START);
    assert_eq!((kept.request_time, kept.response_time, kept.queried), (at(-1), START, true));
    let json = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<Answer>(&json).unwrap(), kept);
}

fn line() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["age", "date", "expires", "last-modified", "cache-control"]);
    let value = prop_oneof![
        "[ -{}~]{0,30}",
        (-100_000i64..100_000).prop_map(|n| format!("@{n}")),
        "(max-age|s-maxage|no-cache|stale-if-error)=[0-9]{0,12}",
        "[0-9]{1,25}",
    ];
    (name, value).prop_map(|(name, value)| {
        // `@` begins a date in these tables and nothing else
        let date = value.trim().strip_prefix('@').is_none_or(|n| n.parse::<i64>().is_ok());
        if date { format!("{name}: {value}") } else { format!("{name}: x") }
    })
}

proptest! {
    #[test]
    fn nothing_panics_and_age_only_grows(
        lines in prop::collection::vec(line(), 0..6),
        request in -1000i64..1000,
        now in -1_000_000i64..1_000_000,
        later in 0i64..1_000_000,
    ) {
        let mut answer = answer(&lines.join(" | "));
        answer.request_time = at(request);
        let (first, second) = (age(&answer, at(now.max(0))), age(&answer, at(now.max(0) + later)));
        prop_assert!(first <= second);
        prop_assert!(second <= Duration::from_secs(1 << 31));
        let lifetime = freshness_lifetime(&answer, &Rule::default());
        prop_assert!(lifetime <= Duration::from_secs(1 << 31));
        // what is stale stays stale
        if lifetime <= first {
            prop_assert!(lifetime <= second);
        }
        let _unused = age(&answer, at(now));
    }

    #[test]
    fn no_time_panics(request: u64, response: u64, now: u64, age_value: u64) {
        let answer = Answer {
            request_time: Timestamp(request),
            response_time: Timestamp(response),
            ..answer(&format!("age: {age_value} | date: @0 | expires: @10"))
        };
        prop_assert!(age(&answer, Timestamp(now)) <= Duration::from_secs(1 << 31));
        let _unused = stale_allowed(&answer, &Rule::default(), Timestamp(now), Duration::MAX);
    }
}
