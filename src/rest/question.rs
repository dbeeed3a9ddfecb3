//! What a query string asks of a list: which rows, in which order, from where on, and which of their fields.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::field::{bad, place};
use super::filter;
use super::select::Shown;
use super::{Api, Problem, Resource};
use crate::digest::{Digest, hex, unhex};
use crate::orm::{Cell, CellSource, Condition, Select, Sort, SqlType};

/// Rows of a page where the caller names no limit, and the most he may name.
pub(super) const PAGE: (u64, u64) = (1000, 10_000);
/// The most rows passed over.
const OFFSET: u64 = 1_000_000;
/// The most fields a list is ordered by.
const ORDERS: usize = 8;
/// The most values that are compared with; engines bind no more than 32 766.
const WEIGHT: usize = 30_000;
/// The most filters.
const FILTERS: usize = 50;
/// Names that are not those of fields.
pub(super) const RESERVED: [&str; 7] = ["select", "order", "limit", "offset", "cursor", "or", "and"];

/// What is asked of a list.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) shown: Shown,
    pub(super) select: Select,
    /// The rows of a page.
    pub(super) limit: u64,
    /// The page begins where another one ended.
    pub(super) goes_on: bool,
    /// Everything but the cursor and the offset, as it came: for the next page.
    pub(super) kept: String,
}

impl Question {
    /// From a query string.
    pub(super) fn parse(api: &Api, resource: &Resource, query: &str) -> Result<Self, Problem> {
        let mut asked = Asked::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, text) = (decoded(name)?, decoded(text)?);
            asked.take(api, resource, &name, &text)?;
            if !matches!(name.as_str(), "cursor" | "offset") {
                asked.kept.push(pair);
            }
        }
        let shown = match &asked.select {
            Some(text) => Shown::parse(api, resource, text)?,
            None => Shown::all(resource),
        };
        if asked.conditions.len() > FILTERS {
            return Err(bad("query", format!("at most {FILTERS} filters in one question")));
        }
        let condition = Condition::All(asked.conditions);
        if condition.weight() > WEIGHT {
            return Err(bad("query", format!("more than {WEIGHT} values are compared with: ask for fewer")));
        }
        let limit = asked.limit.unwrap_or(PAGE.0);
        let mut select =
            Select { condition, order: asked.order, limit: None, offset: asked.offset.unwrap_or(0) };
        select.complete_order(resource.table);
        if let Some(cursor) = &asked.cursor {
            let mark = read_cursor(resource, &select, cursor).ok_or_else(|| {
                bad("cursor", "this cursor leads nowhere: take it from the Link of the page before, with the same order")
            })?;
            select.after(&mark);
        }
        let (goes_on, kept) = (asked.cursor.is_some(), asked.kept.join("&"));
        Ok(Self { shown, select, limit, goes_on, kept })
    }

    /// The cursor of the page that begins after this row.
    pub(super) fn cursor_after(&self, resource: &Resource, row: &(impl CellSource + ?Sized)) -> String {
        let cells = self.select.mark(resource.table, row);
        let values = cells.iter().map(|cell| match cell {
            Cell::Null => Value::Null,
            Cell::Integer(number) => Value::from(*number),
            Cell::Real(number) => Value::from(*number),
            Cell::Text(text) => Value::from(format!("t{text}")),
            Cell::Blob(bytes) => Value::from(format!("b{}", hex(bytes))),
        });
        let all: Vec<Value> = [Value::from(order_mark(&self.select))].into_iter().chain(values).collect();
        URL_SAFE_NO_PAD.encode(Value::from(all).to_string())
    }
}

/// The parameters of a query.
#[derive(Default)]
struct Asked<'q> {
    select: Option<String>,
    order: Vec<Sort>,
    limit: Option<u64>,
    offset: Option<u64>,
    cursor: Option<String>,
    conditions: Vec<Condition>,
    kept: Vec<&'q str>,
}

