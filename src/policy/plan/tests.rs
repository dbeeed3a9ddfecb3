//! RFC 9111 sections 4 and 5.2.1, RFC 5861, RFC 8246; CASES H17, H30, H44, H53, K01.

use super::super::support::{answer, at, fields, rule};
use super::*;
use proptest::prelude::*;

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

fn serve(age: u64) -> Plan {
    Plan::Serve { age: Duration::from_secs(age) }
}

fn behind(age: u64) -> Plan {
    Plan::ServeAndRevalidate { age: Duration::from_secs(age) }
}

const ASK: Plan = Plan::Revalidate { stale_allowed: true };
const MUST_ASK: Plan = Plan::Revalidate { stale_allowed: false };

fn get(request: &str, kept: &str, now: i64) -> Plan {
    plan(&Method::GET, &fields(request), Some(&answer(kept)), &Rule::default(), at(now), WEEK)
}

#[test]
fn who_insists_says_so() {
    for (request, want) in [
        ("cache-control: no-cache", true),
        ("pragma: no-cache", true),
        ("cache-control: max-age=0", true),
        ("cache-control: max-age=1", false),
        ("cache-control: no-store", false),
        ("", false),
    ] {
        assert_eq!(insists(&fields(request)), want, "{request}");
    }
}

#[test]
fn section_4_fresh_stale_and_missing() {
    for (kept, now, want) in [
        ("cache-control: max-age=10", 0, serve(0)),
        ("cache-control: max-age=10", 9, serve(9)),
        ("cache-control: max-age=10", 10, ASK),
        ("cache-control: max-age=10 | etag: \"a\"", 10, ASK),
        ("cache-control: max-age=10 | age: 9", 0, serve(9)),
        ("cache-control: max-age=10 | age: 10 | etag: \"a\"", 0, ASK),
        ("cache-control: max-age=10", 8 * 86_400, Plan::Fetch),
        ("cache-control: max-age=10 | etag: \"a\"", 8 * 86_400, MUST_ASK),
        ("cache-control: max-age=10, stale-if-error=5", 14, ASK),
        ("cache-control: max-age=10, stale-if-error=5", 16, Plan::Fetch),
        ("cache-control: max-age=0", 0, ASK),
        ("cache-control: no-cache, max-age=10", 0, Plan::Fetch),
        ("cache-control: no-cache, max-age=10 | etag: \"a\"", 0, MUST_ASK),
        ("cache-control: max-age=10, must-revalidate", 9, serve(9)),
        ("cache-control: max-age=10, must-revalidate", 10, Plan::Fetch),
        ("cache-control: max-age=10, must-revalidate | etag: \"a\"", 10, MUST_ASK),
        ("cache-control: max-age=10, proxy-revalidate | etag: \"a\"", 10, MUST_ASK),
        ("cache-control: s-maxage=10 | etag: \"a\"", 10, MUST_ASK),
        ("cache-control: max-age=10, immutable | etag: \"a\"", 10, ASK),
        ("expires: @10 | date: @0", 9, serve(9)),
        ("expires: @10 | date: @0", 10, ASK),
        ("expires: 0 | last-modified: @-1000", 0, ASK),
        ("last-modified: @-1000 | date: @0", 99, serve(99)),
        ("last-modified: @-1000 | date: @0", 100, ASK),
        ("etag: \"a\"", 0, ASK),
        ("last-modified: nonsense", 0, Plan::Fetch),
        ("", 0, Plan::Fetch),
        ("date: @0", 5, Plan::Fetch),
        // an entry from the future has no known age
        ("cache-control: max-age=10 | etag: \"a\"", -1000, MUST_ASK),
    ] {
        assert_eq!(get("", kept, now), want, "{kept} {now}");
    }
    let nothing = plan(&Method::GET, &fields(""), None, &Rule::default(), at(0), WEEK);
    assert_eq!(nothing, Plan::Fetch);
}

