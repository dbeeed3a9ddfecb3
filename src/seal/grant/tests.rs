//! Tests of `seal::grant`.

use super::*;
use crate::clock::{ManualClock, Timestamp};
use crate::digest::Digest;

const ME: NodeId = NodeId::from_bytes([9; 16]);
const ASKER: NodeId = NodeId::from_bytes([1; 16]);

fn thing(n: u32) -> Thing {
    Thing::Blob(Digest::of(&n.to_be_bytes()))
}

fn bearer(grant: GrantId, counter: u64) -> Bearer {
    Bearer { grant, thing: thing(0), asker: ASKER, holder: ME, counter }
}

fn grants() -> (Arc<ManualClock>, Grants) {
    let clock = ManualClock::new(Timestamp(0));
    (clock.clone(), Grants::new(clock))
}

#[test]
fn a_grant_admits_its_asker_to_its_thing_with_fresh_counters() {
    let (_, grants) = grants();
    let id = grants.issue(ASKER, thing(0)).unwrap();
    assert_eq!(grants.issue(ASKER, thing(0)).unwrap(), id, "the same grant goes on");
    for counter in [1, 2, 5, 4] {
        assert_eq!(grants.admit(&bearer(id, counter), ME), Ok(()));
        assert_eq!(grants.admit(&bearer(id, counter), ME), Err(Refused::Spent));
    }
    let other = NodeId::from_bytes([4; 16]);
    assert_eq!(grants.admit(&bearer(id, 9), other), Err(Refused::Mismatch));
    assert_eq!(grants.admit(&Bearer { asker: other, ..bearer(id, 9) }, ME), Err(Refused::Mismatch));
    assert_eq!(grants.admit(&Bearer { thing: thing(1), ..bearer(id, 9) }, ME), Err(Refused::Mismatch));
    assert_eq!(grants.admit(&bearer(GrantId([0; 16]), 9), ME), Err(Refused::Unknown));
}

#[test]
fn a_grant_ends_a_minute_after_its_last_use() {
    let (clock, grants) = grants();
    let id = grants.issue(ASKER, thing(0)).unwrap();
    for counter in 1..5 {
        clock.advance(Duration::from_secs(59));
        assert_eq!(grants.admit(&bearer(id, counter), ME), Ok(()));
    }
    clock.advance(Duration::from_secs(60));
    assert_eq!(grants.admit(&bearer(id, 9), ME), Err(Refused::Unknown));
    let again = grants.issue(ASKER, thing(0)).unwrap();
    assert_ne!(again, id);
    assert_eq!(grants.admit(&bearer(again, 1), ME), Ok(()));
}

#[test]
fn the_book_is_bounded_and_keeps_what_is_used() {
    let (clock, grants) = grants();
    let id = grants.issue(ASKER, thing(0)).unwrap();
    let limit = u32::try_from(MOST).unwrap();
    for n in 1..limit * 3 {
        clock.advance(Duration::from_millis(1));
        grants.issue(ASKER, thing(n)).unwrap();
        if n % 1000 == 0 {
            assert_eq!(grants.admit(&bearer(id, u64::from(n)), ME), Ok(()));
        }
    }
    assert!(grants.book().grants.len() <= MOST);
    clock.advance(Duration::from_secs(61));
    grants.issue(ASKER, thing(0)).unwrap();
    let book = grants.book();
    assert_eq!((book.grants.len(), book.by_use.len(), book.order.len()), (1, 1, 1));
}

#[test]
fn one_grant_covers_both_names_of_a_thing() {
    let (_, grants) = grants();
    let resource = Thing::Resource([7; 32]);
    let id = grants.issue_named(ASKER, resource, Some(thing(0))).unwrap();
    assert_eq!(grants.admit(&Bearer { thing: resource, ..bearer(id, 1) }, ME), Ok(()));
    assert_eq!(grants.admit(&bearer(id, 2), ME), Ok(()));
    assert_eq!(grants.admit(&Bearer { thing: thing(1), ..bearer(id, 3) }, ME), Err(Refused::Mismatch));
}

#[test]
fn what_has_ended_leaves_with_the_minute() {
    let (clock, grants) = grants();
    grants.issue(ASKER, thing(0)).unwrap();
    clock.advance(Duration::from_secs(60));
    grants.issue(ASKER, thing(1)).unwrap();
    assert_eq!(grants.book().grants.len(), 1, "a minute after it was given");
    let id = grants.issue(ASKER, thing(0)).unwrap();
    clock.advance(Duration::from_secs(10));
    assert_eq!(grants.admit(&bearer(id, 1), ME), Ok(()));
    clock.advance(Duration::from_secs(60));
    grants.issue(ASKER, thing(2)).unwrap();
    assert_eq!(grants.book().grants.len(), 1, "a minute after its last use");
}

#[test]
fn a_grant_behind_one_that_lives_ends_in_time_too() {
    let (clock, grants) = grants();
    let pass = |seconds| clock.advance(Duration::from_secs(seconds));
    let living = grants.issue(ASKER, thing(1)).unwrap();
    let ending = grants.issue(ASKER, thing(0)).unwrap();
    pass(10);
    assert_eq!(grants.admit(&bearer(ending, 1), ME), Ok(()));
    pass(40);
    assert_eq!(grants.admit(&Bearer { thing: thing(1), ..bearer(living, 1) }, ME), Ok(()));
    pass(10);
    // both move behind, the one that lives longer first
    grants.issue(ASKER, thing(2)).unwrap();
    pass(10);
    assert_ne!(grants.issue(ASKER, thing(0)).unwrap(), ending);
}
