//! Why a command failed, for one reader, and the exit status that goes with it.

use std::process::ExitCode;

use crate::config::Complaints;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// It was called the wrong way.
    Usage,
    /// There is no such thing.
    NotFound,
    /// The bytes are not those of the digest.
    Mismatch,
    /// The network or the origin failed.
    Network,
    /// A port is taken.
    PortTaken,
    /// The configuration is wrong.
    Configuration,
}

/// Why, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Sentences with a hint each, which may be empty.
    pub(crate) said: Vec<(String, String)>,
}

impl Failure {
    /// One sentence.
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, said: vec![(what.into(), String::new())] }
    }

    /// What to do about the last sentence.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some((_, last)) = self.said.last_mut() {
            *last = hint.into();
        }
        self
    }
}

impl Failure {
    /// All sentences as one.
    pub(crate) fn sentence(&self) -> String {
        self.said.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>().join("; ")
    }
}

impl From<Complaints> for Failure {
    fn from(complaints: Complaints) -> Self {
        let said = complaints.0.iter().map(|complaint| (complaint.to_string(), complaint.hint.clone()));
        Self { exit: Exit::Configuration, said: said.collect() }
    }
}

impl Exit {
    /// The exit status.
    pub(crate) const fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Mismatch => 4,
            Self::Network => 5,
            Self::PortTaken => 69,
            Self::Configuration => 78,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
    }
}