#[test]
fn section_5_2_1_what_a_client_may_ask() {
    let fresh = "cache-control: max-age=100 | etag: \"a\"";
    for (request, kept, now, want) in [
        ("cache-control: max-age=0", fresh, 0, MUST_ASK),
        ("cache-control: max-age=0", "cache-control: max-age=100", 5, Plan::Fetch),
        ("cache-control: max-age=5", fresh, 5, serve(5)),
        ("cache-control: max-age=5", fresh, 6, MUST_ASK),
        (
            "cache-control: max-age=5 | x: 1",
            "cache-control: max-age=100 | age: 50 | etag: \"a\"",
            0,
            MUST_ASK,
        ),
        ("cache-control: max-age=x", fresh, 5, MUST_ASK),
        ("cache-control: max-age=500", fresh, 100, ASK),
        ("cache-control: no-cache", fresh, 5, MUST_ASK),
        ("cache-control: no-cache", "cache-control: max-age=100", 5, Plan::Fetch),
        ("cache-control: no-cache", "cache-control: max-age=100 | last-modified: @0", 5, MUST_ASK),
        ("pragma: no-cache", fresh, 5, MUST_ASK),
        ("pragma: no-cache | cache-control: max-age=50", fresh, 5, serve(5)),
        ("pragma: x", fresh, 5, serve(5)),
        ("cache-control: min-fresh=50", fresh, 50, serve(50)),
        ("cache-control: min-fresh=50", fresh, 51, MUST_ASK),
        ("cache-control: min-fresh=x", fresh, 5, MUST_ASK),
        ("cache-control: max-stale", fresh, 5000, serve(5000)),
        ("cache-control: max-stale=10", fresh, 110, serve(110)),
        ("cache-control: max-stale=10", fresh, 111, ASK),
        ("cache-control: max-stale=1000", "cache-control: max-age=1500 | age: 2000", 0, serve(2000)),
        (
            "cache-control: max-stale",
            "cache-control: max-age=10, must-revalidate | etag: \"a\"",
            11,
            MUST_ASK,
        ),
        (
            "cache-control: max-stale",
            "cache-control: max-age=10, proxy-revalidate | etag: \"a\"",
            11,
            MUST_ASK,
        ),
        ("cache-control: max-stale", "cache-control: s-maxage=10 | etag: \"a\"", 11, MUST_ASK),
        ("cache-control: max-stale", "cache-control: no-cache | etag: \"a\"", 0, MUST_ASK),
        ("cache-control: max-stale", "", 0, Plan::Fetch),
        ("cache-control: max-stale, min-fresh=1", fresh, 110, MUST_ASK),
        ("cache-control: max-stale, max-age=50", fresh, 110, MUST_ASK),
        ("cache-control: max-stale=10, max-age=200", fresh, 110, serve(110)),
        ("cache-control: stale-if-error=5", fresh, 104, ASK),
        ("cache-control: stale-if-error=5", fresh, 106, MUST_ASK),
        ("cache-control: only-if-cached", fresh, 5, serve(5)),
        ("cache-control: only-if-cached", fresh, 100, Plan::Unavailable),
        ("cache-control: only-if-cached, max-stale", fresh, 100, serve(100)),
        ("cache-control: only-if-cached, no-cache", fresh, 5, Plan::Unavailable),
        ("cache-control: only-if-cached, no-store", fresh, 5, serve(5)),
        ("cache-control: only-if-cached", "", 5, Plan::Unavailable),
        ("cache-control: only-if-cached | authorization: x", fresh, 5, Plan::Unavailable),
        ("cache-control: no-store", fresh, 5, Plan::Pass(PassReason::NoStore)),
    ] {
        assert_eq!(get(request, kept, now), want, "{request} | {kept} | {now}");
    }
}

#[test]
fn rfc_8246_what_never_changes_is_not_asked_for_on_a_reload() {
    let kept = "cache-control: max-age=100, immutable | etag: \"a\"";
    for (request, now, want) in [
        ("cache-control: max-age=0", 5, serve(5)),
        ("cache-control: no-cache", 5, MUST_ASK),
        ("cache-control: min-fresh=99", 5, MUST_ASK),
        ("cache-control: max-age=0", 100, MUST_ASK),
    ] {
        assert_eq!(get(request, kept, now), want, "{request} {now}");
    }
}

