//! Patterns for text: `*` and `%` stand for any characters, `_` for one, a backslash takes the next as it is.
//!
//! The same pattern is SQL for the engines that speak it, and is matched here for those that do not, in a
//! number of steps bounded by text times pattern.

/// A pattern, with or without regard to the case of ASCII letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pieces: Vec<Piece>,
    folds_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Any,
    One,
    Just(char),
}

impl Pattern {
    /// From its text.
    pub fn new(text: &str, folds_case: bool) -> Self {
        let (mut pieces, mut chars) = (Vec::new(), text.chars());
        while let Some(next) = chars.next() {
            let piece = match next {
                '*' | '%' => Piece::Any,
                '_' => Piece::One,
                '\\' => Piece::Just(chars.next().unwrap_or('\\')),
                other => Piece::Just(other),
            };
            if piece != Piece::Any || pieces.last() != Some(&Piece::Any) {
                pieces.push(piece);
            }
        }
        Self { pieces, folds_case }
    }

    /// How many pieces stand for any characters: what makes matching slow.
    pub fn stars(&self) -> usize {
        self.pieces.iter().filter(|piece| **piece == Piece::Any).count()
    }

    /// Whether the case of ASCII letters is ignored.
    pub(super) const fn folds_case(&self) -> bool {
        self.folds_case
    }

    /// The right side of `LIKE … ESCAPE '\\'`.
    pub(super) fn like(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Any => text.push('%'),
                Piece::One => text.push('_'),
                Piece::Just(c @ ('%' | '_' | '\\')) => text.extend(['\\', *c]),
                Piece::Just(c) => text.push(*c),
            }
        }
        text
    }

    /// The right side of SQLite's `GLOB`.
    pub(super) fn glob(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Any => text.push('*'),
                Piece::One => text.push('?'),
                Piece::Just(c @ ('*' | '?' | '[')) => text.extend(['[', *c, ']']),
                Piece::Just(c) => text.push(*c),
            }
        }
        text
    }

    /// Whether a text is like this.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut piece) = (0, 0);
        // where to go on when what follows the last star does not fit
        let mut again: Option<(usize, usize)> = None;
        loop {
            match (self.pieces.get(piece), text.get(at)) {
                (None, None) => return true,
                (Some(Piece::Any), _) => {
                    again = Some((piece + 1, at));
                    piece += 1;
                }
                (Some(wanted), Some(found)) if self.fits(*wanted, *found) => {
                    at += 1;
                    piece += 1;
                }
                _ => match again {
                    Some((after, from)) if from < text.len() => {
                        again = Some((after, from + 1));
                        (piece, at) = (after, from + 1);
                    }
                    _ => return false,
                },
            }
        }
    }

    fn fits(&self, wanted: Piece, found: char) -> bool {
        match wanted {
            Piece::Any => false,
            Piece::One => true,
            Piece::Just(wanted) if self.folds_case => wanted.eq_ignore_ascii_case(&found),
            Piece::Just(wanted) => wanted == found,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, like) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("image/*", "image/png", true),
            ("_b", "ab", true),
            ("_b", "b", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("*a*a*a*", "aa", false),
            ("A*", "abc", false),
        ] {
            assert_eq!(Pattern::new(pattern, false).matches(text), like, "{pattern} {text}");
        }
        assert!(Pattern::new("A%", true).matches("abc"));
    }

    proptest! {
        #[test]
        fn sqlite_agrees(pattern in r"[ab*%_\[\]?\\]{0,8}", text in r"[abAB*\[\]?\\%_]{0,8}", folds: bool) {
            let pattern = Pattern::new(&pattern, folds);
            let (operator, right) = if folds {
                ("LIKE ? ESCAPE '\\'", pattern.like())
            } else {
                ("GLOB ?", pattern.glob())
            };
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            let found: bool = connection
                .query_row(&format!("SELECT ? {operator}"), [&text, &right], |row| row.get(0))
                .unwrap();
            prop_assert_eq!(pattern.matches(&text), found, "{:?}", pattern);
        }
    }
}
