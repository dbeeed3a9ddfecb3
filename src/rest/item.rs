//! One row by its key.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue};
use http::{Response, StatusCode};

use super::field::{bad, key as key_of};
use super::format::one;
use super::question::decoded;
use super::select::Shown;
use super::tag::{self, Seen};
use super::{Api, Ask, Problem, Resource, list};
use crate::http::{Body, empty, full};
use crate::orm::Cell;

pub(super) fn answer(
    api: &Api,
    resource: &Resource,
    key: &str,
    ask: &Ask<'_>,
) -> Result<Response<Body>, Problem> {
    let shown = shown(api, resource, ask.query)?;
    let row = found(resource, key)?;
    let tag = tag::of_row(resource, &row);
    if Seen::if_none_match(ask.headers).has(&tag) {
        let mut response = Response::new(empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        with_tag(&mut response, &tag);
        return Ok(response);
    }
    let rows = [row];
    let further = list::embedded(api, &shown, &rows)?.pop().unwrap_or_default();
    let [row] = &rows;
    let mut response = json(StatusCode::OK, one(resource.table, &shown, row.as_slice(), &further));
    with_tag(&mut response, &tag);
    Ok(response)
}

/// The row of a key, or the problem that there is none.
pub(super) fn found(resource: &Resource, key: &str) -> Result<Vec<Cell<'static>>, Problem> {
    resource.row(&key_of(resource.table, key)?)?.ok_or_else(|| missing(resource))
}

pub(super) fn missing(resource: &Resource) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing")
        .detail(format!("{} has no row of that key", resource.table.name))
}

/// A row as it is stored, with its tag.
pub(super) fn row_response(status: StatusCode, resource: &Resource, row: &[Cell<'static>]) -> Response<Body> {
    let mut response = json(status, one(resource.table, &Shown::all(resource), row, &[]));
    with_tag(&mut response, &tag::of_row(resource, row));
    response
}

pub(super) fn json(status: StatusCode, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(full(bytes));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn with_tag(response: &mut Response<Body>, tag: &str) {
    if let Ok(value) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(ETAG, value);
    }
}

/// Of one row only its fields can be chosen.
fn shown(api: &Api, resource: &Resource, query: &str) -> Result<Shown, Problem> {
    let mut shown = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name)?;
        if name != "select" || shown.is_some() {
            return Err(bad(&name, "one row takes select, once").allowed(vec!["select".to_owned()]));
        }
        shown = Some(Shown::parse(api, resource, &decoded(text)?)?);
    }
    Ok(shown.unwrap_or_else(|| Shown::all(resource)))
}
