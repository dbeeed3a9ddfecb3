//! Strikes, bans and their ends, on a clock that stands still.

use super::*;
use crate::clock::{Clock, ManualClock};
use proptest::prelude::*;

const WHY: &str = "a token that no accepted key opens";

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn list() -> (BanList, Arc<ManualClock>) {
    let clock = ManualClock::new(Timestamp::from_seconds(1_000_000));
    (BanList::new(Config::default(), clock.clone()), clock)
}

fn strikes(bans: &BanList, address: IpAddr, n: usize) -> bool {
    (0..n).fold(false, |_, _| bans.strike(address, WHY))
}

/// Everything the listener hears.
fn heard(bans: &BanList) -> Arc<Mutex<Vec<Change>>> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let to = all.clone();
    bans.on_change(move |change| to.lock().unwrap().push(change));
    all
}

#[test]
fn three_strikes_in_a_minute_and_four_minutes_out() {
    let (bans, clock) = list();
    assert!(!strikes(&bans, address(1), 2) && !bans.is_banned(address(1)));
    assert!(bans.strike(address(1), WHY) && bans.is_banned(address(1)));
    assert!(!bans.is_banned(address(2)));
    clock.advance(seconds(239));
    assert!(bans.is_banned(address(1)));
    clock.advance(seconds(1));
    assert!(!bans.is_banned(address(1)) && bans.list().is_empty());
}

#[test]
fn strikes_outside_the_window_do_not_add_up() {
    let (bans, clock) = list();
    for _ in 0..9 {
        assert!(!bans.strike(address(1), WHY));
        clock.advance(seconds(30));
    }
}

#[test]
fn each_ban_is_twice_the_last_up_to_an_hour() {
    let (bans, clock) = list();
    for length in [240, 480, 960, 1920, 3600, 3600] {
        assert!(strikes(&bans, address(1), 3));
        let ban = &bans.list()[0];
        assert_eq!(ban.until.since(ban.since), seconds(length));
        clock.advance(seconds(length));
        assert!(!bans.is_banned(address(1)));
    }
    clock.advance(seconds(3600));
    strikes(&bans, address(1), 3);
    assert_eq!(bans.list()[0].count, 1, "an hour of peace and it starts anew");
}

#[test]
fn strikes_during_a_ban_do_not_lengthen_it() {
    let (bans, clock) = list();
    strikes(&bans, address(1), 3);
    clock.advance(seconds(200));
    assert!(strikes(&bans, address(1), 9));
    clock.advance(seconds(40));
    assert!(!bans.is_banned(address(1)));
}

#[test]
fn p11_loopback_and_own_addresses_are_never_banned() {
    let (bans, _clock) = list();
    bans.set_own_addresses([address(7), "::ffff:10.0.0.8".parse().unwrap()]);
    let mapped = "::ffff:127.0.0.1".parse().unwrap();
    for spared in [IpAddr::from([127, 0, 0, 1]), "::1".parse().unwrap(), mapped, address(7), address(8)] {
        assert!(!strikes(&bans, spared, 500) && !bans.is_banned(spared), "{spared}");
        assert_eq!(bans.add(spared, "by hand", None), Err(Exempt(spared.to_canonical())));
    }
    assert!(strikes(&bans, address(9), 3));
}

#[test]
fn an_empty_never_list_spares_only_own_addresses() {
    let (bans, _clock) = list();
    bans.reconfigure(Config { never: Vec::new(), ..Config::default() });
    bans.set_own_addresses([IpAddr::from([127, 0, 0, 1])]);
    assert!(strikes(&bans, IpAddr::from([127, 0, 0, 9]), 3));
    assert!(!strikes(&bans, IpAddr::from([127, 0, 0, 1]), 3));
}

#[test]
fn mapped_addresses_are_the_same_address() {
    let (bans, _clock) = list();
    let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
    strikes(&bans, mapped, 2);
    assert!(bans.strike(address(1), WHY) && bans.is_banned(mapped));
    assert_eq!(bans.list()[0].address, address(1));
    assert!(bans.remove(mapped) && !bans.is_banned(address(1)));
}

#[test]
fn p09_a_proved_address_is_not_refused_for_ten_minutes() {
    let (bans, clock) = list();
    bans.proved(address(1));
    assert!(!strikes(&bans, address(1), 50) && !bans.is_banned(address(1)));
    clock.advance(seconds(600));
    assert!(strikes(&bans, address(1), 3) && bans.is_banned(address(1)));
    bans.proved(address(1));
    assert!(!bans.is_banned(address(1)), "a proof by other ways opens the door again");
}

