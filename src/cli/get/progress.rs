//! A bar on a terminal, nothing elsewhere.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How far a download has come, for people.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new(name: &str, quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        // a template that cannot be read leaves the plain style
        if let Ok(style) =
            ProgressStyle::with_template("{msg}  {bytes}/{total_bytes}  {bytes_per_sec}  {wide_bar}  {eta}")
        {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        Self(bar)
    }

    pub(super) fn begin(&self, at: u64, total: Option<u64>) {
        if let Some(total) = total {
            self.0.set_length(total);
        }
        self.0.set_position(at);
    }

    pub(super) fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
