//! One read-only SQL statement, for what no filter can say.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::field::bad;
use super::item::json;
use super::write::body;
use super::{Api, Ask, Problem};
use crate::clock::SharedClock;
use crate::http::Body;
use crate::orm::{Cell, DbError, Kind, Location, Shape, inquire};

/// How long a statement may take.
const TIME: Duration = Duration::from_secs(2);
/// Rows where the caller names no limit, and the most he may name.
const ROWS: (usize, usize) = (1000, 10_000);

/// The files that may be asked: the first by its own names, the others with theirs before.
#[derive(Debug)]
pub struct Inquiry {
    /// Their names and places.
    pub files: Vec<(&'static str, Location)>,
    /// For the time a statement takes.
    pub clock: SharedClock,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    sql: String,
    #[serde(default)]
    parameters: Vec<Value>,
    #[serde(default)]
    limit: Option<usize>,
}

impl Api {
    /// Answers one SQL statement. Blocks.
    pub(super) fn sql(&self, ask: &Ask<'_>) -> Response<Body> {
        if ask.method != Method::POST {
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Not by this method");
            return super::api::allowing(problem, "POST");
        }
        self.inquired(ask).unwrap_or_else(Problem::into_response)
    }

    fn inquired(&self, ask: &Ask<'_>) -> Result<Response<Body>, Problem> {
        let Some(inquiry) = &self.inquiry else {
            return Err(Problem::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing"));
        };
        let asked: Asked =
            serde_json::from_value(body(ask)?).map_err(|error| bad("body", error.to_string()))?;
        let limit = asked.limit.unwrap_or(ROWS.0);
        if !(1..=ROWS.1).contains(&limit) {
            return Err(bad("limit", format!("limit is a number from 1 to {}", ROWS.1)));
        }
        let parameters = asked.parameters.iter().map(parameter).collect::<Result<Vec<_>, _>>()?;
        let files: Vec<_> = inquiry.files.iter().map(|(name, at)| (*name, at)).collect();
        let (clock, deadline) = (Arc::clone(&inquiry.clock), inquiry.clock.instant().checked_add(TIME));
        let late = move || deadline.is_some_and(|deadline| clock.instant() > deadline);
        let found = inquire(&files, &asked.sql, &parameters, limit, late).map_err(|error| {
            let trouble = if let DbError::Sqlite(error) = &error { is_trouble(error) } else { false };
            let of_statement = matches!(error, DbError::Sqlite(_)) || error.kind() == Kind::Constraint;
            let of_statement = of_statement && !trouble;
            if of_statement { bad("sql", error.to_string()) } else { error.into() }
        })?;
        let mut bytes = format!("{{\"columns\":{},\"rows\":[", Value::from(found.columns)).into_bytes();
        for (at, row) in found.rows.iter().enumerate() {
            bytes.extend_from_slice(if at == 0 { b"[" } else { b",[" });
            for (at, cell) in row.iter().enumerate() {
                bytes.extend_from_slice(if at == 0 { b"" } else { b"," });
                shape(cell).write_json(cell, &mut bytes);
            }
            bytes.push(b']');
        }
        bytes.extend_from_slice(format!("],\"more\":{}}}", found.more).as_bytes());
        Ok(json(StatusCode::OK, bytes))
    }
}

/// Whether it is not the statement that is wrong.
fn is_trouble(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(
            Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::OperationInterrupted
                | Code::DatabaseCorrupt
                | Code::CannotOpen
        )
    )
}

fn parameter(value: &Value) -> Result<Cell<'static>, Problem> {
    match value {
        Value::Null => Ok(Cell::Null),
        Value::Bool(truth) => Ok(Cell::Integer(i64::from(*truth))),
        Value::Number(number) => {
            let whole = number.as_i64().map(Cell::Integer);
            Ok(whole.or_else(|| number.as_f64().map(Cell::Real)).unwrap_or(Cell::Null))
        }
        Value::String(text) => Ok(Cell::Text(text.clone().into())),
        Value::Array(_) | Value::Object(_) => {
            Err(bad("parameters", "a parameter is a number, a text, true, false or null"))
        }
    }
}

const fn shape(cell: &Cell<'_>) -> Shape {
    match cell {
        Cell::Integer(_) => Shape::Integer,
        Cell::Real(_) => Shape::Number,
        Cell::Null | Cell::Text(_) => Shape::Text,
        Cell::Blob(_) => Shape::Bytes,
    }
}