#[test]
fn rfc_5861_served_while_it_is_revalidated() {
    let kept = "cache-control: max-age=10, stale-while-revalidate=20 | etag: \"a\"";
    for (request, kept, now, want) in [
        ("", kept, 9, serve(9)),
        ("", kept, 10, behind(10)),
        ("", kept, 30, behind(30)),
        ("", kept, 31, ASK),
        ("cookie: a", kept, 15, behind(15)),
        ("cache-control: no-cache", kept, 15, MUST_ASK),
        ("cache-control: max-age=5", kept, 15, MUST_ASK),
        ("cache-control: min-fresh=1", kept, 15, MUST_ASK),
        ("cache-control: max-age=50", kept, 15, behind(15)),
        ("cache-control: only-if-cached", kept, 15, behind(15)),
        ("", "cache-control: s-maxage=10, stale-while-revalidate=20", 15, behind(15)),
        (
            "",
            "cache-control: max-age=10, stale-while-revalidate=20, must-revalidate | etag: \"a\"",
            15,
            MUST_ASK,
        ),
        (
            "",
            "cache-control: max-age=10, stale-while-revalidate=20, proxy-revalidate | etag: \"a\"",
            15,
            MUST_ASK,
        ),
        ("", "cache-control: no-cache, stale-while-revalidate=20 | etag: \"a\"", 0, MUST_ASK),
        ("", "cache-control: max-age=10, stale-while-revalidate=x | etag: \"a\"", 11, ASK),
        ("", "cache-control: stale-while-revalidate=20 | etag: \"a\"", 5, ASK),
    ] {
        assert_eq!(get(request, kept, now), want, "{request} | {kept} | {now}");
    }
}

#[test]
fn h30_what_carries_credentials_passes_by() {
    let fresh = "cache-control: public, max-age=100 | etag: \"a\"";
    let pass = Plan::Pass;
    for (method, request, kept, want) in [
        ("GET", "authorization: x", Some(fresh), pass(PassReason::Authorization)),
        ("GET", "authorization: x", None, pass(PassReason::Authorization)),
        ("HEAD", "authorization: x", Some(fresh), pass(PassReason::Authorization)),
        ("GET", "cookie: a", Some(fresh), serve(0)),
        ("GET", "cookie: a", Some("cache-control: max-age=0 | etag: \"a\""), pass(PassReason::Cookie)),
        ("GET", "cookie: a", None, pass(PassReason::Cookie)),
        ("HEAD", "", Some(fresh), serve(0)),
        ("HEAD", "", None, pass(PassReason::Head)),
        ("HEAD", "", Some(""), pass(PassReason::Head)),
        ("HEAD", "", Some("etag: \"a\""), ASK),
        ("POST", "", Some(fresh), pass(PassReason::Method)),
        ("OPTIONS", "", None, pass(PassReason::Method)),
        ("PROPFIND", "", Some(fresh), pass(PassReason::Method)),
        ("POST", "cache-control: only-if-cached", None, pass(PassReason::Method)),
        ("GET", "content-length: 2", Some(fresh), pass(PassReason::Content)),
        ("GET", "content-length: 0", Some(fresh), serve(0)),
        ("GET", "transfer-encoding: chunked", None, pass(PassReason::Content)),
        ("GET", "if-match: \"a\"", Some(fresh), pass(PassReason::Condition)),
        ("GET", "if-unmodified-since: @0", Some(fresh), pass(PassReason::Condition)),
        // ranges and conditions of reading are for later
        ("GET", "range: bytes=0-", Some(fresh), serve(0)),
        ("GET", "range: bytes=0- | if-range: \"b\"", Some(fresh), serve(0)),
        ("GET", "range: bytes=0-", None, Plan::Fetch),
        ("GET", "if-none-match: \"b\"", Some(fresh), serve(0)),
        ("GET", "if-none-match: \"a\"", None, Plan::Fetch),
        ("GET", "if-modified-since: @0", Some("etag: \"a\""), ASK),
    ] {
        let kept = kept.map(answer);
        let got =
            plan(&method.parse().unwrap(), &fields(request), kept.as_ref(), &Rule::default(), at(0), WEEK);
        assert_eq!(got, want, "{method} {request} {kept:?}");
    }
}