#[test]
fn an_administrators_ban_outweighs_a_proof() {
    let (bans, clock) = list();
    bans.proved(address(1));
    let ban = bans.add(address(1), "by hand", Some(seconds(30))).unwrap();
    assert_eq!((ban.count, ban.until.since(ban.since)), (0, seconds(30)));
    assert!(bans.is_banned(address(1)));
    clock.advance(seconds(30));
    assert!(!bans.is_banned(address(1)));
}

#[test]
fn p13_the_wall_clock_neither_lifts_nor_lengthens() {
    let (bans, clock) = list();
    strikes(&bans, address(1), 3);
    clock.set_wall(Timestamp::from_seconds(0));
    assert!(bans.is_banned(address(1)));
    clock.set_wall(Timestamp::from_seconds(90_000_000));
    assert!(bans.is_banned(address(1)));
    clock.advance(seconds(100));
    assert_eq!(bans.list()[0].until, clock_now(&clock).plus(seconds(140)));
    clock.advance(seconds(140));
    assert!(!bans.is_banned(address(1)));
}

fn clock_now(clock: &ManualClock) -> Timestamp {
    Clock::now(clock)
}

#[test]
fn p13_a_restart_keeps_the_rest_and_the_count() {
    let (bans, clock) = list();
    let changes = heard(&bans);
    strikes(&bans, address(1), 3);
    let kept: Vec<Ban> = changes.lock().unwrap().iter().filter_map(put).collect();
    clock.advance(seconds(100));
    let after = BanList::new(Config::default(), clock.clone());
    after.restore(kept.clone());
    clock.advance(seconds(139));
    assert!(after.is_banned(address(1)));
    clock.advance(seconds(1));
    assert!(!after.is_banned(address(1)));
    strikes(&after, address(1), 3);
    assert_eq!(after.list()[0].count, 2);

    let set_back = BanList::new(Config::default(), ManualClock::new(Timestamp(0)));
    set_back.restore(kept.clone());
    assert_eq!(set_back.list()[0].until, Timestamp(0).plus(seconds(240)), "not frozen for ever");

    let much_later = BanList::new(Config::default(), ManualClock::new(Timestamp::from_seconds(9_000_000)));
    let changes = heard(&much_later);
    much_later.restore(kept);
    assert_eq!(*changes.lock().unwrap(), [Change::Removed(address(1))]);
}

fn put(change: &Change) -> Option<Ban> {
    match change {
        Change::Put(ban) => Some(ban.clone()),
        Change::Removed(_) => None,
    }
}

#[test]
fn what_is_over_is_told_once() {
    let (bans, clock) = list();
    let changes = heard(&bans);
    bans.strike(address(2), WHY);
    strikes(&bans, address(1), 3);
    bans.sweep();
    assert_eq!(changes.lock().unwrap().len(), 1);
    clock.advance(seconds(240 + 3600));
    bans.sweep();
    bans.sweep();
    assert_eq!(changes.lock().unwrap()[1..], [Change::Removed(address(1))]);
    assert!(!bans.remove(address(1)));
}

#[test]
fn switched_off_nobody_is_refused() {
    let (bans, _clock) = list();
    strikes(&bans, address(1), 3);
    bans.reconfigure(Config { enabled: false, ..Config::default() });
    assert!(!bans.is_banned(address(1)) && !strikes(&bans, address(2), 9) && bans.list().is_empty());
}

#[test]
fn the_table_is_bounded_and_keeps_bans_before_strikes() {
    let (bans, _clock) = list();
    strikes(&bans, address(1), 3);
    for n in 0..6000u32 {
        bans.strike(IpAddr::from(n.to_be_bytes().map(|byte| byte ^ 0x40)), WHY);
        bans.proved(IpAddr::from((n | 0x2000_0000).to_be_bytes()));
    }
    assert!(bans.is_banned(address(1)));
    assert_eq!(bans.table().sizes(), (table::CAPACITY, table::CAPACITY));
}

#[test]
fn who_is_in_the_table_pushes_nobody_out() {
    let (bans, clock) = list();
    for n in 0..u32::try_from(table::CAPACITY).unwrap() {
        bans.strike(IpAddr::from((n | 0x1000_0000).to_be_bytes()), WHY);
        clock.advance(Duration::from_millis(1));
    }
    let last = u32::try_from(table::CAPACITY).unwrap() - 1;
    bans.strike(IpAddr::from((last | 0x1000_0000).to_be_bytes()), WHY);
    assert_eq!(bans.table().sizes().0, table::CAPACITY);
}

#[test]
fn what_is_over_is_swept_where_its_place_is_needed_and_not_before() {
    let (bans, clock) = list();
    bans.strike(address(1), WHY);
    clock.advance(seconds(60));
    bans.strike(address(2), WHY);
    assert_eq!(bans.table().sizes().0, 2);
}

