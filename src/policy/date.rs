//! Dates of HTTP (RFC 9110 section 5.6.7): the three forms, read by their exact grammar but for the case of
//! letters. What is no such date is none, so that `Expires` of a careless origin means "already expired".

use crate::clock::Timestamp;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const LONG_DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The last second of the year 9999, the last that can be written.
const LAST: u64 = 253_402_300_799;

/// Reads a date. `reference` settles the century of the two-digit years of RFC 850: never more than 50 years
/// ahead of it. What lies before 1970 is 1970.
pub(super) fn parse(text: &str, reference: Timestamp) -> Option<Timestamp> {
    let text = text.to_ascii_lowercase();
    let parts: Vec<&str> = text.split(' ').collect();
    match parts.as_slice() {
        [day_name, day, month, year, time, "gmt"] => {
            among(&DAYS, day_name.strip_suffix(',')?)?;
            civil(digits(year, 4)?, among(&MONTHS, month)?, digits(day, 2)?, time)
        }
        [day_name, date, time, "gmt"] => {
            among(&LONG_DAYS, day_name.strip_suffix(',')?)?;
            let mut parts = date.split('-');
            let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
            let year = full_year(digits(year, 2)?, reference);
            if parts.next().is_some() {
                return None;
            }
            civil(year, among(&MONTHS, month)?, digits(day, 2)?, time)
        }
        // asctime pads the day with a second space
        [day_name, month, "", day, time, year] => {
            among(&DAYS, day_name)?;
            civil(digits(year, 4)?, among(&MONTHS, month)?, digits(day, 1)?, time)
        }
        [day_name, month, day, time, year] => {
            among(&DAYS, day_name)?;
            civil(digits(year, 4)?, among(&MONTHS, month)?, digits(day, 2)?, time)
        }
        _ => None,
    }
}

/// Writes a date in the preferred form.
pub(super) fn format(time: Timestamp) -> String {
    httpdate::fmt_http_date(Timestamp::from_seconds(time.seconds().min(LAST)).system_time())
}

/// The place of a name in a list, counted from 1.
fn among(names: &[&str], name: &str) -> Option<u16> {
    names.iter().position(|n| *n == name).and_then(|at| u16::try_from(at + 1).ok())
}

/// Exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<u16> {
    (text.len() == count && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn full_year(short: u16, reference: Timestamp) -> u16 {
    let now = i64::try_from(reference.seconds())
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .and_then(|time| u16::try_from(jiff::tz::Offset::UTC.to_datetime(time).year()).ok())
        .unwrap_or(1970);
    let year = now - now % 100 + short;
    if year > now + 50 { year - 100 } else { year }
}

fn civil(year: u16, month: u16, day: u16, time: &str) -> Option<Timestamp> {
    let mut parts = time.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    // a leap second is told as :60 and counted as the second before it
    let second = match digits(second, 2)? {
        60 => 59,
        second => second,
    };
    let small = |n: u16| i8::try_from(n).ok();
    let date = jiff::civil::DateTime::new(
        i16::try_from(year).ok()?,
        small(month)?,
        small(day)?,
        small(digits(hour, 2)?)?,
        small(digits(minute, 2)?)?,
        small(second)?,
        0,
    );
    let seconds = jiff::tz::Offset::UTC.to_timestamp(date.ok()?).ok()?.as_second();
    Some(Timestamp::from_seconds(u64::try_from(seconds).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-30T12:00:00Z
    const NOW: Timestamp = Timestamp(1_796_040_000_000);

    #[test]
    fn reads_the_three_forms_and_nothing_else() {
        for (text, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("sun, 06 NOV 1994 08:49:37 gmt", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Sun Nov 16 08:49:37 1994", Some(784_975_777)),
            ("Thursday, 18-Aug-50 02:01:18 GMT", Some(2_544_400_878)),
            ("Monday, 18-Aug-80 02:01:18 GMT", Some(335_412_078)),
            ("Sunday, 01-Nov-76 08:49:37 GMT", Some(3_371_446_177)),
            ("Tuesday, 01-Nov-77 08:49:37 GMT", Some(247_222_177)),
            ("Tue, 19 Jan 2038 14:14:08 GMT", Some(2_147_523_248)),
            ("Sun, 21 Nov 2286 04:46:39 GMT", Some(10_000_039_599)),
            ("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_799)),
            ("Thu, 01 Jan 1903 00:00:00 GMT", Some(0)),
            ("Wed, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("0", None),
            ("-1", None),
            ("", None),
            ("Thu, 18 Aug 2050 02:01:18 UTC", None),
            ("Thu, 18 Aug 2050 02:01:18 AEST", None),
            ("Thu, 18 Aug 2050 02:01:18", None),
            ("Thu, 18 Aug 2050 02:01:18 GMT ", None),
            ("Thu, 18 Aug 50 02:01:18 GMT", None),
            ("Thu 18 Aug 2050 02:01:18 GMT", None),
            ("Thu, 18  Aug  2050 02:01:18 GMT", None),
            ("Thu, 18-Aug-2050 02:01:18 GMT", None),
            ("Thursday, 18 Aug 2050 02:01:18 GMT", None),
            ("Thu, 18 Aug 2050 02.01.18 GMT", None),
            ("Thu, 18 Aug 2050 2:01:18 GMT", None),
            ("Thu, 8 Aug 2050 02:01:18 GMT", None),
            ("Thu, 18 August 2050 02:01:18 GMT", None),
            ("Thu, 32 Aug 2050 02:01:18 GMT", None),
            ("Thu, 29 Feb 2050 02:01:18 GMT", None),
            ("Thu, 18 Aug 2050 24:01:18 GMT", None),
            ("Thu, 18 Aug 2050 02:01:61 GMT", None),
            ("Thu, 18 Aug 2050 02:01:18:00 GMT", None),
            ("Foo, 18 Aug 2050 02:01:18 GMT", None),
            ("Thursday, 18-Aug-50-1 02:01:18 GMT", None),
            ("2050-08-18T02:01:18Z", None),
        ] {
            assert_eq!(parse(text, NOW), seconds.map(Timestamp::from_seconds), "{text}");
        }
    }

    #[test]
    fn writes_every_time_there_is() {
        assert_eq!(format(Timestamp(0)), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format(Timestamp(u64::MAX)), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(seconds in 0..=LAST) {
            let time = Timestamp::from_seconds(seconds);
            prop_assert_eq!(parse(&format(time), NOW), Some(time));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}|[a-z]{3},? ?[0-9 :-]{0,30}( GMT)?", reference: u64) {
            let _unused = parse(&text, Timestamp(reference));
        }
    }
}
