//! Bars on a terminal, one for each running download; nothing elsewhere.

use std::io::IsTerminal as _;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

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
        // a template that cannot be read leaves the plain style
        if let Ok(style) = ProgressStyle::with_template(
            "{msg:28!} {bytes:>11} of {total_bytes:11} {bytes_per_sec:>13} [{bar:24}] {eta:>4}  {prefix}",
        ) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(shortened(name));
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

/// The end of a long name says more than its beginning; no control character reaches the terminal.
fn shortened(name: &str) -> String {
    const WIDTH: usize = 28;
    let plain: Vec<char> = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if plain.len() <= WIDTH {
        return plain.into_iter().collect();
    }
    let end: String = plain.iter().skip(plain.len() - (WIDTH - 1)).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(shortened("a.iso"), "a.iso");
        let long = shortened("/a/very/long/folder/with/a/name/that/ends/in/debian.iso\u{1b}");
        assert!(
            long.starts_with('…') && long.ends_with("debian.iso?") && long.chars().count() == 28,
            "{long}"
        );
    }
}