impl Asked<'_> {
    fn take(&mut self, api: &Api, resource: &Resource, name: &str, text: &str) -> Result<(), Problem> {
        let once = |taken: bool| if taken { Err(bad(name, format!("{name} stands twice"))) } else { Ok(()) };
        match name {
            "select" => {
                once(self.select.is_some())?;
                self.select = Some(text.to_owned());
            }
            "order" => {
                once(!self.order.is_empty())?;
                self.order = order(resource, text)?;
            }
            "limit" => {
                once(self.limit.is_some())?;
                self.limit = Some(number(name, text, 1, PAGE.1)?);
            }
            "offset" => {
                once(self.offset.is_some())?;
                self.offset = Some(number(name, text, 0, OFFSET)?);
            }
            "cursor" => {
                once(self.cursor.is_some())?;
                self.cursor = Some(text.to_owned());
            }
            "or" | "and" | "not.or" | "not.and" => {
                let (bare, negated) = name.strip_prefix("not.").map_or((name, false), |bare| (bare, true));
                let group = filter::group(api, resource, bare, text)?;
                self.conditions.push(if negated { Condition::Not(Box::new(group)) } else { group });
            }
            _ => self.conditions.push(filter::parameter(api, resource, name, text)?),
        }
        Ok(())
    }
}

fn number(name: &str, text: &str, least: u64, most: u64) -> Result<u64, Problem> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| bad(name, format!("{name} is a number from {least} to {most}")))
}

/// `last_used.desc,size`.
fn order(resource: &Resource, text: &str) -> Result<Vec<Sort>, Problem> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > ORDERS {
        return Err(bad("order", format!("a list is ordered by at most {ORDERS} fields")));
    }
    let sort = |part: &&str| {
        let (names, descending) = match part.rsplit_once('.') {
            Some((names, "desc")) => (names, true),
            Some((names, "asc")) => (names, false),
            _ => (*part, false),
        };
        let mut names = names.split('.');
        let (place, _) = place(resource.table, names.next().unwrap_or_default(), names)?;
        Ok(Sort { place, descending })
    };
    parts.iter().map(sort).collect()
}

/// A mark that is another one for another order.
fn order_mark(select: &Select) -> String {
    let names = select
        .order
        .iter()
        .map(|sort| format!("{} {} {}", sort.place.column, sort.place.path.join("."), sort.descending));
    Digest::of(names.collect::<Vec<_>>().join(",").as_bytes()).hex().chars().take(8).collect()
}

/// The values where the page before ended; none if the cursor is not one of ours for this order.
fn read_cursor(resource: &Resource, select: &Select, cursor: &str) -> Option<Vec<Cell<'static>>> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let all: Vec<Value> = serde_json::from_slice(&bytes).ok()?;
    let (mark, values) = all.split_first()?;
    if mark.as_str() != Some(order_mark(select).as_str()) || values.len() != select.order.len() {
        return None;
    }
    let cells = values.iter().zip(&select.order).map(|(value, sort)| {
        let cell = cell_of(value)?;
        let column = resource.table.column(sort.place.column)?;
        let fits = match &cell {
            Cell::Null => true,
            _ if !sort.place.path.is_empty() => true,
            Cell::Integer(_) | Cell::Real(_) => matches!(column.sql_type, SqlType::Integer | SqlType::Real),
            Cell::Text(_) => column.sql_type == SqlType::Text,
            Cell::Blob(_) => column.sql_type == SqlType::Blob,
        };
        fits.then_some(cell)
    });
    cells.collect()
}

fn cell_of(value: &Value) -> Option<Cell<'static>> {
    match value {
        Value::Null => Some(Cell::Null),
        Value::Number(number) => {
            number.as_i64().map(Cell::Integer).or_else(|| number.as_f64().map(Cell::Real))
        }
        Value::String(text) => match text.strip_prefix('b') {
            Some(digits) => unhex(digits).ok().map(|bytes| Cell::Blob(bytes.into())),
            None => text.strip_prefix('t').map(|text| Cell::Text(text.to_owned().into())),
        },
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Percent signs decoded, `+` as a space.
pub(super) fn decoded(text: &str) -> Result<String, Problem> {
    decoded_path(&text.replace('+', " "))
}

/// Percent signs decoded.
pub(super) fn decoded_path(text: &str) -> Result<String, Problem> {
    let wrong = || bad("query", "this is not UTF-8 in percent encoding");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
        bytes.push(u8::try_from(high * 16 + low).map_err(|_ignored| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_ignored| wrong())
}
