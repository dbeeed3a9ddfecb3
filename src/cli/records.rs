//! Rows of a record as a table, and what its columns mean: from the definition that the daemon has too.

use serde_json::Value;

use super::table::Table;
use crate::orm::{ColumnSpec, Record, Shape, TableSpec};
use crate::unit::ByteSize;

/// What the columns of a record mean, for the end of a command's help.
pub(super) fn help<R: Record>() -> String {
    let mut text = format!("Columns, for --columns, --order and --where:\n\n{}:\n", R::TABLE.doc);
    let width = R::TABLE.columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
    for column in R::TABLE.columns {
        text.push_str(&format!("  {:width$}  {}\n", column.name, column.doc.replace('\n', " ")));
    }
    text
}

/// These columns of these rows; names that are none of the record's are members of the answer besides.
pub(super) fn table(spec: &TableSpec, names: &[&str], rows: &[Value]) -> Table {
    let heads: Vec<String> = names
        .iter()
        .map(|name| {
            let number = spec.column(name).is_some_and(|column| column.shape.is_number());
            let head = name.replace('_', " ").to_uppercase();
            if number { format!(">{head}") } else { head }
        })
        .collect();
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for row in rows {
        table.row(
            names.iter().map(|name| shown(spec.column(name), name, row.get(name).unwrap_or(&Value::Null))),
        );
    }
    table
}

/// All members of one row, and what they mean.
pub(super) fn members(spec: &TableSpec, row: &Value) -> Table {
    let mut table = Table::new(&["MEMBER", "VALUE", "MEANING"]);
    for (name, value) in row.as_object().into_iter().flatten() {
        let column = spec.column(name);
        let meaning = column.map_or("", |column| column.doc).replace('\n', " ");
        table.row([name.clone(), shown(column, name, value), meaning]);
    }
    table
}

/// A value for people: bytes with their unit, the rest as it is.
fn shown(column: Option<&'static ColumnSpec>, name: &str, value: &Value) -> String {
    let bytes = matches!(name, "size" | "received") || name.starts_with("bytes_");
    match value {
        Value::Null => String::new(),
        Value::Number(number) if bytes && column.is_some() => {
            number.as_u64().map_or_else(|| number.to_string(), |bytes| ByteSize(bytes).to_string())
        }
        Value::String(text) if column.is_some_and(|column| column.shape == Shape::Time) => {
            to_the_second(text)
        }
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(|item| shown(None, "", item)).collect::<Vec<_>>().join(" "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// A time without its milliseconds.
fn to_the_second(text: &str) -> String {
    match text.split_once('.') {
        Some((seconds, rest)) if rest.ends_with('Z') => format!("{seconds}Z"),
        _ => text.to_owned(),
    }
}

/// Query text: everything but plain letters and digits escaped.
pub(super) fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
