//! Hours of the week, as an operator writes them: `08:00-18:00 mon-fri`, `22:00-06:00`, `sat,sun`.
//!
//! A span that ends before it begins runs over midnight and belongs to the day it begins on. Whether a time
//! lies in it is a pure question about a local time; what is written wrong is told with the right form.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{DateTime, Weekday};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MINUTES: u16 = 24 * 60;
const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// Some hours of some days of the week; by default none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hours {
    text: String,
    /// Minutes of the day; the end is beyond midnight where it is not above the start.
    start: u16,
    end: u16,
    /// The days a span begins on, Monday first.
    days: [bool; 7],
}

/// Why hours could not be read: a sentence that shows the right form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no hours: {why}; write \"08:00-18:00 mon-fri\", \"22:00-06:00\" or \"sat,sun\"")]
pub struct HoursError {
    text: String,
    why: String,
}

impl Hours {
    /// Whether nobody said when.
    pub const fn is_never(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether a local time lies in them.
    pub fn covers(&self, local: DateTime) -> bool {
        let minute = minute_of(local);
        let today = place_of(local.weekday());
        let begins = |day: usize| self.days.get(day).copied().unwrap_or(false);
        if self.start < self.end {
            return begins(today) && (self.start..self.end).contains(&minute);
        }
        let yesterday = (today + 6) % 7;
        (begins(today) && minute >= self.start) || (begins(yesterday) && minute < self.end)
    }
}

fn minute_of(local: DateTime) -> u16 {
    u16::from(local.hour().unsigned_abs()) * 60 + u16::from(local.minute().unsigned_abs())
}

fn place_of(day: Weekday) -> usize {
    DAYS.iter().position(|(_, known)| *known == day).unwrap_or(0)
}

impl FromStr for Hours {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<Self, HoursError> {
        let wrong = |why: String| HoursError { text: text.to_owned(), why };
        let (mut span, mut days) = (None, None);
        for word in text.split_whitespace() {
            if word.contains(':') {
                if span.replace(read_span(word).map_err(wrong)?).is_some() {
                    return Err(wrong("two spans of time".to_owned()));
                }
            } else if days.replace(read_days(word).map_err(wrong)?).is_some() {
                return Err(wrong("days stand in one word, such as mon-wed,fri".to_owned()));
            }
        }
        if span.is_none() && days.is_none() {
            return Err(wrong("nothing is said".to_owned()));
        }
        let (start, end) = span.unwrap_or((0, MINUTES));
        Ok(Self { text: text.to_owned(), start, end, days: days.unwrap_or([true; 7]) })
    }
}

fn read_span(word: &str) -> Result<(u16, u16), String> {
    let (start, end) = word.split_once('-').ok_or(format!("`{word}` has no end"))?;
    let (start, end) = (read_time(start)?, read_time(end)?);
    if start == end {
        return Err(format!("`{word}` ends where it begins"));
    }
    if start == MINUTES {
        return Err(format!("`{word}` begins when the day is over"));
    }
    Ok((start, end))
}

fn read_time(word: &str) -> Result<u16, String> {
    let wrong = || format!("`{word}` is no time of day between 00:00 and 24:00");
    let (hour, minute) = word.split_once(':').ok_or_else(wrong)?;
    let number = |digits: &str| {
        let is_number = matches!(digits.len(), 1 | 2) && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|_| is_number)
    };
    let (hour, minute) = number(hour).zip(number(minute).filter(|_| minute.len() == 2)).ok_or_else(wrong)?;
    Some(hour * 60 + minute).filter(|at| minute < 60 && *at <= MINUTES).ok_or_else(wrong)
}

fn read_days(word: &str) -> Result<[bool; 7], String> {
    let mut days = [false; 7];
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (read_day(first)?, read_day(last)?);
        // "fri-mon" goes over the end of the week
        let length = (last + 7 - first) % 7;
        for (place, day) in days.iter_mut().enumerate() {
            *day |= (place + 7 - first) % 7 <= length;
        }
    }
    Ok(days)
}

fn read_day(word: &str) -> Result<usize, String> {
    let is_it = |(name, _): &(&str, Weekday)| name.eq_ignore_ascii_case(word);
    DAYS.iter()
        .position(is_it)
        .ok_or_else(|| format!("`{word}` is no day, which are mon, tue, wed, thu, fri, sat and sun"))
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Hours {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Hours {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    /// Of the week that began on Monday, 30 November 2026.
    fn at(day: usize, hour: i8, minute: i8) -> DateTime {
        let days = i64::try_from(day).unwrap();
        (date(2026, 11, 30) + jiff::Span::new().days(days)).at(hour, minute, 59, 0)
    }

    #[test]
    fn hours_cover_what_they_say() {
        let (mon, fri, sat, sun) = (0, 4, 5, 6);
        for (text, inside, outside) in [
            (
                "08:00-18:00 mon-fri",
                vec![(mon, 8, 0), (fri, 17, 59)],
                vec![(mon, 7, 59), (fri, 18, 0), (sat, 9, 0)],
            ),
            ("mon-fri 8:00-18:00", vec![(mon, 8, 0)], vec![(sun, 8, 0)]),
            ("22:00-06:00", vec![(mon, 22, 0), (mon, 5, 59), (sun, 23, 0)], vec![(mon, 6, 0), (mon, 21, 59)]),
            // begun on Friday, it ends on Saturday; begun on Sunday, on Monday it does not run
            ("22:00-06:00 mon-fri", vec![(sat, 5, 0), (fri, 22, 0)], vec![(sat, 22, 0), (mon, 5, 0)]),
            ("sat,sun", vec![(sat, 0, 0), (sun, 23, 59)], vec![(mon, 0, 0), (fri, 23, 59)]),
            ("fri-mon", vec![(fri, 1, 0), (sun, 1, 0), (mon, 1, 0)], vec![(1, 1, 0), (3, 1, 0)]),
            ("18:00-24:00 SUN", vec![(sun, 23, 59)], vec![(mon, 0, 0), (sun, 17, 59)]),
            ("12:00-00:00 sun", vec![(sun, 23, 59)], vec![(mon, 0, 0), (sun, 0, 0)]),
        ] {
            let hours: Hours = text.parse().unwrap();
            assert_eq!(hours.to_string(), text);
            for (day, hour, minute) in inside {
                assert!(hours.covers(at(day, hour, minute)), "{text}: day {day} {hour}:{minute}");
            }
            for (day, hour, minute) in outside {
                assert!(!hours.covers(at(day, hour, minute)), "{text}: not day {day} {hour}:{minute}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_the_right_form() {
        for (text, why) in [
            ("", "nothing is said"),
            ("8-18 mon", "`8` is no day"),
            ("08:00 mon", "has no end"),
            ("08:00-25:00", "`25:00` is no time of day"),
            ("08:60-09:00", "`08:60` is no time of day"),
            ("24:00-06:00", "begins when the day is over"),
            ("08:00-08:00", "ends where it begins"),
            ("08:00-18:00 montag", "`montag` is no day"),
            ("mon tue", "days stand in one word"),
            ("08:00-09:00 10:00-11:00", "two spans"),
        ] {
            let error = text.parse::<Hours>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("08:00-18:00 mon-fri"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn anything_may_be_written(text in "[0-9:a-z, -]{0,24}") {
            if let Ok(hours) = text.parse::<Hours>() {
                prop_assert!((0..7).any(|day| (0..24).any(|hour| (0..60).any(|m| hours.covers(at(day, hour, m))))));
            }
        }
    }
}
