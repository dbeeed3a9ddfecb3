//! `larder report`: how much went through this node, by day or by hour, and how much of it no origin server had to
//! send. From the hourly sums, which are in UTC, as the days here are.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::Value;

use super::admin_client::AdminClient;
use super::args::{By, ReportArgs};
use super::records::escaped;
use super::status::share;
use super::table::Table;
use super::{ConfigFile, Exit, Failure, Output};
use crate::clock::{Clock as _, SystemClock, Timestamp};
use crate::index::UsageRecord;
use crate::unit::ByteSize;

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// The sums of one day, or of one hour.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Sums {
    /// When it began, RFC 3339.
    at: String,
    sums: UsageRecord,
    /// What programs got and no origin server had to send: of each hour, and never less than nothing.
    saved: u64,
}

/// The whole report.
#[derive(Debug, Serialize)]
struct Report {
    since: String,
    until: String,
    by: By,
    rows: Vec<Sums>,
    total: Sums,
}

pub(super) fn run(node: &ConfigFile, args: &ReportArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    // whoever asks for the status has the sums of this hour brought up to date
    client.get::<Value>("/status")?;
    let now = SystemClock.now();
    let since = beginning(now, args.since.into());
    let query = format!("/api/v1/usage?hour=gte.{}&order=hour&limit=10000", escaped(&since.to_string()));
    let hours: Vec<Value> = client.get(&query)?;
    let hours: Vec<UsageRecord> = hours.iter().filter_map(hour).collect();
    let report = report(&hours, args.by, since, now);
    let mut out = Output::new();
    if args.json {
        out.json(&report)?;
    } else if args.csv {
        out.text(&csv(&report))?;
    } else {
        out.text(&table(&report))?;
    }
    Ok(Exit::Done)
}

/// The midnight that so much time ends in, this day counted.
fn beginning(now: Timestamp, length: Duration) -> Timestamp {
    let days = u64::try_from(length.as_millis()).unwrap_or(u64::MAX).div_ceil(DAY).max(1);
    let midnight = now.0 - now.0 % DAY;
    Timestamp(midnight.saturating_sub((days - 1).saturating_mul(DAY)))
}

/// A row of the answer; none where it cannot be read.
fn hour(row: &Value) -> Option<UsageRecord> {
    let number = |name: &str| row.get(name).and_then(Value::as_u64).unwrap_or(0);
    let hour: jiff::Timestamp = row.get("hour")?.as_str()?.parse().ok()?;
    let hour = Timestamp(u64::try_from(hour.as_millisecond()).ok()?);
    Some(UsageRecord::of_sums(hour, UsageRecord::SUMS.map(number)))
}

fn report(hours: &[UsageRecord], by: By, since: Timestamp, until: Timestamp) -> Report {
    let length = if by == By::Day { DAY } else { HOUR };
    let (mut rows, mut total) = (BTreeMap::<u64, Sums>::new(), Sums::default());
    for hour in hours {
        let at = hour.hour.0 - hour.hour.0 % length;
        let row = rows.entry(at).or_insert_with(|| Sums { at: Timestamp(at).to_string(), ..Sums::default() });
        row.add(hour);
        total.add(hour);
    }
    total.at = since.to_string();
    Report {
        since: since.to_string(),
        until: until.to_string(),
        by,
        rows: rows.into_values().collect(),
        total,
    }
}

impl Sums {
    fn add(&mut self, hour: &UsageRecord) {
        self.sums.add(hour);
        self.saved = self.saved.saturating_add(hour.saved());
    }

    /// Each number with its name.
    fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        UsageRecord::SUMS.into_iter().zip(self.sums.sums()).chain([("bytes_saved", self.saved)])
    }

    /// The beginning as a table shows it: a day has no time.
    fn when(&self, by: By) -> String {
        let short = if by == By::Day { self.at.split('T').next() } else { self.at.strip_suffix(":00Z") };
        short.unwrap_or(&self.at).replace('T', " ")
    }
}

