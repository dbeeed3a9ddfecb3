//! What is wrong with a configuration: one sentence each, with its place and what to do about it.

use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong, or worth a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Where it was written, as far as that is known.
    pub place: Option<Place>,
    /// The key, dotted; empty where it is about no key.
    pub key: String,
    /// The sentence.
    pub what: String,
    /// What to do; empty where the sentence says it.
    pub hint: String,
}

/// All that is wrong with a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaints(pub Vec<Complaint>);

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A place in a file; lines and columns count from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The column, in characters.
        column: usize,
    },
    /// A file as a whole.
    Whole(PathBuf),
    /// A variable of the environment.
    Variable(String),
}

impl Complaint {
    pub(super) fn about(key: &str, what: impl Into<String>) -> Self {
        Self { place: None, key: key.to_owned(), what: what.into(), hint: String::new() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    pub(super) fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }
}

impl Place {
    /// The line, for reading complaints in the order of the file.
    pub(super) const fn line(&self) -> usize {
        match self {
            Self::File { line, .. } => *line,
            Self::Whole(_) | Self::Variable(_) => usize::MAX,
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Whole(path) => path.display().fmt(f),
            Self::Variable(name) => write!(f, "${name}"),
        }
    }
}

impl fmt::Display for Complaints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, complaint) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            complaint.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Complaints {}
