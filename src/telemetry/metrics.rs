//! Numbers for Prometheus, gathered when somebody asks: [`Exposition`] is filled from snapshots and written
//! as Prometheus text or OpenMetrics.
//!
//! Every name gets the prefix `larder_`, its unit and, for counters, `_total`; units are base units. A number
//! that cannot be encoded is left out and reported as an error of the whole scrape.

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::histogram::Histograms;

/// The numbers of one scrape.
#[derive(Debug)]
pub struct Exposition(Registry);

/// How they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// Prometheus text 0.0.4.
    Prometheus,
    /// OpenMetrics text 1.0.
    OpenMetrics,
}

impl Default for Exposition {
    fn default() -> Self {
        Self::new()
    }
}

impl Exposition {
    /// No numbers yet.
    pub fn new() -> Self {
        Self(Registry::with_prefix("larder"))
    }

    /// A sum that only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.0.register(name, help, ConstCounter::new(value));
    }

    /// A sum of bytes that only grows.
    pub fn bytes_counter(&mut self, name: &str, help: &str, value: u64) {
        self.0.register_with_unit(name, help, Unit::Bytes, ConstCounter::new(value));
    }

    /// Sums of bytes that only grow, told apart by one label.
    pub fn bytes_counters(&mut self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) {
        let family = Family::<Vec<(String, String)>, Counter>::default();
        for (value, sum) in values {
            family.get_or_create(&vec![(label.to_owned(), (*value).to_owned())]).inc_by(*sum);
        }
        self.0.register_with_unit(name, help, Unit::Bytes, family);
    }

    /// A number of things now.
    pub fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.0.register(name, help, ConstGauge::new(signed(value)));
    }

    /// A number of bytes now.
    pub fn bytes_gauge(&mut self, name: &str, help: &str, value: u64) {
        self.0.register_with_unit(name, help, Unit::Bytes, ConstGauge::new(signed(value)));
    }

    /// Seconds.
    pub fn seconds_gauge(&mut self, name: &str, help: &str, value: f64) {
        self.0.register_with_unit(name, help, Unit::Seconds, ConstGauge::new(value));
    }

    /// Durations, told apart by one label.
    pub fn durations(&mut self, name: &str, help: &str, measured: &Histograms) {
        self.0.register_with_unit(name, help, Unit::Seconds, measured.family());
    }

    /// Rates, told apart by one label.
    pub fn rates(&mut self, name: &str, help: &str, measured: &Histograms) {
        self.0.register_with_unit(name, help, Unit::Other("bytes_per_second".to_owned()), measured.family());
    }

    /// One number a state, 1 for those that hold.
    pub fn states(&mut self, name: &str, help: &str, label: &str, states: &[(&str, bool)]) {
        let family = Family::<Vec<(String, String)>, Gauge>::default();
        for (state, holds) in states {
            family.get_or_create(&vec![(label.to_owned(), (*state).to_owned())]).set(i64::from(*holds));
        }
        self.0.register(name, help, family);
    }

    /// Words that do not change while the process runs.
    pub fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) {
        let labels: Vec<(String, String)> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.register(name, help, Info::new(labels));
    }

    /// The text for the scraper.
    pub fn encode(&self, format: TextFormat) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        match format {
            TextFormat::Prometheus => prometheus_text::encode(&mut out, &self.0)?,
            TextFormat::OpenMetrics => text::encode(&mut out, &self.0)?,
        }
        Ok(out)
    }
}

impl TextFormat {
    /// The format a scraper's `Accept` field asks for.
    pub fn wanted_by(accept: Option<&str>) -> Self {
        match accept {
            Some(field) if field.contains("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::Prometheus,
        }
    }

    /// Its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Gauges are signed in this format; no number of ours comes near the limit.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_prefix_unit_and_total() {
        let mut numbers = Exposition::new();
        numbers.counter("requests", "Requests", 3);
        numbers.bytes_counters("received", "Received", "source", &[("peer", 5), ("origin", 7)]);
        numbers.bytes_gauge("store", "Held", 9);
        numbers.states("trouble", "Present troubles", "code", &[("disk\"full", true)]);
        let answers = Histograms::seconds("source");
        answers.observe("cache", 0.02);
        numbers.durations("answer", "Time to the head of an answer", &answers);
        let text = numbers.encode(TextFormat::Prometheus).unwrap();
        for line in [
            "larder_requests_total 3",
            "larder_received_bytes_total{source=\"peer\"} 5",
            "larder_store_bytes 9",
            "larder_trouble{code=\"disk\\\"full\"} 1",
            "# TYPE larder_requests_total counter",
            "# TYPE larder_answer_seconds histogram",
            "larder_answer_seconds_count{source=\"cache\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
        }
        assert!(numbers.encode(TextFormat::OpenMetrics).unwrap().ends_with("# EOF\n"));
    }

    #[test]
    fn the_scraper_chooses() {
        let openmetrics = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
        assert_eq!(TextFormat::wanted_by(Some(openmetrics)), TextFormat::OpenMetrics);
        assert_eq!(TextFormat::wanted_by(Some("*/*")), TextFormat::Prometheus);
        assert_eq!(TextFormat::wanted_by(None), TextFormat::Prometheus);
    }
}
