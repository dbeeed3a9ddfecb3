//! Filters in a query, in the manner of PostgREST: `size=gt.1048576`, `media_type=like.image/*`,
//! `labels.team=eq.ops`, `hits=not.in.(0,1)`, `or=(size.lt.10,and(hits.eq.0,first_hand.is.true))`.
//!
//! A filter on another resource along a reference, `resources.shown_url=like.*iso`, keeps the rows that lead to
//! a row that meets it. A filter becomes a [`Condition`]; nothing of it becomes text of a statement. Depth and
//! number of comparisons are bounded.

use std::ops::ControlFlow;

use super::field::{bad, place, shortened, unknown, value};
use super::question::RESERVED;
use super::select::link;
use super::{Api, Problem, Resource};
use crate::orm::{Cell, Condition, Operator, Pattern, Place, Select, Shape};

/// How deep groups may lie in each other.
const DEPTH: usize = 4;
/// The most conditions in a group.
const GROUP: usize = 50;
/// The most values in a list.
const LIST: usize = 500;
/// The most rows that a filter on another resource may find.
const JOINED: usize = 20_000;
/// The longest pattern, and the most stars in it.
const PATTERN: (usize, usize) = (256, 6);

/// The operators, for who used another.
pub(super) const OPERATORS: [&str; 11] =
    ["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "in", "is", "not"];

/// `name=operator.value`.
pub(super) fn parameter(
    api: &Api,
    resource: &Resource,
    name: &str,
    text: &str,
) -> Result<Condition, Problem> {
    let names: Vec<&str> = name.split('.').collect();
    named(api, resource, &names, text)
}

/// `or=(…)` or `and=(…)`.
pub(super) fn group(api: &Api, resource: &Resource, name: &str, text: &str) -> Result<Condition, Problem> {
    grouped(api, resource, name, text, DEPTH)
}

/// A condition on a field, a member of one, what the resource knows by another name, or another resource.
fn named(api: &Api, resource: &Resource, names: &[&str], text: &str) -> Result<Condition, Problem> {
    let Some((first, further)) = names.split_first() else {
        return Err(bad("query", "a filter has a name"));
    };
    if resource.table.column(first).is_some() {
        let (place, shape) = place(resource.table, first, further.iter().copied())?;
        return operation(first, &place, shape, text);
    }
    if let Some(lookup) = resource.lookups.iter().find(|lookup| lookup.name == *first) {
        let text = text.strip_prefix("eq.").ok_or_else(|| {
            bad(first, format!("{first} is only compared by eq")).allowed(vec!["eq".to_owned()])
        })?;
        return Ok((lookup.condition)(text));
    }
    match api.find(first).and_then(|(_, other)| Some((other, link(resource, other)?))) {
        Some((other, (ours, theirs))) if !further.is_empty() => {
            let inner = named(api, other, &within(other, further), text)?;
            let ours = resource.table.columns.get(ours).map_or("", |column| column.name);
            let values = values(other, theirs.name, inner)?;
            Ok(Condition::AnyOf(Place::column(ours), values))
        }
        _ => {
            let lookups = resource.lookups.iter().map(|lookup| lookup.name);
            let others: Vec<String> = api.neighbours(resource).map(|other| format!("{other}.…")).collect();
            let further = lookups.chain(others.iter().map(String::as_str)).chain(RESERVED);
            Err(unknown(resource.table, &shortened(first), further))
        }
    }
}

/// The names as they are meant within another resource: where it has no field of the first one but a single
/// field of any members, a member of that is meant.
fn within<'n>(resource: &Resource, names: &[&'n str]) -> Vec<&'n str> {
    let mut json = resource.table.columns.iter().filter(|column| column.shape == Shape::Json);
    let known = names.first().is_some_and(|first| resource.table.column(first).is_some());
    match (json.next(), json.next()) {
        (Some(only), None) if !known => [only.name].into_iter().chain(names.iter().copied()).collect(),
        _ => names.to_vec(),
    }
}

/// The values of a column in the rows that meet a condition.
fn values(
    resource: &Resource,
    column: &'static str,
    condition: Condition,
) -> Result<Vec<Cell<'static>>, Problem> {
    let at = resource.table.position(column).unwrap_or(usize::MAX);
    let select = Select { condition, ..Select::everything() };
    let mut values = Vec::new();
    resource.rows.read(resource.table, &select, &mut |row| {
        values.push(row.cell(at).into_owned());
        if values.len() > JOINED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if values.len() > JOINED {
        let many = format!("more than {JOINED} rows of {} meet this: ask for fewer", resource.table.name);
        return Err(bad(resource.table.name, many));
    }
    values.sort_by(Cell::order);
    values.dedup();
    Ok(values)
}

fn grouped(
    api: &Api,
    resource: &Resource,
    name: &str,
    text: &str,
    depth: usize,
) -> Result<Condition, Problem> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let inner = inner.ok_or_else(|| bad(name, format!("{name} wants (condition,condition,…)")))?;
    let Some(depth) = depth.checked_sub(1) else {
        return Err(bad(name, "groups lie too deep in each other"));
    };
    let parts = split(name, inner)?;
    if parts.is_empty() || parts.len() > GROUP {
        return Err(bad(name, format!("a group has from 1 to {GROUP} conditions")));
    }
    let conditions: Vec<Condition> =
        parts.into_iter().map(|part| element(api, resource, part, depth)).collect::<Result<_, _>>()?;
    Ok(if name.ends_with("or") { Condition::Any(conditions) } else { Condition::All(conditions) })
}

