//! Where commands print: standard output for what was asked, standard error for what went wrong.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;

use super::table::Table;
use super::{Exit, Failure};

/// Standard output; lines are written whole, and a closed pipe ends the program quietly.
#[derive(Debug)]
pub(crate) struct Output(io::Stdout);

impl Output {
    /// Standard output of this process.
    pub(crate) fn new() -> Self {
        Self(io::stdout())
    }

    /// Text as it is.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        let mut out = self.0.lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // Whoever closed the pipe has read what he wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => {
                Err(Failure::new(Exit::Failed, format!("cannot write to standard output: {error}")))
            }
            Ok(()) => Ok(()),
        }
    }

    /// A line.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        self.text(&format!("{}\n", line.as_ref()))
    }

    /// A table, cut to the width of a terminal.
    pub(crate) fn table(&mut self, table: &Table) -> Result<(), Failure> {
        self.text(&table.text_within(self.columns()))
    }

    /// How wide the terminal is, where there is one.
    pub(crate) fn columns(&self) -> Option<usize> {
        let size = self.0.is_terminal().then(ratatui::crossterm::terminal::size)?;
        size.ok().map(|(columns, _)| columns.into())
    }

    /// One JSON document.
    pub(crate) fn json(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document)
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot write JSON: {error}")))?;
        self.line(text)
    }

    /// Whether colour may be used.
    pub(crate) fn colour(&self) -> bool {
        self.0.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }
}

/// What a command does one after the other: a line each as it is done, or all of them as one document at the end.
#[derive(Debug)]
pub(crate) struct Steps {
    out: Output,
    kept: Option<Vec<String>>,
}

impl Steps {
    /// As lines, or kept for a document.
    pub(crate) fn new(json: bool) -> Self {
        Self { out: Output::new(), kept: json.then(Vec::new) }
    }

    /// One step.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        match &mut self.kept {
            Some(kept) => {
                kept.push(line.as_ref().trim_start().to_owned());
                Ok(())
            }
            None => self.out.line(line),
        }
    }

    /// There are no more: the document, with these members besides.
    pub(crate) fn end(mut self, mut document: Value) -> Result<(), Failure> {
        let Some(kept) = self.kept else { return Ok(()) };
        if let Some(members) = document.as_object_mut() {
            members.insert("steps".to_owned(), kept.into());
        }
        self.out.json(&document)
    }
}

/// A warning on standard error.
pub(crate) fn warn(what: &str, hint: &str) {
    complain("warning: ", what, hint);
}

/// A remark on standard error, for people who wait.
pub(crate) fn note(text: &str) {
    // There is nobody left to tell if standard error is closed.
    io::stderr().lock().write_all(format!("{text}\n").as_bytes()).unwrap_or_default();
}

/// What the argument parser has to say: help goes to standard output, wrong usage to standard error.
pub(super) fn usage(usage: &clap::Error) -> ExitCode {
    let text = usage.render().to_string();
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let written = match (usage.use_stderr(), text.strip_prefix("error: ")) {
        (false, _) => out.write_all(text.as_bytes()),
        (true, Some(wrong)) => err.write_all(format!("larder: {wrong}").as_bytes()),
        (true, None) => err.write_all(text.as_bytes()),
    };
    let status = u8::try_from(usage.exit_code()).unwrap_or(2);
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Failed.into(),
        _said => ExitCode::from(status),
    }
}

/// Why a command failed, on standard error.
pub(super) fn report(failure: &Failure) -> ExitCode {
    for (what, hint) in &failure.said {
        complain("", what, hint);
    }
    failure.exit.into()
}

fn complain(kind: &str, what: &str, hint: &str) {
    let hint = if hint.is_empty() { String::new() } else { format!("hint: {hint}\n") };
    // There is nobody left to tell if standard error is closed.
    io::stderr().lock().write_all(format!("larder: {kind}{what}\n{hint}").as_bytes()).unwrap_or_default();
}
