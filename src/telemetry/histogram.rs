//! Distributions for Prometheus: how often a measurement fell below each of some bounds, by one label.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

pub(super) type Measured = Family<Vec<(String, String)>, Histogram, fn() -> Histogram>;

/// Measurements by one label; a cheap clone that measures into the same.
#[derive(Debug, Clone)]
pub struct Histograms {
    label: &'static str,
    measured: Measured,
}

impl Histograms {
    /// Of durations in seconds, from a millisecond to a minute.
    pub fn seconds(label: &'static str) -> Self {
        const BOUNDS: [f64; 14] =
            [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
        Self { label, measured: Family::new_with_constructor(|| Histogram::new(BOUNDS)) }
    }

    /// Of rates in bytes a second, from 64 KiB to 4 GiB.
    pub fn rates(label: &'static str) -> Self {
        const BOUNDS: [f64; 9] = [
            65_536.0,
            262_144.0,
            1_048_576.0,
            4_194_304.0,
            16_777_216.0,
            67_108_864.0,
            268_435_456.0,
            1_073_741_824.0,
            4_294_967_296.0,
        ];
        Self { label, measured: Family::new_with_constructor(|| Histogram::new(BOUNDS)) }
    }

    /// One more measurement under this value of the label.
    pub fn observe(&self, value: &str, measurement: f64) {
        self.measured.get_or_create(&vec![(self.label.to_owned(), value.to_owned())]).observe(measurement);
    }

    pub(super) fn family(&self) -> Measured {
        self.measured.clone()
    }
}
