//! Taking turns, and the table that comes of it.

use std::fmt::Write as _;

use super::Settings;

/// What one turn showed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// What is wanted: so much a second, or for a time so long.
    pub(crate) rate: f64,
    /// What it cost the server in processor time.
    pub(crate) cpu: f64,
}

/// One contender of a load.
pub(crate) struct Contender<'a> {
    pub(crate) name: &'a str,
    pub(crate) turn: Box<dyn FnMut() -> Sample + 'a>,
}

/// What all turns of a contender showed.
pub(crate) struct Series {
    name: String,
    samples: Vec<Sample>,
}

/// Every contender's turn, round after round; the first round warms up and does not count.
pub(crate) fn take_turns(settings: &Settings, mut contenders: Vec<Contender<'_>>) -> Vec<Series> {
    let mut series: Vec<Series> = contenders
        .iter()
        .map(|contender| Series { name: contender.name.to_owned(), samples: Vec::new() })
        .collect();
    for round in 0..=settings.rounds {
        for (contender, series) in contenders.iter_mut().zip(&mut series) {
            let sample = (contender.turn)();
            if round > 0 {
                series.samples.push(sample);
            }
        }
    }
    series
}

impl Series {
    /// Least, median and greatest.
    pub(crate) fn spread(&self, of: impl Fn(&Sample) -> f64) -> [f64; 3] {
        let mut all: Vec<f64> = self.samples.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        [all.first(), all.get(all.len() / 2), all.last()].map(|value| value.copied().unwrap_or(f64::NAN))
    }

    fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        let [_, median, _] = self.spread(of);
        median
    }
}

/// The head of a table whose rows [`rows`] writes.
pub(crate) fn head(rate: &str, cpu: &str) -> String {
    format!(
        "| load | server | {rate} (min–max) | Larder is | {cpu} | Larder needs |\n|---|---|---|---|---|---|\n"
    )
}

/// A row for each contender, the first of which is ours: how many times as fast, for what part of the work.
pub(crate) fn rows(load: &str, series: &[Series]) -> String {
    let mut table = String::new();
    let Some(ours) = series.first() else { return table };
    let (rate, cpu) = (ours.median(|s| s.rate), ours.median(|s| s.cpu));
    for series in series {
        let [least, median, most] = series.spread(|s| s.rate);
        let work = series.median(|s| s.cpu);
        let _to_a_string = writeln!(
            table,
            "| {load} | {} | {} ({}–{}) | {:.2}× | {work:.2} | {:.2}× |",
            series.name,
            number(median),
            number(least),
            number(most),
            rate / median,
            cpu / work
        );
    }
    table
}

/// Three digits are enough.
pub(crate) fn number(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => format!("{:.0}00", v / 100.0),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
