//! The texts of the statements of a table, made once for each connection.

use crate::orm::{ColumnSpec, TableSpec};

/// The texts of a table's statements.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) select: String,
    pub(super) get: String,
    pub(super) add: String,
    pub(super) upsert: String,
    pub(super) delete: String,
    pub(super) by_key: String,
    pub(super) returning_key: String,
}

impl Statements {
    pub(super) fn of(table: &TableSpec) -> Self {
        let name = table.name;
        let quoted = |column: &ColumnSpec| format!("\"{}\"", column.name);
        let names: Vec<String> = table.columns.iter().map(quoted).collect();
        let keys: Vec<String> = table.key_columns().map(quoted).collect();
        let by_key = keys.iter().map(|key| format!("{key} = ?")).collect::<Vec<_>>().join(" AND ");
        let replaced: Vec<String> =
            table.columns.iter().filter(|column| !column.is_key).map(|c| replaced(name, c)).collect();
        let conflict = match replaced.as_slice() {
            [] => "DO NOTHING".to_owned(),
            replaced => format!("DO UPDATE SET {}", replaced.join(", ")),
        };
        let version = table.version_column();
        let returning = version.map(|c| format!(" RETURNING \"{}\"", c.name)).unwrap_or_default();
        let (all, marks) = (names.join(", "), vec!["?"; names.len()].join(", "));
        let select = format!("SELECT {all} FROM \"{name}\"");
        let add = format!("INSERT INTO \"{name}\" ({all}) VALUES ({marks})");
        Self {
            get: format!("{select} WHERE {by_key}"),
            upsert: format!("{add} ON CONFLICT ({}) {conflict}{returning}", keys.join(", ")),
            delete: format!("DELETE FROM \"{name}\" WHERE {by_key}"),
            returning_key: format!(" RETURNING {}", keys.join(", ")),
            select,
            add,
            by_key,
        }
    }
}

/// What a column becomes where the key is taken.
fn replaced(table: &str, column: &ColumnSpec) -> String {
    let name = column.name;
    if column.is_version {
        return format!("\"{name}\" = \"{table}\".\"{name}\" + 1");
    }
    format!("\"{name}\" = excluded.\"{name}\"")
}
