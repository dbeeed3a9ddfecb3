//! Lines of any input, each of a bounded length: a longer one is passed over without being kept.

use std::io::{BufRead, Result};

/// Reads lines.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    longest: usize,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, longest: usize) -> Self {
        Self { input, line: Vec::new(), longest }
    }

    /// The next line without its end, as text (what is no UTF-8 replaced); none at the end of the input. A line that
    /// is too long is empty.
    pub(super) fn next(&mut self) -> Result<Option<std::borrow::Cow<'_, str>>> {
        self.line.clear();
        let (mut began, mut too_long) = (false, false);
        loop {
            let piece = self.input.fill_buf()?;
            if piece.is_empty() {
                break;
            }
            began = true;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let (length, used) = end.map_or((piece.len(), piece.len()), |end| (end, end + 1));
            too_long |= self.line.len() + length > self.longest;
            if !too_long {
                self.line.extend_from_slice(piece.get(..length).unwrap_or_default());
            }
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if too_long {
            self.line.clear();
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(began.then(|| String::from_utf8_lossy(&self.line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_passed_over() {
        let text = format!("a\r\n{}\nb\n\n{}", "x".repeat(100), "y".repeat(9));
        let mut lines = Lines::new(std::io::BufReader::with_capacity(7, text.as_bytes()), 10);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line.into_owned());
        }
        assert_eq!(found, ["a", "", "b", "", "yyyyyyyyy"]);
        assert!(lines.line.capacity() < 64);
    }
}
