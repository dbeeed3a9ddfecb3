//! `larder doctor`: what is wrong here, and what to do. One line each: ok, warn or fail.
//!
//! It looks from outside as well as asking the daemon, so that it also helps where nothing runs. It leaves nothing
//! changed: to see whether a port is free it binds it for a moment, to see how fast the disk is it writes a file that it
//! removes again, and what it downloads is not kept.

mod clocks;
mod disk;
mod interception;
mod machine;
mod network;
mod node;
mod through;

use std::path::Path;

use serde::Serialize;

use super::args::JsonArgs;
use super::{ConfigFile, Exit, Failure, Output, config};
use crate::clock::SystemClock;
use crate::config::{Complaint, Environment, Loaded};

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// One line of the report.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    verdict: Verdict,
    about: &'static str,
    what: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
}

/// The report being written.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<Finding>);

impl Report {
    pub(super) fn ok(&mut self, about: &'static str, what: impl Into<String>) {
        self.note(Verdict::Ok, about, what, "");
    }

    pub(super) fn warn(&mut self, about: &'static str, what: impl Into<String>, hint: &str) {
        self.note(Verdict::Warn, about, what, hint);
    }

    pub(super) fn fail(&mut self, about: &'static str, what: impl Into<String>, hint: &str) {
        self.note(Verdict::Fail, about, what, hint);
    }

    fn note(&mut self, verdict: Verdict, about: &'static str, what: impl Into<String>, hint: &str) {
        self.0.push(Finding { verdict, about, what: what.into(), hint: hint.to_owned() });
    }

    fn complaints(&mut self, verdict: Verdict, about: &'static str, complaints: &[Complaint]) {
        for complaint in complaints {
            self.note(verdict, about, complaint.to_string(), &complaint.hint);
        }
    }

    /// Whether something was said about this.
    pub(super) fn has_about(&self, about: &str) -> bool {
        self.0.iter().any(|finding| finding.about == about)
    }

    /// Whether something about this was not as it should be.
    pub(super) fn lacks(&self, about: &str) -> bool {
        self.0.iter().any(|finding| finding.about == about && finding.verdict != Verdict::Ok)
    }

    /// The findings as one document.
    pub(super) fn as_json(&self) -> &impl Serialize {
        &self.0
    }

    /// The findings for people.
    pub(super) fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let colour = out.colour();
        self.0.iter().try_for_each(|finding| out.text(&line(finding, colour)))
    }

    fn worst(&self) -> Exit {
        let failed = self.0.iter().any(|finding| finding.verdict == Verdict::Fail);
        if failed { Exit::Failed } else { Exit::Done }
    }
}

pub(super) fn run(file: &ConfigFile, args: &JsonArgs) -> Result<Exit, Failure> {
    let mut report = Report::default();
    examine(file, &mut report)?;
    let mut out = Output::new();
    if args.json {
        out.json(report.as_json())?;
    } else {
        report.print(&mut out)?;
    }
    Ok(report.worst())
}

/// What can be seen of a machine before anything runs, with this configuration.
pub(super) fn machine_findings(file: &Path) -> Result<Report, Failure> {
    let environment = Environment::of_process();
    let (loaded, warnings) = config::judge(Some(file), &environment)?;
    let mut report = Report::default();
    report.complaints(Verdict::Warn, "configuration", &warnings);
    machine(&mut report, &loaded, &environment);
    machine::ports(&mut report, &loaded.config, false);
    Ok(report)
}

fn machine(report: &mut Report, loaded: &Loaded, environment: &Environment) {
    let config = &loaded.config;
    machine::clock(report, &SystemClock);
    machine::certificates(report, config);
    machine::secret(report, loaded, environment);
    machine::folders(report, config);
    disk::modes(report, config);
    machine::interfaces(report, config);
    network::broadcast(report, config);
    network::firewall(report, config, Path::new("/"));
}

fn examine(file: &ConfigFile, report: &mut Report) -> Result<(), Failure> {
    let environment = Environment::of_process();
    let loaded = match config::judge(file.as_deref(), &environment) {
        Ok((loaded, warnings)) => {
            let name = loaded
                .file
                .as_ref()
                .map_or("no file, defaults".to_owned(), |file| file.display().to_string());
            report.ok("configuration", name);
            report.complaints(Verdict::Warn, "configuration", &warnings);
            loaded
        }
        Err(complaints) => {
            report.complaints(Verdict::Fail, "configuration", &complaints.0);
            return Ok(());
        }
    };
    machine(report, &loaded, &environment);
    disk::speed(report, &loaded.config, &SystemClock);
    interception::authority(report, &loaded.config, &SystemClock);
    let answers = node::daemon(report, &loaded)?;
    machine::ports(report, &loaded.config, answers);
    if answers {
        through::download(report, &loaded.config);
    }
    machine::proxy_variables(report, &loaded.config, &environment, answers);
    Ok(())
}

fn line(finding: &Finding, colour: bool) -> String {
    let (word, paint) = match finding.verdict {
        Verdict::Ok => ("ok  ", "\x1b[32m"),
        Verdict::Warn => ("warn", "\x1b[33m"),
        Verdict::Fail => ("fail", "\x1b[31m"),
    };
    let word = if colour { format!("{paint}{word}\x1b[0m") } else { word.to_owned() };
    let hint = if finding.hint.is_empty() { String::new() } else { format!("\n      → {}", finding.hint) };
    format!("{word}  {}: {}{hint}\n", finding.about, finding.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_to_do() {
        let mut report = Report::default();
        report.ok("clock", "set");
        assert_eq!(report.worst(), Exit::Done);
        report.fail("disk", "full", "make room");
        assert_eq!(report.worst(), Exit::Failed);
        assert_eq!(line(&report.0[1], false), "fail  disk: full\n      → make room\n");
    }
}