/// One condition of a group: `column.operator.value`, `column.member.operator.value`, or a group.
fn element(api: &Api, resource: &Resource, text: &str, depth: usize) -> Result<Condition, Problem> {
    for (start, negated) in [("and(", false), ("or(", false), ("not.and(", true), ("not.or(", true)] {
        if text.starts_with(start) {
            let name = start.trim_end_matches('(');
            let rest = text.strip_prefix(name).unwrap_or_default();
            let inner = grouped(api, resource, name, rest, depth)?;
            return Ok(if negated { Condition::Not(Box::new(inner)) } else { inner });
        }
    }
    let (name, mut rest) = text
        .split_once('.')
        .ok_or_else(|| bad(&shortened(text), "a condition in a group is field.operator.value"))?;
    let mut names = vec![name];
    while let Some((member, after)) = rest.split_once('.')
        && !OPERATORS.contains(&member)
    {
        names.push(member);
        rest = after;
    }
    named(api, resource, &names, rest)
}

/// `operator.value`.
fn operation(name: &str, place: &Place, shape: Shape, text: &str) -> Result<Condition, Problem> {
    let (operator, text) = text.split_once('.').unwrap_or((text, ""));
    let compare = |operator| compared(name, place, shape, operator, text);
    match operator {
        "not" => Ok(Condition::Not(Box::new(operation(name, place, shape, text)?))),
        "eq" => compare(Operator::Equal),
        "neq" => compare(Operator::Other),
        "gt" => compare(Operator::Above),
        "gte" => compare(Operator::AtLeast),
        "lt" => compare(Operator::Below),
        "lte" => compare(Operator::AtMost),
        "like" => like(name, place, shape, text, false),
        "ilike" => like(name, place, shape, text, true),
        "in" => any_of(name, place, shape, text),
        "is" => is(name, place, shape, text),
        _ => {
            let wrong = format!("`{}` is no operator: write {name}=operator.value", shortened(operator));
            Err(bad(name, wrong).allowed(OPERATORS.map(str::to_owned).to_vec()))
        }
    }
}

fn compared(
    name: &str,
    place: &Place,
    shape: Shape,
    operator: Operator,
    text: &str,
) -> Result<Condition, Problem> {
    let by_size = !matches!(operator, Operator::Equal | Operator::Other);
    // a member is compared by size with a number, and as text with everything else
    let number = (by_size && !place.path.is_empty())
        .then(|| text.parse().map(Cell::Integer).or_else(|_| text.parse().map(Cell::Real)).ok())
        .flatten();
    let value = number.map_or_else(|| value(name, shape, unquoted(text)), Ok)?;
    Ok(Condition::Compare(place.clone(), operator, value))
}

fn like(name: &str, place: &Place, shape: Shape, text: &str, folds: bool) -> Result<Condition, Problem> {
    if !matches!(shape, Shape::Text | Shape::Address | Shape::Json) {
        return Err(bad(name, format!("{name} is no text: like and ilike are for texts")));
    }
    let pattern = Pattern::new(unquoted(text), folds);
    let (longest, stars) = PATTERN;
    if text.len() > longest || pattern.stars() > stars {
        return Err(bad(name, format!("a pattern has at most {longest} bytes and {stars} stars")));
    }
    Ok(Condition::Like(place.clone(), pattern))
}

fn any_of(name: &str, place: &Place, shape: Shape, text: &str) -> Result<Condition, Problem> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let inner = inner.ok_or_else(|| bad(name, format!("write {name}=in.(value,value,…)")))?;
    let parts = split(name, inner)?;
    if parts.len() > LIST {
        return Err(bad(name, format!("a list has at most {LIST} values")));
    }
    let values = parts.into_iter().map(|part| value(name, shape, unquoted(part)));
    Ok(Condition::AnyOf(place.clone(), values.collect::<Result<_, _>>()?))
}

fn is(name: &str, place: &Place, shape: Shape, text: &str) -> Result<Condition, Problem> {
    let null = || Condition::IsNull(place.clone());
    match text {
        "null" => Ok(null()),
        "not_null" => Ok(Condition::Not(Box::new(null()))),
        "true" | "false" if shape == Shape::Boolean => {
            Ok(Condition::Compare(place.clone(), Operator::Equal, value(name, shape, text)?))
        }
        _ => {
            let mut allowed = vec!["null".to_owned(), "not_null".to_owned()];
            if shape == Shape::Boolean {
                allowed.extend(["true".to_owned(), "false".to_owned()]);
            }
            Err(bad(name, format!("{name} is not compared with `{}` by is", shortened(text)))
                .allowed(allowed))
        }
    }
}

/// The parts between commas, those in quotes and brackets apart.
pub(super) fn split<'t>(name: &str, text: &'t str) -> Result<Vec<&'t str>, Problem> {
    let (mut parts, mut start, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'(' if !quoted => depth += 1,
            b')' if !quoted => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| bad(name, "a bracket is closed that was not opened"))?;
            }
            b',' if !quoted && depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    if quoted || depth > 0 {
        return Err(bad(name, "a bracket or a quote is not closed"));
    }
    if !text.is_empty() {
        parts.extend(text.get(start..));
    }
    Ok(parts)
}

/// A value without the quotes that keep its commas together.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}
