//! Many changes of many resources in one transaction: all of them are done, or none.

use std::sync::Arc;

use http::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Rows, Writes};
use super::field::{bad, key as key_of, shortened};
use super::item::json as answer;
use super::write::{body, whole};
use super::{Api, Ask, Problem, Resource};
use crate::http::Body;
use crate::orm::{Action, Cell, DbError, Operation, Outcome, Shape};

/// The most operations of a batch.
const OPERATIONS: usize = 1000;

/// One change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    /// `POST` adds, `PUT` adds or replaces, `DELETE` deletes.
    method: String,
    /// The resource.
    resource: String,
    /// The key; for `PUT` and `DELETE`.
    #[serde(default)]
    key: Option<String>,
    /// The row; for `POST` and `PUT`.
    #[serde(default)]
    row: Option<Value>,
    /// Only if the row has this version still; for `PUT` and `DELETE`.
    #[serde(default)]
    version: Option<serde_json::Number>,
}

impl Api {
    /// Answers a batch. Blocks.
    pub(super) fn batch(&self, ask: &Ask<'_>) -> Response<Body> {
        if ask.method != Method::POST {
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Not by this method");
            return super::api::allowing(problem, "POST");
        }
        self.do_batch(ask).unwrap_or_else(Problem::into_response)
    }

    fn do_batch(&self, ask: &Ask<'_>) -> Result<Response<Body>, Problem> {
        let Value::Array(items) = body(ask)? else {
            return Err(bad("body", "a batch is a list of operations"));
        };
        if items.len() > OPERATIONS {
            return Err(bad("body", format!("a batch has at most {OPERATIONS} operations")));
        }
        let mut engine: Option<Rows> = None;
        let mut batch = Vec::with_capacity(items.len());
        for (position, item) in items.into_iter().enumerate() {
            let one = serde_json::from_value(item).map_err(|error| bad("body", error.to_string()));
            let (resource, operation) =
                one.and_then(|one| self.operation(one)).map_err(|p| p.at(position))?;
            let known = engine.get_or_insert_with(|| Arc::clone(&resource.rows));
            if !Arc::ptr_eq(known, &resource.rows) {
                let apart = "this resource is kept in another database: put it into a batch of its own";
                return Err(bad("resource", apart).at(position));
            }
            batch.push(operation);
        }
        let outcomes = engine.map_or(Ok(Vec::new()), |engine| engine.apply(&batch)).map_err(undone)?;
        let results: Vec<Value> = outcomes.into_iter().zip(&batch).map(|(o, op)| result(o, op)).collect();
        Ok(answer(StatusCode::OK, json!({ "results": results }).to_string().into_bytes()))
    }

    fn operation(&self, one: One) -> Result<(&Resource, Operation<'static>), Problem> {
        let writable = |resource: &&Resource| matches!(resource.writes, Writes::Rows);
        let found = self.find(&one.resource).map(|(_, resource)| resource).filter(writable);
        let resource = found.ok_or_else(|| {
            let names = self.resources().iter().filter(writable).map(|r| r.name().to_owned()).collect();
            bad("resource", format!("`{}` cannot be written", shortened(&one.resource))).allowed(names)
        })?;
        let key = one.key.as_deref().map(|key| key_of(resource.table, key)).transpose()?;
        let version = one.version.as_ref().map(|number| {
            let whole = Shape::Unsigned.take(&Value::Number(number.clone()));
            match whole {
                Ok(Cell::Integer(version)) => Ok(version.cast_unsigned()),
                _ => Err(bad("version", "version is a whole number that is not negative")),
            }
        });
        let version = version.transpose()?;
        let action = match (one.method.as_str(), key, one.row) {
            ("POST", None, Some(row)) if version.is_none() => Action::Add(whole(resource, &row, &[])?),
            ("PUT", Some(key), Some(row)) => {
                let row = whole(resource, &row, &key)?;
                if version.is_none() {
                    Action::Upsert(row)
                } else {
                    let columns = resource.table.columns.iter().zip(row).enumerate();
                    let changes = columns.filter(|(_, (column, _))| !column.is_key);
                    let changes = changes.map(|(at, (_, cell))| (at, cell)).collect();
                    Action::Update { key, changes, seen: version }
                }
            }
            ("DELETE", Some(key), None) => Action::Delete { key, seen: version },
            _ => {
                let wanted = "write {method: POST, resource, row}, {method: PUT, resource, key, row} or {method: DELETE, resource, key}";
                return Err(bad("method", wanted));
            }
        };
        Ok((resource, Operation { table: resource.table, action }))
    }
}

fn result(outcome: Outcome, operation: &Operation<'_>) -> Value {
    let version = if let Outcome::Done(version) = outcome { version } else { None };
    let status = match operation.action {
        Action::Add(_) => 201,
        Action::Upsert(_) | Action::Update { .. } => 200,
        Action::Delete { .. } => 204,
    };
    json!({"status": status, "version": version})
}

/// The problem of one operation, which undid all.
fn undone(error: DbError) -> Problem {
    if let DbError::Batch { position, source } = error {
        return Problem::from(*source).at(position).hint("none of the batch was done");
    }
    error.into()
}
