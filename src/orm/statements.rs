//! The texts of the statements of a table, made once for each connection.

use super::dialect::Dialect;
use super::{ColumnSpec, TableSpec};

/// The texts of a table's statements. Those by key take its parts as their first values.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) select: String,
    pub(super) get: String,
    pub(super) add: String,
    pub(super) upsert: String,
    pub(super) delete: String,
    pub(super) returning_key: String,
    /// Where the column stands that counts versions.
    pub(super) counter: Option<usize>,
}

impl Statements {
    pub(super) fn of(table: &TableSpec, dialect: Dialect) -> Self {
        let name = table.name;
        let quoted = |column: &ColumnSpec| format!("\"{}\"", column.name);
        let names: Vec<String> = table.columns.iter().map(quoted).collect();
        let keys: Vec<String> = table.key_columns().map(quoted).collect();
        let by_key = by_key(table, dialect, 0);
        let replaced: Vec<String> =
            table.columns.iter().filter(|column| !column.is_key).map(|c| replaced(name, c)).collect();
        let conflict = match replaced.as_slice() {
            [] => "DO NOTHING".to_owned(),
            replaced => format!("DO UPDATE SET {}", replaced.join(", ")),
        };
        let version = table.version_column();
        let returning = version.map(|c| format!(" RETURNING \"{}\"", c.name)).unwrap_or_default();
        let marks: Vec<String> = (1..=names.len()).map(|number| dialect.mark(number)).collect();
        let (all, marks) = (names.join(", "), marks.join(", "));
        let select = format!("SELECT {all} FROM \"{name}\"");
        let add = format!("INSERT INTO \"{name}\" ({all}) VALUES ({marks})");
        Self {
            get: format!("{select} WHERE {by_key}"),
            upsert: format!("{add} ON CONFLICT ({}) {conflict}{returning}", keys.join(", ")),
            delete: format!("DELETE FROM \"{name}\" WHERE {by_key}"),
            returning_key: format!(" RETURNING {}", keys.join(", ")),
            select,
            add,
            counter: table.columns.iter().position(|column| column.is_version),
        }
    }
}

/// A change of some columns: their values, then those of the key.
pub(super) fn update(table: &TableSpec, dialect: Dialect, columns: &[&str]) -> String {
    let set = |(position, name): (usize, &&str)| format!("\"{name}\" = {}", dialect.mark(position + 1));
    let mut sets: Vec<String> = columns.iter().enumerate().map(set).collect();
    let counter = table.version_column().map(|column| column.name);
    sets.extend(counter.map(|name| format!("\"{name}\" = \"{name}\" + 1")));
    let by_key = by_key(table, dialect, columns.len());
    format!("UPDATE \"{}\" SET {} WHERE {by_key}", table.name, sets.join(", "))
}

/// That a row has this key; `before` values stand before its parts.
fn by_key(table: &TableSpec, dialect: Dialect, before: usize) -> String {
    let part = |(position, column): (usize, &ColumnSpec)| {
        format!("\"{}\" = {}", column.name, dialect.mark(before + position + 1))
    };
    table.key_columns().enumerate().map(part).collect::<Vec<_>>().join(" AND ")
}

/// What a column becomes where the key is taken.
fn replaced(table: &str, column: &ColumnSpec) -> String {
    let name = column.name;
    if column.is_version {
        return format!("\"{name}\" = \"{table}\".\"{name}\" + 1");
    }
    format!("\"{name}\" = excluded.\"{name}\"")
}
