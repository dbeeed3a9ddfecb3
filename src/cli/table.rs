//! Tables for people: aligned columns, numbers to the right, one space of air too many rather than too few.

/// A last column of fewer places is not cut: it would say nothing.
const LEAST: usize = 16;

/// A table being built.
#[derive(Debug)]
pub(crate) struct Table {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these heads; those that begin with `>` stand to the right.
    pub(crate) fn new(heads: &[&str]) -> Self {
        let right = heads.iter().map(|head| head.starts_with('>')).collect();
        let heads = heads.iter().map(|head| head.trim_start_matches('>').to_owned()).collect();
        Self { right, rows: vec![heads] }
    }

    /// One more row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let clean = |cell: String| cell.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// The text, a line a row.
    pub(crate) fn text(&self) -> String {
        self.text_within(None)
    }

    /// The same with the last column cut so that lines fit, where there is room enough to be worth it: of a URL the end
    /// says most.
    pub(crate) fn text_within(&self, columns: Option<usize>) -> String {
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let last = self.right.len().saturating_sub(1);
        let before: usize = widths.iter().take(last).map(|width| width + 2).sum();
        let room = columns.map(|columns| columns.saturating_sub(before)).filter(|room| *room >= LEAST);
        let mut text = String::new();
        for row in &self.rows {
            let cells =
                row.iter().zip(&widths).zip(&self.right).enumerate().map(|(at, ((cell, width), right))| {
                    match room {
                        Some(room) if at == last => tail(cell, room),
                        _ if *right => format!("{cell:>width$}"),
                        _ => format!("{cell:width$}"),
                    }
                });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// What fits of a long text: its end, which says more than its beginning. No control character reaches the terminal.
pub(crate) fn tail(text: &str, columns: usize) -> String {
    let plain: Vec<char> = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    match plain.len().checked_sub(columns) {
        None | Some(0) => plain.into_iter().collect(),
        Some(over) => std::iter::once('…').chain(plain.into_iter().skip(over + 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_escapes() {
        let mut table = Table::new(&["NAME", ">SIZE", "WHERE"]);
        table.row(["a".to_owned(), "1".to_owned(), "x\u{1b}[31m".to_owned()]);
        table.row(["long name".to_owned(), "1000".to_owned(), "y".to_owned()]);
        assert_eq!(table.text(), "NAME       SIZE  WHERE\na             1  x?[31m\nlong name  1000  y\n");
        let mut wide = Table::new(&["A", "URL"]);
        wide.row(["1".to_owned(), "http://example.org/a/long/way/to/debian.iso".to_owned()]);
        assert_eq!(wide.text_within(Some(24)), "A  URL\n1  …ng/way/to/debian.iso\n");
        assert_eq!(wide.text_within(Some(10)), wide.text(), "too narrow to be worth it");
        assert_eq!(tail("abc\u{1b}", 9), "abc?");
    }
}
