//! Checksum files: `HEX  name` (GNU), `SHA256 (name) = HEX` (BSD), or a bare value.

use crate::digest::Stated;

/// The digest that a checksum file states for a name; a file with a single bare value speaks for any.
pub(super) fn find(text: &str, name: &str) -> Option<Stated> {
    text.lines().find_map(|line| of_line(line, name)).or_else(|| {
        let mut words = text.split_whitespace();
        let only = words.next().filter(|_| words.next().is_none())?;
        Stated::parse(only).ok()
    })
}

fn of_line(line: &str, name: &str) -> Option<Stated> {
    let line = line.trim();
    if let Some((head, hex)) = line.rsplit_once(" = ") {
        let (algorithm, rest) = head.split_once(" (")?;
        let named = rest.strip_suffix(')').is_some_and(|file| is_named(file, name));
        return named.then(|| Stated::parse(&format!("{}:{}", algorithm.trim(), hex.trim())).ok()).flatten();
    }
    let (hex, file) = line.split_once(char::is_whitespace)?;
    let file = file.trim_start().trim_start_matches('*');
    is_named(file, name).then(|| Stated::parse(hex.trim_start_matches('\\')).ok()).flatten()
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
