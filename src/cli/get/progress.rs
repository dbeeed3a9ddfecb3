//! Bars on a terminal, one for each running download; nothing elsewhere.

use std::fmt::Write;
use std::io::IsTerminal as _;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::cli::table::tail;
use crate::unit::ByteSize;

/// How wide the name is, and the line, on a terminal of fewer than 100 columns and on others.
const NARROW: (usize, &str) = (24, "{msg:24!} [{wide_bar}] {part} {done} {rate} {eta:>4}  {prefix}");
const WIDE: (usize, &str) = (32, "{msg:32!} [{wide_bar}] {done} {all} {rate} {eta:>4}  {prefix:14}");

/// The bars of one command; a cheap clone.
#[derive(Debug, Clone)]
pub(super) struct Bars(MultiProgress);

/// How far a download has come, for people.
pub(super) struct Progress {
    bar: ProgressBar,
    all: MultiProgress,
}

impl Bars {
    pub(super) fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self(MultiProgress::with_draw_target(target))
    }

    /// A line above the bars, which are drawn anew below it.
    pub(super) fn note(&self, text: &str) {
        self.0.suspend(|| crate::cli::output::note(text));
    }

    pub(super) fn bar(&self, name: &str) -> Progress {
        let bar = self.0.add(ProgressBar::no_length());
        let columns = ratatui::crossterm::terminal::size().map_or(80, |(columns, _)| columns);
        let (name_width, template) = if columns < 100 { NARROW } else { WIDE };
        // a template that cannot be read leaves the plain style
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(with_numbers(style).progress_chars("=> "));
        }
        let file = name.rsplit('/').next().unwrap_or(name);
        bar.set_message(tail(file, name_width));
        Progress { bar, all: self.0.clone() }
    }
}

impl Progress {
    /// It goes on here, from there.
    pub(super) fn begin(&self, at: u64, total: Option<u64>, source: &str) {
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(at);
        self.bar.reset_eta();
        self.bar.set_prefix(source.to_owned());
    }

    pub(super) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
        self.all.remove(&self.bar);
    }
}

/// Sizes and rates as everywhere else.
fn with_numbers(style: ProgressStyle) -> ProgressStyle {
    let size = |bytes: u64, to: &mut dyn Write| write!(to, "{:>8}", ByteSize(bytes).to_string());
    style
        .with_key("done", move |state: &ProgressState, to: &mut dyn Write| said(size(state.pos(), to)))
        .with_key("all", move |state: &ProgressState, to: &mut dyn Write| {
            said(match state.len() {
                Some(all) => write!(to, "of {:8}", ByteSize(all).to_string()),
                None => write!(to, "{:11}", ""),
            });
        })
        .with_key("part", |state: &ProgressState, to: &mut dyn Write| {
            said(match state.len() {
                Some(_) => write!(to, "{:3.0} %", state.fraction() * 100.0),
                None => write!(to, "{:5}", ""),
            });
        })
        .with_key("rate", |state: &ProgressState, to: &mut dyn Write| {
            said(write!(to, "{:>10}", format!("{:.1} MB/s", state.per_sec() / 1e6)));
        })
}

/// A line that is built in memory takes everything.
fn said(written: std::fmt::Result) {
    written.unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_can_be_read() {
        for (_, template) in [NARROW, WIDE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
