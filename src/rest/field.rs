//! The names a caller may use, and what he is told when he uses another.

use http::StatusCode;

use super::Problem;
use crate::orm::{Cell, ColumnSpec, Place, Shape, TableSpec};

/// The most names that lead into a JSON column.
const DEPTH: usize = 8;
/// The longest such name.
const NAME: usize = 64;

/// The request cannot be understood; `field` is the part that is wrong.
pub(super) fn bad(field: &str, detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad-request", "The request cannot be read")
        .detail(detail)
        .field(field)
}

/// The column of this name, or the names there are.
pub(super) fn column(table: &TableSpec, name: &str) -> Result<&'static ColumnSpec, Problem> {
    table.column(name).ok_or_else(|| unknown(table, name, []))
}

/// There is no such name in this table.
pub(super) fn unknown<'n>(
    table: &TableSpec,
    name: &str,
    further: impl IntoIterator<Item = &'n str>,
) -> Problem {
    let names = table.columns.iter().map(|column| column.name.to_owned());
    let allowed: Vec<String> = names.chain(further.into_iter().map(str::to_owned)).collect();
    bad(name, format!("{} has no field of that name", table.name)).allowed(allowed)
}

/// A column, or with further names a member of a JSON column.
pub(super) fn place<'n>(
    table: &TableSpec,
    name: &str,
    mut further: impl Iterator<Item = &'n str>,
) -> Result<(Place, Shape), Problem> {
    let column = column(table, name)?;
    let path: Vec<String> = further.by_ref().map(str::to_owned).collect();
    if path.is_empty() {
        return Ok((Place::column(column.name), column.shape));
    }
    if column.shape != Shape::Json {
        return Err(bad(name, format!("{name} has no members")));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fine = |name: &String| (1..=NAME).contains(&name.len()) && name.chars().all(plain);
    if path.len() > DEPTH || !path.iter().all(fine) {
        return Err(bad(name, "names of members are letters, digits, - and _, and at most eight deep"));
    }
    Ok((Place { column: column.name, path }, Shape::Json))
}

/// A value of a column from text.
pub(super) fn value(name: &str, shape: Shape, text: &str) -> Result<Cell<'static>, Problem> {
    // a member may be of any type: it is compared as text
    let shape = if shape == Shape::Json { Shape::Text } else { shape };
    shape.parse(text).map_err(|wanted| bad(name, format!("`{}` is not {wanted}", shortened(text))))
}

/// Enough of a text to know it again.
pub(super) fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The cells of a key from its text: the parts in their order with commas between.
pub(super) fn key(table: &TableSpec, text: &str) -> Result<Vec<Cell<'static>>, Problem> {
    let columns: Vec<_> = table.key_columns().collect();
    let parts: Vec<&str> = text.splitn(columns.len().max(1), ',').collect();
    if parts.len() != columns.len() {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        return Err(bad("key", format!("the key is {}", names.join(","))));
    }
    let parts = columns.iter().zip(parts);
    parts
        .map(|(column, text)| {
            let wrong = |wanted| bad(column.name, format!("`{}` is not {wanted}", shortened(text)));
            column.shape.parse(text).map_err(wrong)
        })
        .collect()
}

/// The text of a key, as [`key`] reads it.
pub(super) fn key_text(table: &TableSpec, key: &[Cell<'_>]) -> String {
    let parts = table.key_columns().zip(key).map(|(column, cell)| column.shape.text(cell));
    parts.collect::<Vec<_>>().join(",")
}
