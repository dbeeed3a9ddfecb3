//! Adding, replacing, changing and deleting rows.
//!
//! What comes in is checked field by field against the definition and then against the type of the record, so
//! that no row is stored that the house could not read again. Fields that count versions are kept by the engine:
//! a caller's are ignored.

use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Method, Response, StatusCode};
use serde_json::{Map, Value};

use super::api::Writes;
use super::field::{bad, key as key_of, key_text, shortened, unknown};
use super::item::{found, json, missing, row_response};
use super::list::prefers;
use super::tag::{self, Seen};
use super::{Ask, Problem, Resource};
use crate::http::{Body, empty};
use crate::orm::{Action, Cell, ColumnSpec, Operation, Outcome, Shape};

/// The most rows added at once.
const ROWS: usize = 1000;
/// How often a change is made again on a row that somebody else changed meanwhile.
const TRIES: u32 = 3;

type Row = Vec<Cell<'static>>;

/// `POST`: one row, or a list of them, all or none.
pub(super) fn create(resource: &Resource, ask: &Ask<'_>) -> Result<Response<Body>, Problem> {
    no_query(ask)?;
    let body = body(ask)?;
    let (values, one) = match body.as_array() {
        Some(values) => (values.as_slice(), false),
        None => (std::slice::from_ref(&body), true),
    };
    if values.len() > ROWS || values.is_empty() {
        return Err(bad("body", format!("from 1 to {ROWS} rows can be added at once")));
    }
    let merge = prefers(ask, "resolution=merge-duplicates");
    let rows: Vec<Row> = values.iter().map(|value| whole(resource, value, &[])).collect::<Result<_, _>>()?;
    let action = |row| if merge { Action::Upsert(row) } else { Action::Add(row) };
    let batch: Vec<_> =
        rows.into_iter().map(|row| Operation { table: resource.table, action: action(row) }).collect();
    let outcomes = resource.rows.apply(&batch)?;
    let stored: Vec<Row> =
        batch.into_iter().zip(outcomes).filter_map(|(row, outcome)| as_stored(row, outcome)).collect();
    let mut response = match stored.first() {
        _ if prefers(ask, "return=minimal") => status(StatusCode::CREATED),
        Some(row) if one => row_response(StatusCode::CREATED, resource, row),
        _ => json(StatusCode::CREATED, all(resource, &stored)),
    };
    if let (true, Some(row)) = (one, stored.first()) {
        let key = key_text(resource.table, &key_cells(resource, row));
        let location = format!("{}/{}", ask.path.trim_end_matches('/'), escaped(&key));
        if let Ok(value) = HeaderValue::from_str(&location) {
            response.headers_mut().insert(LOCATION, value);
        }
    }
    Ok(response)
}

/// The row that was added, with the version it was given.
fn as_stored(operation: Operation<'static>, outcome: Outcome) -> Option<Row> {
    let (Action::Add(mut row) | Action::Upsert(mut row)) = operation.action else { return None };
    if let Outcome::Done(Some(version)) = outcome
        && let Some(at) = operation.table.columns.iter().position(|column| column.is_version)
        && let Some(cell) = row.get_mut(at)
    {
        *cell = Cell::Integer(version.cast_signed());
    }
    Some(row)
}

/// `PUT`: the whole row of this key.
pub(super) fn replace(resource: &Resource, key: &str, ask: &Ask<'_>) -> Result<Response<Body>, Problem> {
    no_query(ask)?;
    let key = key_of(resource.table, key)?;
    let row = whole(resource, &body(ask)?, &key)?;
    let before = resource.row(&key)?;
    let operation = replacing(resource, &key, row, before.as_deref(), ask)?;
    done(resource.rows.run(&operation)?, resource)?;
    let status_of = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    stored(resource, &key, status_of, ask)
}