impl Serialize for Sums {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &self.at)?;
        self.named().try_for_each(|(name, number)| map.serialize_entry(name, &number))?;
        map.end()
    }
}

fn csv(report: &Report) -> String {
    let line = |first: &str, rest: Vec<String>| format!("{first},{}\r\n", rest.join(","));
    let names = report.total.named().map(|(name, _)| name.to_owned()).collect();
    let rows = report.rows.iter().map(|row| {
        let numbers = row.named().map(|(_, number)| number.to_string()).collect();
        line(&row.at, numbers)
    });
    [line("at", names)].into_iter().chain(rows).collect()
}

fn table(report: &Report) -> String {
    let head = if report.by == By::Day { "DAY (UTC)" } else { "HOUR (UTC)" };
    let heads = [head, ">REQUESTS", ">TO PROGRAMS", ">CACHE", ">NEIGHBOURS", ">ORIGINS", ">SAVED", ">SHARE"];
    let mut table = Table::new(&heads);
    let total = ("total".to_owned(), &report.total);
    for (when, row) in report.rows.iter().map(|row| (row.when(report.by), row)).chain([total]) {
        let UsageRecord { requests, bytes_to_clients: to, .. } = row.sums;
        let (cache, peers) = (row.sums.bytes_from_cache, row.sums.bytes_from_peers);
        let sizes = [to, cache, peers, row.sums.bytes_from_origin, row.saved];
        let [sent, cache, peers, origin, saved] = sizes.map(|bytes| ByteSize(bytes).to_string());
        table.row([when, requests.to_string(), sent, cache, peers, origin, saved, share(row.saved, to)]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: u64, to: u64, origin: u64) -> UsageRecord {
        let hour = Timestamp(hour * HOUR);
        UsageRecord {
            hour,
            requests: 1,
            bytes_to_clients: to,
            bytes_from_origin: origin,
            ..UsageRecord::default()
        }
    }

    #[test]
    fn days_are_whole_and_this_one_counts() {
        let now = Timestamp(10 * DAY + 5 * HOUR);
        assert_eq!(beginning(now, Duration::from_secs(86_400)), Timestamp(10 * DAY));
        assert_eq!(beginning(now, Duration::from_secs(60)), Timestamp(10 * DAY));
        assert_eq!(beginning(now, Duration::from_secs(3 * 86_400)), Timestamp(8 * DAY));
        assert_eq!(beginning(now, Duration::MAX), Timestamp(0));
    }

    #[test]
    fn hours_become_days_and_a_total() {
        let hours = [at(24, 100, 100), at(25, 100, 0), at(50, 10, 30)];
        let by_day = report(&hours, By::Day, Timestamp(0), Timestamp(3 * DAY));
        let days: Vec<_> =
            by_day.rows.iter().map(|row| (row.at.as_str(), row.sums.requests, row.saved)).collect();
        assert_eq!(days, [("1970-01-02T00:00:00Z", 2, 100), ("1970-01-03T00:00:00Z", 1, 0)]);
        assert_eq!((by_day.total.sums.requests, by_day.total.saved), (3, 100), "never less than nothing");
        let text = table(&by_day);
        assert!(text.contains("1970-01-02") && text.contains("50 %") && text.ends_with("47 %\n"), "{text}");
        let by_hour = report(&hours, By::Hour, Timestamp(0), Timestamp(3 * DAY));
        assert_eq!(by_hour.rows.len(), 3);
        assert!(table(&by_hour).contains("1970-01-02 01:00 "), "{}", table(&by_hour));
        let lines = csv(&by_day);
        assert_eq!(lines.lines().nth(1).unwrap(), "1970-01-02T00:00:00Z,2,200,0,0,100,0,0,100");
    }

    #[test]
    fn a_row_of_the_api_is_read() {
        let row = serde_json::json!({"hour": "1970-01-02T00:00:00Z", "requests": 3, "bytes_to_clients": 5});
        let hour = hour(&row).unwrap();
        assert_eq!((hour.hour, hour.requests, hour.bytes_to_clients), (Timestamp(DAY), 3, 5));
    }
}
