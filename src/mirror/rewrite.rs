//! Leading the links inside a document back while it streams by.
//!
//! What comes in goes out byte for byte, but for the references that the document's kind names. At most one tag
//! or text of the document is held at a time, and one that is longer than [`LONGEST`] is let through as it is:
//! memory is bounded whatever is sent, and what is no document of its kind comes out as it went in.

mod html;
mod json;

use super::place::Links;
use super::preset::Document;

/// The longest tag or text that is looked into.
const LONGEST: usize = 64 * 1024;

/// A document being rewritten.
#[derive(Debug)]
pub struct Rewriter(Kind);

#[derive(Debug)]
enum Kind {
    Html(html::Html),
    Json(json::Json),
}

impl Rewriter {
    /// For a document whose links lead back this way.
    pub fn new(document: Document, links: Links) -> Self {
        Self(match document {
            Document::Html => Kind::Html(html::Html::new(links)),
            Document::PypiJson => Kind::Json(json::Json::new(json::in_pypi, links)),
            Document::NpmJson => Kind::Json(json::Json::new(json::in_npm, links)),
            Document::CratesJson => Kind::Json(json::Json::new(json::in_crates, links)),
        })
    }

    /// Takes the next bytes and gives out what is ready.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match &mut self.0 {
            Kind::Html(html) => html.push(bytes, out),
            Kind::Json(json) => json.push(bytes, out),
        }
    }

    /// The document has ended: gives out what was held.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.0 {
            Kind::Html(html) => html.finish(out),
            Kind::Json(json) => json.finish(out),
        }
    }
}

#[cfg(test)]
mod tests;
