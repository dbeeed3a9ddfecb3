//! What can be done besides reading and changing rows, for the description of the API.

use serde_json::Value;

/// A call that does something.
#[derive(Debug, Clone)]
pub struct ActionDoc {
    /// Its method.
    pub method: &'static str,
    /// Its path below the API, such as `/blobs/{key}/verify`.
    pub path: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its parameters, each with what it is and the pattern of its values.
    pub query: &'static [(&'static str, &'static str, &'static str)],
    /// Whether it is for everybody, with or without a proof of who he is.
    pub is_open: bool,
    /// The JSON schema of its body, where it takes one; one whose `format` is `binary` is no JSON.
    pub takes: Option<Value>,
    /// The status of success, and the JSON schema of its body, where it has one.
    pub gives: (u16, Option<Value>),
}