/// What replaces a row, as far as the request's conditions allow.
fn replacing(
    resource: &Resource,
    key: &[Cell<'static>],
    row: Row,
    before: Option<&[Cell<'static>]>,
    ask: &Ask<'_>,
) -> Result<Operation<'static>, Problem> {
    let (wanted, unwanted) = (Seen::if_match(ask.headers), Seen::if_none_match(ask.headers));
    let action = match before {
        None if wanted != Seen::Unsaid => return Err(tag::changed()),
        None if unwanted == Seen::Any => Action::Add(row),
        None => Action::Upsert(row),
        Some(before) => {
            let now = tag::of_row(resource, before);
            if unwanted.has(&now) || (wanted != Seen::Unsaid && !wanted.is(&now)) {
                return Err(tag::changed());
            }
            match wanted {
                Seen::Unsaid => Action::Upsert(row),
                Seen::Any | Seen::Tags(_) => {
                    let seen = tag::version(resource, before);
                    Action::Update { key: key.to_vec(), changes: but_the_key(resource, row), seen }
                }
            }
        }
    };
    Ok(Operation { table: resource.table, action })
}

/// `PATCH`: some fields of the row; of a JSON field those members that are named (RFC 7396).
pub(super) fn change(resource: &Resource, key: &str, ask: &Ask<'_>) -> Result<Response<Body>, Problem> {
    no_query(ask)?;
    let patch = body(ask)?;
    let Value::Object(patch) = &patch else { return Err(not_an_object()) };
    let wanted = Seen::if_match(ask.headers);
    let cells = key_of(resource.table, key)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let before = found(resource, key)?;
        if wanted != Seen::Unsaid && !wanted.is(&tag::of_row(resource, &before)) {
            return Err(tag::changed());
        }
        let changes = changes(resource, patch, &cells, &before)?;
        let seen = tag::version(resource, &before);
        let action = Action::Update { key: cells.clone(), changes, seen };
        let outcome = resource.rows.run(&Operation { table: resource.table, action })?;
        if outcome == Outcome::Stale && wanted == Seen::Unsaid && tries < TRIES {
            continue;
        }
        done(outcome, resource)?;
        return stored(resource, &cells, StatusCode::OK, ask);
    }
}

/// The cells that a patch changes in a row.
fn changes(
    resource: &Resource,
    patch: &Map<String, Value>,
    key: &[Cell<'static>],
    before: &[Cell<'static>],
) -> Result<Vec<(usize, Cell<'static>)>, Problem> {
    let mut row = before.to_vec();
    let mut changes = Vec::new();
    for (name, value) in patch {
        let (at, column) = named(resource, name)?;
        if column.is_version {
            continue;
        }
        let new = match (column.shape, before.get(at)) {
            (Shape::Json, Some(Cell::Text(text))) => {
                let mut merged = serde_json::from_str(text).unwrap_or(Value::Null);
                merge(&mut merged, value);
                cell(column, &merged)?
            }
            _ => cell(column, value)?,
        };
        if column.is_key {
            let nth = resource.table.key_columns().position(|part| part == column);
            same_key(column, nth.and_then(|nth| key.get(nth)), &new)?;
            continue;
        }
        row.get_mut(at).into_iter().for_each(|old| *old = new.clone());
        changes.push((at, new));
    }
    checked(resource, &row)?;
    Ok(changes)
}

/// A merge patch (RFC 7396): null takes a member away.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// `DELETE`: the row of this key.
pub(super) fn delete(resource: &Resource, key: &str, ask: &Ask<'_>) -> Result<Response<Body>, Problem> {
    no_query(ask)?;
    let cells = key_of(resource.table, key)?;
    let wanted = Seen::if_match(ask.headers);
    let mut seen = None;
    if wanted != Seen::Unsaid {
        let row = found(resource, key)?;
        if !wanted.is(&tag::of_row(resource, &row)) {
            return Err(tag::changed());
        }
        seen = tag::version(resource, &row);
    }
    match &resource.writes {
        Writes::Rows => {
            let action = Action::Delete { key: cells, seen };
            done(resource.rows.run(&Operation { table: resource.table, action })?, resource)?;
        }
        Writes::Owner { delete } => {
            let gone = delete.as_ref().map_or(Ok(false), |delete| delete(&cells))?;
            if !gone {
                return Err(missing(resource));
            }
        }
    }
    Ok(status(StatusCode::NO_CONTENT))
}

// === what comes in ===

/// The JSON of a body.
pub(super) fn body(ask: &Ask<'_>) -> Result<Value, Problem> {
    let kind = ask.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let patches = ask.method == Method::PATCH && kind == "application/merge-patch+json";
    if kind != "application/json" && !patches {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "wrong-type", "Not in that form")
            .detail("the body must be JSON")
            .field("Content-Type")
            .allowed(vec!["application/json".to_owned()]));
    }
    serde_json::from_slice(ask.body).map_err(|error| bad("body", format!("the body is not JSON: {error}")))
}

fn no_query(ask: &Ask<'_>) -> Result<(), Problem> {
    if ask.query.is_empty() { Ok(()) } else { Err(bad("query", "this takes no query")) }
}

