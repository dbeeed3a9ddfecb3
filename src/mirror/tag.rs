//! Entity tags of rewritten documents: made from the upstream's, and turned back into it.
//!
//! A rewritten document is another representation than the upstream's, the same for one name of ours and one
//! version of the rewriting. Its tag says so, is weak because nobody compared bytes, and holds the upstream's
//! tag, so that a client's condition can be asked of the cache or of the upstream as it would ask itself.

use http::HeaderValue;

use crate::digest::Digest;

/// Counts up when the same document would be rewritten differently.
const VERSION: u8 = 1;

/// What a tag of ours ends with, besides eight characters that name the rewriting.
const MARK: &str = "-larder-";

/// One way of rewriting: for a mirror, a place on it, and a name of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(String);

impl Stamp {
    /// The way of rewriting what `here` in the stead of `base` gives to a client that knows us as `root`.
    pub(super) fn new(root: &str, here: &str, base: &str) -> Self {
        let digest = Digest::of(format!("{VERSION}\n{root}\n{here}\n{base}").as_bytes());
        Self(digest.hex().chars().take(8).collect())
    }

    /// Our tag for a document with this tag upstream; none where that is no tag.
    pub fn mark(&self, upstream: &HeaderValue) -> Option<HeaderValue> {
        let text = upstream.to_str().ok()?.trim();
        let (kind, opaque) = match text.strip_prefix("W/") {
            Some(opaque) => ('w', opaque),
            None => ('s', text),
        };
        let opaque = opaque.strip_prefix('"')?.strip_suffix('"')?;
        HeaderValue::try_from(format!("W/\"{opaque}{MARK}{kind}{}\"", self.0)).ok()
    }

    /// The upstream's tags of those in an `If-None-Match` that are ours; `*` stays. None where no tag is left,
    /// for a tag of another representation matches nothing.
    pub fn unmark(&self, condition: &HeaderValue) -> Option<HeaderValue> {
        let text = condition.to_str().ok()?;
        if text.trim() == "*" {
            return Some(condition.clone());
        }
        let tags: Vec<String> =
            text.split('"').skip(1).step_by(2).filter_map(|tag| self.upstream(tag)).collect();
        let known = HeaderValue::try_from(tags.join(", ")).ok();
        known.filter(|value| !value.is_empty())
    }

    fn upstream(&self, opaque: &str) -> Option<String> {
        let rest = opaque.strip_suffix(&self.0)?;
        if let Some(opaque) = rest.strip_suffix('w').and_then(|rest| rest.strip_suffix(MARK)) {
            return Some(format!("W/\"{opaque}\""));
        }
        let opaque = rest.strip_suffix('s').and_then(|rest| rest.strip_suffix(MARK))?;
        Some(format!("\"{opaque}\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> HeaderValue {
        HeaderValue::try_from(text).unwrap()
    }

    #[test]
    fn only_our_own_tags_are_turned_back() {
        let stamp = Stamp::new("http://a", "/m/x", "https://x/");
        let other = Stamp::new("http://b", "/m/x", "https://x/");
        assert_ne!(stamp, other);
        let ours = stamp.mark(&value("\"v1\"")).unwrap();
        assert!(ours.to_str().unwrap().starts_with("W/\"v1-larder-s"));
        assert_eq!(stamp.unmark(&ours), Some(value("\"v1\"")));
        assert_eq!(other.unmark(&ours), None);
        let list = format!("\"v1\", {}, W/\"x\"", ours.to_str().unwrap());
        assert_eq!(stamp.unmark(&value(&list)), Some(value("\"v1\"")));
        assert_eq!(stamp.unmark(&value("*")), Some(value("*")));
        assert_eq!(stamp.unmark(&value("\"v1\"")), None);
        assert_eq!(stamp.mark(&value("v1")), None);
    }

    proptest! {
        #[test]
        fn a_marked_tag_turns_back(opaque in "[!#-~]{0,30}", weak: bool) {
            let stamp = Stamp::new("r", "h", "b");
            let tag = value(&format!("{}\"{opaque}\"", if weak { "W/" } else { "" }));
            let ours = stamp.mark(&tag).unwrap();
            prop_assert_eq!(stamp.unmark(&ours), Some(tag));
        }

        #[test]
        fn no_condition_panics(text in "[ -~]{0,60}") {
            let _unused = Stamp::new("r", "h", "b").unmark(&value(&text));
        }
    }
}
