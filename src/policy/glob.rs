//! Patterns in which `*` stands for any characters, none included; everything else stands for itself.
//!
//! Matching takes time linear in the text for each piece between stars and never steps back over a star, so
//! no pattern can be made slow from outside. There is no escape: what a URL holds as `*` is matched by a star.

/// Whether the whole text is of this pattern.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    // `split` yields at least one piece: without a star it is the whole pattern
    let Some(rest) = text.strip_prefix(pieces.next().unwrap_or("")) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    for piece in pieces {
        let Some((_, after)) = rest.split_once(piece) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, want) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*", "a", true),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
            ("https://*.example.org/*", "https://a.example.org/x", true),
            ("https://*.example.org/*", "https://example.org/x", false),
            ("https://*.example.org/*", "http://a.example.org/x", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }

    /// The plain definition, slow and obvious.
    fn model(pattern: &[char], text: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some(('*', pattern)), None) => model(pattern, text),
            (Some(('*', rest)), Some((_, after))) => model(rest, text) || model(pattern, after),
            (Some((p, pattern)), Some((t, text))) => p == t && model(pattern, text),
            (None | Some(_), _) => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*é]{0,8}", text in "[abé]{0,10}") {
            let chars = |s: &str| s.chars().collect::<Vec<char>>();
            prop_assert_eq!(matches(&pattern, &text), model(&chars(&pattern), &chars(&text)));
        }
    }
}
