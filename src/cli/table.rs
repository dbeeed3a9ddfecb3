//! Tables for people: aligned columns, numbers to the right, one space of air too many rather than too few.

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
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).zip(&self.right).map(|((cell, width), right)| {
                if *right { format!("{cell:>width$}") } else { format!("{cell:width$}") }
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
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
    }
}
