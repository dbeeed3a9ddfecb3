//! Checksum files: the digest that one states for a name.

use crate::digest::Stated;
use crate::ecosystem::ChecksumLine;

/// The digest that a checksum file states for a name; a file with a single bare value speaks for any.
pub(super) fn find(text: &str, name: &str) -> Option<Stated> {
    let mut lines = text.lines().filter_map(|line| ChecksumLine::read(line, None)).peekable();
    let first = lines.peek().cloned();
    let named = lines.find(|line| line.name.as_ref().is_some_and(|file| is_named(file, name)));
    let bare = || {
        let mut words = text.split_whitespace();
        let is_only = words.next().is_some() && words.next().is_none();
        first.filter(|line| is_only && line.name.is_none())
    };
    named.or_else(bare).map(|line| line.digest)
}

fn is_named(file: &str, name: &str) -> bool {
    file.rsplit('/').next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_both_forms_and_a_bare_value() {
        let hex = "ab".repeat(32);
        for text in [
            format!("00  other\n{hex}  file.iso\n"),
            format!("{hex} *dir/file.iso"),
            format!("SHA256 (file.iso) = {hex}"),
            format!("{hex}\n"),
        ] {
            assert_eq!(find(&text, "file.iso").unwrap().to_string(), format!("sha256:{hex}"), "{text}");
        }
        assert!(find(&format!("{hex}  other"), "file.iso").is_none());
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, name: String) {
            let _unused = find(&text, &name);
        }
    }
}
