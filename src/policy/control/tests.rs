//! RFC 9111 section 5.2, directive by directive.

use super::super::support::fields;
use super::*;
use http::HeaderValue;
use proptest::prelude::*;

fn said(value: &str) -> ResponseControl {
    ResponseControl::of(&fields(&format!("cache-control: {value}")))
}

fn asked(value: &str) -> RequestControl {
    RequestControl::of(&fields(&format!("cache-control: {value}")))
}

#[test]
fn lifetimes_are_read_by_their_grammar() {
    for (value, max_age, s_maxage) in [
        ("max-age=60", Some(60), None),
        ("MaX-aGe=60", Some(60), None),
        ("max-age=\"60\"", Some(60), None),
        ("max-age=0060", Some(60), None),
        ("s-maxage=60, max-age=10", Some(10), Some(60)),
        ("foobar, max-age=60", Some(60), None),
        ("foo=bar;x, max-age=60", Some(60), None),
        ("max-age=99999999999", Some(1 << 31), None),
        ("max-age=1800, max-age=1", Some(1), None),
        ("max-age=1, max-age=1800", Some(1), None),
        ("x=\"max-age=3600\", max-age=1", Some(1), None),
        ("max-age=1, x=\"max-age=3600\"", Some(1), None),
        ("x=\"max-age=3600\"", None, None),
        ("x=\"\\\"max-age=3600, \\\"\", max-age=2", Some(2), None),
        ("max-age", Some(0), None),
        ("max-age=", Some(0), None),
        ("max-age=-60", Some(0), None),
        ("max-age=+60", Some(0), None),
        ("max-age=60.0", Some(0), None),
        ("max-age=60a", Some(0), None),
        ("max-age=a60", Some(0), None),
        ("max-age='60'", Some(0), None),
        ("max-age =60", Some(0), None),
        ("max-age= 60", Some(0), None),
        ("max-age=\"60", Some(0), None),
        ("max-age=60, max-age=x", Some(0), None),
        ("s-maxage=x", None, Some(0)),
        ("max-age: 60", None, None),
        ("", None, None),
        (", ,", None, None),
    ] {
        assert_eq!((said(value).max_age, said(value).s_maxage), (max_age, s_maxage), "{value}");
    }
}

#[test]
fn lines_are_one_list() {
    let both = ResponseControl::of(&fields("cache-control: max-age=60 | cache-control: no-store, max-age=5"));
    assert_eq!((both.no_store, both.max_age), (true, Some(5)));
}

#[test]
fn flags_stand_alone_in_any_case() {
    for value in ["no-store", "No-StOrE", "a, no-store", "no-store=1", "x=\"unended, no-store", "no-store ,a"]
    {
        assert!(said(value).no_store, "{value}");
    }
    for value in ["nostore", "x=no-store", "x=\"no-store\"", "\"no-store\"", "no-store-x"] {
        assert!(!said(value).no_store, "{value}");
    }
    let all =
        said("public, must-revalidate, proxy-revalidate, must-understand, immutable, private, no-cache");
    assert!(all.public && all.must_revalidate && all.proxy_revalidate && all.must_understand);
    assert!(all.immutable && all.private && all.no_cache);
}

#[test]
fn field_names_qualify_no_cache_and_private() {
    for (value, no_cache, private, withheld) in [
        ("no-cache", true, false, vec![]),
        ("no-cache=\"a\"", false, false, vec!["a"]),
        ("no-cache=\"A, b\"", false, false, vec!["a", "b"]),
        ("no-cache=a", false, false, vec!["a"]),
        ("no-cache=\"\"", true, false, vec![]),
        ("no-cache=\" , \"", true, false, vec![]),
        ("no-cache=\"a", true, false, vec![]),
        ("no-cache=\"a\", no-cache", true, false, vec!["a"]),
        ("private=\"set-cookie\"", false, false, vec!["set-cookie"]),
        ("private=\"a\", no-cache=\"b\"", false, false, vec!["a", "b"]),
        ("private", false, true, vec![]),
        ("private=", false, true, vec![]),
    ] {
        let said = said(value);
        assert_eq!((said.no_cache, said.private), (no_cache, private), "{value}");
        assert_eq!(said.withheld, withheld, "{value}");
    }
}

#[test]
fn requests_are_read_to_their_strictest() {
    let none = RequestControl::default();
    for (value, want) in [
        ("no-store", RequestControl { no_store: true, ..none }),
        ("NO-CACHE", RequestControl { no_cache: true, ..none }),
        ("only-if-cached", RequestControl { only_if_cached: true, ..none }),
        ("max-age=0", RequestControl { max_age: Some(0), ..none }),
        ("max-age=9, max-age=3", RequestControl { max_age: Some(3), ..none }),
        ("max-age=x", RequestControl { max_age: Some(0), ..none }),
        ("min-fresh=3, min-fresh=9", RequestControl { min_fresh: Some(9), ..none }),
        ("min-fresh=x", RequestControl { min_fresh: Some(1 << 31), ..none }),
        ("max-stale", RequestControl { max_stale: Some(u64::MAX), ..none }),
        ("max-stale=5", RequestControl { max_stale: Some(5), ..none }),
        ("max-stale=x", RequestControl { max_stale: Some(0), ..none }),
        ("max-stale, max-stale=5", RequestControl { max_stale: Some(5), ..none }),
        ("stale-if-error=5", RequestControl { stale_if_error: Some(5), ..none }),
        ("s-maxage=5, must-revalidate", none),
    ] {
        assert_eq!(asked(value), want, "{value}");
    }
}

#[test]
fn pragma_counts_where_nothing_else_stands() {
    for (lines, want) in [
        ("pragma: no-cache", true),
        ("pragma: No-Cache", true),
        ("pragma: x, no-cache", true),
        ("pragma: x", false),
        ("pragma: no-cache | cache-control: max-age=5", false),
        ("pragma: no-cache | cache-control: no-cache", true),
        ("", false),
    ] {
        assert_eq!(RequestControl::of(&fields(lines)).no_cache, want, "{lines}");
    }
}

proptest! {
    #[test]
    fn no_field_panics_and_a_kept_one_reads_the_same(value in prop::collection::vec(0x20u8..=0x7e, 0..60)) {
        let mut map = HeaderMap::new();
        map.append("cache-control", HeaderValue::from_bytes(&value).unwrap());
        let _unused = RequestControl::of(&map);
        let kept = StoredHead::keep(http::StatusCode::OK, &map);
        prop_assert_eq!(ResponseControl::kept(&kept), ResponseControl::of(&map));
    }

    #[test]
    fn bytes_of_no_alphabet_hide_nothing(value in prop::collection::vec(0x80u8..=0xff, 0..20)) {
        let mut line = value;
        line.extend_from_slice(b", no-store");
        let mut map = HeaderMap::new();
        map.append("cache-control", HeaderValue::from_bytes(&line).unwrap());
        prop_assert!(ResponseControl::of(&map).no_store);
    }
}
