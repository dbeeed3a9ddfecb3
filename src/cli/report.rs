//! `larder report`: how much went through this node, by day or by hour, and how much of it no origin server had to
//! send. From the hourly sums, which are in UTC, as the days here are.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
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
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
struct Sums {
    /// When it began, RFC 3339.
    at: String,
    requests: u64,
    bytes_to_clients: u64,
    bytes_from_cache: u64,
    bytes_from_peers: u64,
    bytes_from_origin: u64,
    bytes_to_peers: u64,
    bytes_discarded: u64,
    /// What programs got and no origin server had to send.
    bytes_saved: u64,
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
    Some(UsageRecord {
        hour: Timestamp(u64::try_from(hour.as_millisecond()).ok()?),
        requests: number("requests"),
        bytes_to_clients: number("bytes_to_clients"),
        bytes_from_cache: number("bytes_from_cache"),
        bytes_from_peers: number("bytes_from_peers"),
        bytes_from_origin: number("bytes_from_origin"),
        bytes_to_peers: number("bytes_to_peers"),
        bytes_discarded: number("bytes_discarded"),
    })
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
        for (sum, more) in [
            (&mut self.requests, hour.requests),
            (&mut self.bytes_to_clients, hour.bytes_to_clients),
            (&mut self.bytes_from_cache, hour.bytes_from_cache),
            (&mut self.bytes_from_peers, hour.bytes_from_peers),
            (&mut self.bytes_from_origin, hour.bytes_from_origin),
            (&mut self.bytes_to_peers, hour.bytes_to_peers),
            (&mut self.bytes_discarded, hour.bytes_discarded),
            (&mut self.bytes_saved, hour.saved()),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    fn numbers(&self) -> [u64; 8] {
        [
            self.requests,
            self.bytes_to_clients,
            self.bytes_from_cache,
            self.bytes_from_peers,
            self.bytes_from_origin,
            self.bytes_to_peers,
            self.bytes_discarded,
            self.bytes_saved,
        ]
    }

    /// The beginning as a table shows it: a day has no time.
    fn when(&self, by: By) -> String {
        let short = if by == By::Day { self.at.split('T').next() } else { self.at.strip_suffix(":00Z") };
        short.unwrap_or(&self.at).replace('T', " ")
    }
}

fn csv(report: &Report) -> String {
    let mut text =
        "at,requests,bytes_to_clients,bytes_from_cache,bytes_from_peers,bytes_from_origin,bytes_to_peers,\
                    bytes_discarded,bytes_saved\r\n"
            .to_owned();
    for row in &report.rows {
        let numbers = row.numbers().map(|number| number.to_string()).join(",");
        text.push_str(&format!("{},{numbers}\r\n", row.at));
    }
    text
}

fn table(report: &Report) -> String {
    let head = if report.by == By::Day { "DAY (UTC)" } else { "HOUR (UTC)" };
    let heads = [head, ">REQUESTS", ">TO PROGRAMS", ">CACHE", ">NEIGHBOURS", ">ORIGINS", ">SAVED", ">SHARE"];
    let mut table = Table::new(&heads);
    let total = ("total".to_owned(), &report.total);
    for (when, row) in report.rows.iter().map(|row| (row.when(report.by), row)).chain([total]) {
        let [to, cache, peers, origin, saved] = [
            row.bytes_to_clients,
            row.bytes_from_cache,
            row.bytes_from_peers,
            row.bytes_from_origin,
            row.bytes_saved,
        ]
        .map(|bytes| ByteSize(bytes).to_string());
        let share = share(row.bytes_saved, row.bytes_to_clients);
        table.row([when, row.requests.to_string(), to, cache, peers, origin, saved, share]);
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
            by_day.rows.iter().map(|row| (row.at.as_str(), row.requests, row.bytes_saved)).collect();
        assert_eq!(days, [("1970-01-02T00:00:00Z", 2, 100), ("1970-01-03T00:00:00Z", 1, 0)]);
        assert_eq!((by_day.total.requests, by_day.total.bytes_saved), (3, 100), "never less than nothing");
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
