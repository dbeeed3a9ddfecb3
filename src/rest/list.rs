//! A list: one page of rows with what they lead to, where the next page is, and how many there are.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LINK, VARY};
use http::{Response, StatusCode};

use super::field::bad;
use super::format::{Format, Writing, one, prefix};
use super::question::Question;
use super::select::{Embedded, Shown};
use super::{Api, Ask, Problem, Resource};
use crate::http::{Body, full};
use crate::orm::{Cell, CellSource, Condition, Place, Select, Sort};

/// The most rows of one embedded resource in an answer.
const EMBEDDED: usize = 50_000;
/// Keys looked up in one question.
const CHUNK: usize = 500;

type Row = Vec<Cell<'static>>;

/// The members that a row has besides its fields: each the name with its colon, and its JSON.
pub(super) type Further = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) fn answer(api: &Api, resource: &Resource, ask: &Ask<'_>) -> Result<Response<Body>, Problem> {
    let question = Question::parse(api, resource, ask.query)?;
    let format = Format::wanted(ask.headers)?;
    if format == Format::Csv && !question.shown.embedded.is_empty() {
        return Err(bad("select", "comma-separated values have no place for other resources"));
    }
    let mut page = page(api, resource, &question, format)?;
    // behind a cursor only what is left could be counted: the first page has told the whole number
    let exact = prefers(ask, "count=exact") && !question.goes_on;
    let total =
        if exact { Some(resource.rows.count(resource.table, &question.select.condition)?) } else { None };
    let mut response = Response::new(full(std::mem::take(&mut page.bytes)));
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(VARY, HeaderValue::from_static("Accept, Prefer"));
    let range = range(&question, page.rows, total);
    for (name, value) in
        [(HeaderName::from_static("content-range"), Some(range)), (LINK, link(ask, &question, &page))]
    {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            fields.insert(name, value);
        }
    }
    if exact {
        let applied = HeaderName::from_static("preference-applied");
        fields.insert(applied, HeaderValue::from_static("count=exact"));
    }
    *response.status_mut() = StatusCode::OK;
    Ok(response)
}

struct PageOf {
    bytes: Vec<u8>,
    rows: u64,
    /// The cursor of the next page.
    next: Option<String>,
}

fn page(api: &Api, resource: &Resource, question: &Question, format: Format) -> Result<PageOf, Problem> {
    let mut select = question.select.clone();
    select.limit = Some(question.limit.saturating_add(1));
    let plain = question.shown.embedded.is_empty();
    let mut writing = Writing::new(format, resource.table, &question.shown);
    let (mut held, mut seen, mut next, mut last) = (Vec::new(), 0_u64, None, None);
    resource.rows.read(resource.table, &select, &mut |row| {
        if seen == question.limit {
            next = last.take();
            return ControlFlow::Break(());
        }
        seen += 1;
        if seen == question.limit {
            last = Some(question.cursor_after(resource, row));
        }
        if plain {
            writing.row(row, &[]);
        } else {
            held.push(cells(resource, row));
        }
        ControlFlow::Continue(())
    })?;
    if !plain {
        let further = embedded(api, &question.shown, &held)?;
        for (row, further) in held.iter().zip(&further) {
            writing.row(row.as_slice(), further);
        }
    }
    let rows = writing.rows();
    Ok(PageOf { bytes: writing.finish(), rows, next })
}

fn cells(resource: &Resource, row: &dyn CellSource) -> Row {
    (0..resource.table.columns.len()).map(|at| row.cell(at).into_owned()).collect()
}