#[test]
fn a_ban_without_end_is_none_that_has_ended() {
    let (bans, clock) = list();
    bans.add(address(1), WHY, Some(Duration::MAX)).unwrap();
    clock.advance(seconds(100 * 365 * 86_400));
    assert!(bans.is_banned(address(1)));
}

/// As many proved addresses as are remembered, a millisecond apart.
fn all_proved(bans: &BanList, clock: &ManualClock) {
    for n in 0..u32::try_from(table::CAPACITY).unwrap() {
        bans.proved(IpAddr::from(n.to_be_bytes()));
        clock.advance(Duration::from_millis(1));
    }
}

#[test]
fn a_proof_repeated_pushes_no_other_out() {
    let (bans, clock) = list();
    all_proved(&bans, &clock);
    bans.proved(IpAddr::from([0, 0, 0, 9]));
    assert_eq!(bans.table().sizes(), (0, table::CAPACITY));
    assert!(!strikes(&bans, IpAddr::from([0, 0, 0, 0]), 3), "the oldest is still proved");
}

#[test]
fn proofs_end_with_their_last_moment() {
    let (bans, clock) = list();
    bans.proved(address(1));
    clock.advance(PROOF_LASTS);
    bans.sweep();
    assert_eq!(bans.table().sizes().1, 0, "at a sweep");
    all_proved(&bans, &clock);
    clock.advance(PROOF_LASTS - Duration::from_millis(1));
    bans.proved(address(1));
    assert_eq!(bans.table().sizes().1, 1, "where the place is needed");
}

#[test]
fn the_settings_are_those_of_the_page() {
    let config: Config = toml::from_str(
        "enabled = true\nstrikes = 3\nwindow = \"1m\"\nduration = \"4m\"\nmax_duration = \"1h\"\n\
         never = [\"127.0.0.0/8\", \"::1/128\"]",
    )
    .unwrap();
    assert_eq!(config, Config::default());
    let short: Config = toml::from_str("never = [\"10.0.0.1\", \"::ffff:10.1.0.0/112\"]").unwrap();
    assert_eq!(short.never, ["10.0.0.1/32".parse().unwrap(), "10.1.0.0/16".parse().unwrap()]);
    assert!(toml::from_str::<Config>("strikse = 3").is_err());
    assert!(toml::from_str::<Config>("never = [\"home\"]").unwrap_err().to_string().contains("10.0.0.0/8"));
    assert_eq!(toml::from_str::<Config>(&toml::to_string(&config).unwrap()).unwrap(), config);
}

proptest! {
    /// No order of events bans an exempt address, or bans anybody for longer than the longest ban.
    #[test]
    fn whatever_happens(events in prop::collection::vec((0u8..5, 0u8..4, 0u64..4000), 0..200)) {
        let (bans, clock) = list();
        bans.set_own_addresses([address(0)]);
        for (event, who, wait) in events {
            match event {
                0 | 1 => { bans.strike(address(who), WHY); }
                2 => bans.proved(address(who)),
                3 => { bans.remove(address(who)); }
                _ => clock.advance(seconds(wait)),
            }
            prop_assert!(!bans.is_banned(address(0)));
            let now = clock_now(&clock);
            prop_assert!(bans.list().iter().all(|ban| ban.until.since(now) <= seconds(3600)));
        }
        clock.advance(seconds(7200));
        bans.sweep();
        prop_assert_eq!(bans.table().sizes().0, 0);
    }
}

#[test]
fn networks_of_old_addresses_in_new_clothes_are_the_old_ones() {
    let spared = |never: &str| toml::from_str::<Config>(&format!("never = [\"{never}\"]"));
    let mapped = spared("::ffff:10.0.0.0/104").unwrap();
    let plain = spared("10.0.0.0/8").unwrap();
    assert_eq!(mapped, plain);
    assert!(mapped.spares(address(9)) && !mapped.spares(IpAddr::from([11, 0, 0, 1])));
    assert!(spared("10.0.0.7").unwrap().spares(address(7)) && spared("10.0.0.0/33").is_err());
}

#[test]
fn a_kept_ban_names_its_address() {
    let (bans, clock) = list();
    let now = Clock::now(&*clock);
    let until = now.plus(seconds(100));
    let mapped = "::ffff:10.0.0.5".parse().unwrap();
    bans.restore([Ban { address: mapped, reason: WHY.into(), since: now, until, count: 1 }]);
    assert_eq!(bans.list()[0].address, address(5));
    assert!(format!("{bans:?}").contains("BanList"));
}
