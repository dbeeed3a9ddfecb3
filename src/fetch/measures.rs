//! How long things take here, as distributions for whoever watches: answers by source, downloads by source, and
//! neighbours' word. They name no URL and no address.

use std::time::Duration;

use super::outcome::CacheStatus;
use crate::telemetry::Histograms;

/// The distributions; a cheap clone.
#[derive(Debug, Clone)]
pub struct Measures {
    /// From the request to the head of its answer, by where the bytes come from.
    pub answers: Histograms,
    /// Bytes a second of whole transfers, by source.
    pub rates: Histograms,
    /// From the question to neighbours to the decision, by whether one holds it.
    pub finds: Histograms,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            answers: Histograms::seconds("source"),
            rates: Histograms::rates("source"),
            finds: Histograms::seconds("result"),
        }
    }
}

impl Measures {
    /// An answer can begin.
    pub(super) fn answered(&self, status: &CacheStatus, after: Duration) {
        let source = if status.hit { "cache" } else { source(status.detail.as_deref().unwrap_or_default()) };
        self.answers.observe(source, after.as_secs_f64());
    }

    /// A transfer from there is whole.
    pub(super) fn received(&self, detail: &str, bytes: u64, after: Duration) {
        let seconds = after.as_secs_f64();
        if bytes > 0 && seconds > 0.0 {
            #[expect(clippy::cast_precision_loss, reason = "a rate is no exact number")]
            self.rates.observe(source(detail), bytes as f64 / seconds);
        }
    }

    /// Neighbours were asked.
    pub(super) fn found(&self, somebody: bool, after: Duration) {
        self.finds.observe(if somebody { "held" } else { "missing" }, after.as_secs_f64());
    }
}

/// The source in the words of `Cache-Status`.
fn source(detail: &str) -> &'static str {
    match detail {
        detail if detail.starts_with("peer") => "peer",
        "cache" => "cache",
        _ => "origin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_told_by_its_word() {
        for (detail, word) in
            [("peer 10.0.0.7", "peer"), ("cache", "cache"), ("origin", "origin"), ("", "origin")]
        {
            assert_eq!(source(detail), word);
        }
    }
}