/// What each of the rows leads to, in the order of the rows.
pub(super) fn embedded(api: &Api, shown: &Shown, rows: &[Row]) -> Result<Vec<Further>, Problem> {
    let mut all: Vec<Further> = vec![Vec::new(); rows.len()];
    for inner in &shown.embedded {
        let Some(target) = api.at(inner.resource) else { continue };
        let found = related(api, target, inner, rows)?;
        let name = prefix(&inner.name);
        for (row, further) in rows.iter().zip(&mut all) {
            let values = row.get(inner.ours).and_then(|cell| found.get(&text_of(cell)));
            further.push((name.clone(), json(inner, values.map_or(&[], Vec::as_slice))));
        }
    }
    Ok(all)
}

fn json(inner: &Embedded, values: &[Vec<u8>]) -> Vec<u8> {
    if inner.single {
        return values.first().cloned().unwrap_or_else(|| b"null".to_vec());
    }
    [b"[".as_slice(), &values.join(b",".as_slice()), b"]"].concat()
}

/// A key that tells cells apart.
fn text_of(cell: &Cell<'_>) -> String {
    format!("{cell:?}")
}

/// The rows of another resource as JSON, by the cell that leads to them.
fn related(
    api: &Api,
    target: &Resource,
    inner: &Embedded,
    rows: &[Row],
) -> Result<BTreeMap<String, Vec<Vec<u8>>>, Problem> {
    let keys: BTreeMap<String, Cell<'static>> = rows
        .iter()
        .filter_map(|row| row.get(inner.ours))
        .filter(|cell| **cell != Cell::Null)
        .map(|cell| (text_of(cell), cell.clone()))
        .collect();
    let keys: Vec<Cell<'static>> = keys.into_values().collect();
    let at = target.table.position(inner.theirs.name).unwrap_or(usize::MAX);
    let mut found: Vec<Row> = Vec::new();
    for chunk in keys.chunks(CHUNK) {
        let condition = Condition::AnyOf(Place::column(inner.theirs.name), chunk.to_vec());
        let order = target.table.key_columns().map(|column| Sort::ascending(column.name)).collect();
        let most = u64::try_from(EMBEDDED - found.len()).unwrap_or(0);
        let select = Select { condition, order, limit: Some(most), offset: 0 };
        target.rows.read(target.table, &select, &mut |row| {
            found.push(cells(target, row));
            ControlFlow::Continue(())
        })?;
        if found.len() >= EMBEDDED {
            return Err(bad("limit", "the rows lead to too many others: ask for fewer at once"));
        }
    }
    let further = embedded(api, &inner.shown, &found)?;
    let mut by_key: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (row, further) in found.iter().zip(&further) {
        let json = one(target.table, &inner.shown, row.as_slice(), further);
        by_key.entry(row.get(at).map(text_of).unwrap_or_default()).or_default().push(json);
    }
    Ok(by_key)
}

/// Whether a preference stands in `Prefer` (RFC 7240).
pub(super) fn prefers(ask: &Ask<'_>, preference: &str) -> bool {
    let all = ask.headers.get_all("prefer").iter().filter_map(|field| field.to_str().ok());
    all.flat_map(|field| field.split([',', ';'])).any(|one| one.trim().eq_ignore_ascii_case(preference))
}

/// `0-99/1234`; where a page goes on from a cursor nobody knows its first number.
fn range(question: &Question, rows: u64, total: Option<u64>) -> String {
    let total = total.map_or("*".to_owned(), |total| total.to_string());
    if question.goes_on || rows == 0 {
        return format!("*/{total}");
    }
    let first = question.select.offset;
    format!("{first}-{}/{total}", first.saturating_add(rows).saturating_sub(1))
}

fn link(ask: &Ask<'_>, question: &Question, page: &PageOf) -> Option<String> {
    let cursor = page.next.as_ref()?;
    let kept = if question.kept.is_empty() { String::new() } else { format!("{}&", question.kept) };
    // what came in a request line has no spaces and no angle brackets that would end the target early
    let path = ask.path.replace(['<', '>'], "");
    let kept = kept.replace('<', "%3C").replace('>', "%3E");
    Some(format!("<{path}?{kept}cursor={cursor}>; rel=\"next\""))
}
