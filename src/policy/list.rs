//! Comma-separated lists (RFC 9110 section 5.6.1) and the numbers in them.

/// The longest span the rules reckon with, in seconds (RFC 9111 section 1.2.2).
pub(super) const FOREVER: u64 = 1 << 31;

/// The elements of one line, split at commas outside quoted strings, without the white space around them and
/// without empty ones. Where a quoted string does not end, quotes are ordinary characters: what stands
/// behind them must not be hidden.
pub(super) fn elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quotes = Quotes::default();
    let balanced = line.iter().fold(true, |_, byte| !quotes.inside_after(*byte));
    let mut quotes = Quotes::default();
    line.split(move |byte| {
        let inside = quotes.inside_after(*byte);
        *byte == b',' && !(inside && balanced)
    })
    .map(<[u8]>::trim_ascii)
    .filter(|element| !element.is_empty())
}

/// Follows quoted strings (RFC 9110 section 5.6.4) byte by byte.
#[derive(Default)]
struct Quotes {
    inside: bool,
    escaped: bool,
}

impl Quotes {
    const fn inside_after(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.inside => self.escaped = true,
            b'"' => self.inside = !self.inside,
            _ => {}
        }
        self.inside
    }
}

/// The text of a quoted string, or of a token as it stands; none where a quote has no partner.
pub(super) fn unquoted(value: &[u8]) -> Option<Vec<u8>> {
    let Some(inner) = value.strip_prefix(b"\"") else {
        return (!value.contains(&b'"')).then(|| value.to_vec());
    };
    let inner = inner.strip_suffix(b"\"")?;
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => text.push(*bytes.next()?),
            b'"' => return None,
            other => text.push(*other),
        }
    }
    Some(text)
}

/// `delta-seconds`: digits and nothing else, any number of them; never more than [`FOREVER`].
pub(super) fn seconds(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let sum =
        value.iter().fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(sum.min(FOREVER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_outside_quotes_only() {
        for (line, want) in [
            ("", vec![]),
            (" , ,", vec![]),
            ("a, b ,c", vec!["a", "b", "c"]),
            ("a=\"b, c\", d", vec!["a=\"b, c\"", "d"]),
            ("a=\"b\\\", c\", d", vec!["a=\"b\\\", c\"", "d"]),
            ("a=\"b, no-store", vec!["a=\"b", "no-store"]),
            ("a=\"b\\\", no-store", vec!["a=\"b\\\"", "no-store"]),
            ("a\\\"b, c\"", vec!["a\\\"b, c\""]),
            ("\"a\", \"b, c", vec!["\"a\"", "\"b", "c"]),
        ] {
            let got: Vec<_> = elements(line.as_bytes()).map(|e| str::from_utf8(e).unwrap()).collect();
            assert_eq!(got, want, "{line}");
        }
    }

    #[test]
    fn reads_tokens_and_quoted_strings() {
        for (value, want) in [
            ("a", Some("a")),
            ("\"a b\"", Some("a b")),
            ("\"a\\\"b\"", Some("a\"b")),
            ("\"\"", Some("")),
            ("\"", None),
            ("a\"", None),
            ("\"a", None),
            ("\"a\\\"", None),
            ("\"a\"b\"", None),
        ] {
            assert_eq!(unquoted(value.as_bytes()).as_deref(), want.map(str::as_bytes), "{value}");
        }
    }

    #[test]
    fn seconds_are_digits_and_saturate() {
        for (value, want) in [
            ("0", Some(0)),
            ("003600", Some(3600)),
            ("2147483647", Some(FOREVER - 1)),
            ("2147483648", Some(FOREVER)),
            ("2147483649", Some(FOREVER)),
            ("99999999999999999999999999", Some(FOREVER)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.0", None),
            (" 1", None),
            ("1s", None),
        ] {
            assert_eq!(seconds(value.as_bytes()), want, "{value}");
        }
    }
}