fn not_an_object() -> Problem {
    bad("body", "a row is a JSON object")
}

fn named(resource: &Resource, name: &str) -> Result<(usize, &'static ColumnSpec), Problem> {
    let at = resource.table.position(name);
    let found = at.and_then(|at| Some((at, resource.table.columns.get(at)?)));
    found.ok_or_else(|| unknown(resource.table, &shortened(name), []))
}

fn cell(column: &ColumnSpec, value: &Value) -> Result<Cell<'static>, Problem> {
    if value.is_null() && column.shape != Shape::Json && !column.nullable {
        return Err(bad(column.name, format!("{} cannot be null", column.name)));
    }
    column.shape.take(value).map_err(|wanted| bad(column.name, format!("{} is {wanted}", column.name)))
}

/// A whole row: what is left out has its default, or is nothing where it may be. A key that the path names
/// need not stand in the body.
pub(super) fn whole(resource: &Resource, value: &Value, key: &[Cell<'static>]) -> Result<Row, Problem> {
    let Value::Object(members) = value else { return Err(not_an_object()) };
    for name in members.keys() {
        named(resource, name)?;
    }
    let mut keys = key.iter();
    let mut row = Vec::with_capacity(resource.table.columns.len());
    for column in resource.table.columns {
        let of_path = if column.is_key { keys.next() } else { None };
        let given = members.get(column.name).filter(|_| !column.is_version);
        row.push(match (given, of_path) {
            (Some(value), Some(wanted)) => {
                let given = cell(column, value)?;
                same_key(column, Some(wanted), &given)?;
                given
            }
            (Some(value), None) => cell(column, value)?,
            (None, Some(wanted)) => wanted.clone(),
            (None, None) => left_out(column)?,
        });
    }
    checked(resource, &row)?;
    Ok(row)
}

fn left_out(column: &ColumnSpec) -> Result<Cell<'static>, Problem> {
    if column.is_version {
        return Ok(Cell::Integer(1));
    }
    let default = column.default_cell().or_else(|| column.nullable.then_some(Cell::Null));
    default.ok_or_else(|| bad(column.name, format!("{} is missing", column.name)))
}

fn same_key(column: &ColumnSpec, wanted: Option<&Cell<'_>>, given: &Cell<'_>) -> Result<(), Problem> {
    if wanted == Some(given) {
        return Ok(());
    }
    Err(bad(column.name, format!("{} is not that of the path: a key does not change", column.name)))
}

/// Whether the house could read this row again.
fn checked(resource: &Resource, row: &[Cell<'static>]) -> Result<(), Problem> {
    (resource.check)(row)
        .map_err(|error| bad(error.column, format!("{} must be {}", error.column, error.wanted)))
}

fn key_cells(resource: &Resource, row: &[Cell<'static>]) -> Row {
    let cells = resource.table.columns.iter().zip(row);
    cells.filter(|(column, _)| column.is_key).map(|(_, cell)| cell.clone()).collect()
}

fn but_the_key(resource: &Resource, row: Row) -> Vec<(usize, Cell<'static>)> {
    let is_key = |at: usize| resource.table.columns.get(at).is_none_or(|column| column.is_key);
    row.into_iter().enumerate().filter(|(at, _)| !is_key(*at)).collect()
}

// === what goes out ===

pub(super) fn done(outcome: Outcome, resource: &Resource) -> Result<(), Problem> {
    match outcome {
        Outcome::Done(_) => Ok(()),
        Outcome::Missing => Err(missing(resource)),
        Outcome::Stale => Err(tag::changed()),
    }
}

fn stored(
    resource: &Resource,
    key: &[Cell<'static>],
    success: StatusCode,
    ask: &Ask<'_>,
) -> Result<Response<Body>, Problem> {
    if prefers(ask, "return=minimal") {
        return Ok(status(StatusCode::NO_CONTENT));
    }
    let row = resource.row(key)?.ok_or_else(|| missing(resource))?;
    Ok(row_response(success, resource, &row))
}

fn all(resource: &Resource, rows: &[Row]) -> Vec<u8> {
    let shown = super::select::Shown::all(resource);
    let mut writing = super::format::Writing::new(super::format::Format::Json, resource.table, &shown);
    rows.iter().for_each(|row| writing.row(row.as_slice(), &[]));
    writing.finish()
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}

/// A part of a path.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b',' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