#[test]
fn rules_change_the_plan() {
    let never = rule(Caching::Never, None, "0s");
    let force = rule(Caching::Force, Some("1h"), "0s");
    let lasting = rule(Caching::Default, Some("1h"), "0s");
    for (rule, request, kept, now, want) in [
        (&never, "", "cache-control: max-age=10", 0, Plan::Pass(PassReason::Rule)),
        (&force, "", "cache-control: no-cache", 50, serve(50)),
        (&force, "", "cache-control: max-age=0, must-revalidate", 3599, serve(3599)),
        (&force, "cache-control: max-age=0", "", 50, serve(50)),
        (&force, "cache-control: no-cache", "etag: \"a\"", 50, MUST_ASK),
        (&force, "", "cache-control: must-revalidate | etag: \"a\"", 3600, ASK),
        (&force, "authorization: x", "", 50, Plan::Pass(PassReason::Authorization)),
        (&lasting, "", "", 50, serve(50)),
        (&lasting, "", "", 3600, ASK),
        (&lasting, "", "cache-control: max-age=10", 50, ASK),
        (&lasting, "", "cache-control: no-cache | etag: \"a\"", 5, MUST_ASK),
    ] {
        let got = plan(&Method::GET, &fields(request), Some(&answer(kept)), rule, at(now), WEEK);
        assert_eq!(got, want, "{request} | {kept} | {now} | {rule:?}");
    }
}

#[test]
fn who_joins_a_transfer() {
    for (method, request, want) in [
        ("GET", "", true),
        ("GET", "range: bytes=0-1 | if-none-match: \"a\" | cache-control: max-age=0", true),
        ("HEAD", "", false),
        ("POST", "", false),
        ("GET", "authorization: x", false),
        ("GET", "cookie: x", false),
        ("GET", "content-length: 1", false),
        ("GET", "cache-control: no-store", false),
    ] {
        assert_eq!(joins(&method.parse().unwrap(), &fields(request)), want, "{method} {request}");
    }
}

#[test]
fn only_credentials_pass_by_and_may_still_be_kept() {
    use PassReason::*;
    for (reason, want) in [
        (Method, false),
        (Head, false),
        (Content, false),
        (NoStore, false),
        (Rule, false),
        (Authorization, true),
        (Cookie, true),
        (Condition, false),
    ] {
        assert_eq!(reason.may_be_kept(), want, "{reason}");
        assert!(!reason.to_string().is_empty());
    }
}

proptest! {
    #[test]
    fn freshness_is_never_found_again_by_waiting(
        directives in prop::collection::vec(prop::sample::select(vec![
            "max-age=10", "max-age=100", "s-maxage=50", "immutable", "no-cache", "must-revalidate",
            "stale-while-revalidate=30", "stale-if-error=30", "public",
        ]), 0..4),
        asked in prop::collection::vec(prop::sample::select(vec![
            "max-age=0", "max-age=20", "min-fresh=10", "max-stale=20", "max-stale", "no-cache",
        ]), 0..3),
        etag: bool,
        now in 0i64..300,
        later in 0i64..300,
    ) {
        let kept = format!("cache-control: {}{}", directives.join(", "), if etag { " | etag: \"a\"" } else { "" });
        let request = format!("cache-control: {}", asked.join(", "));
        // the better plan has the lower rank
        let rank = |plan| match plan {
            Plan::Serve { .. } => 0,
            Plan::ServeAndRevalidate { .. } => 1,
            Plan::Revalidate { stale_allowed: true } => 2,
            Plan::Revalidate { stale_allowed: false } => 3,
            Plan::Fetch | Plan::Unavailable | Plan::Pass(_) => 4,
        };
        prop_assert!(rank(get(&request, &kept, now)) <= rank(get(&request, &kept, now + later)));
    }

    #[test]
    fn no_client_gets_what_must_be_asked_for(request in "cache-control: [a-z=0-9, -]{0,40}", now in 0i64..300) {
        let got = get(&request, "cache-control: no-cache | etag: \"a\"", now);
        let served = matches!(got, Plan::Serve { .. } | Plan::ServeAndRevalidate { .. });
        prop_assert!(!served);
    }
}
