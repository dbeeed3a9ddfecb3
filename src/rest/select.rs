//! Which fields of which rows are shown: `select=digest,size,url:shown_url,resources(shown_url,blobs(size))`.
//!
//! A name with brackets is another resource that this one points to, or that points to it: one row or none
//! where the reference leads to a key, else a list.

use super::field::{bad, place, shortened, unknown};
use super::filter::split;
use super::{Api, Problem, Resource};
use crate::orm::{ColumnSpec, Place, Shape};

/// How deep resources may lie in each other.
const DEPTH: usize = 3;
/// The most fields of all of them together.
const FIELDS: usize = 100;

/// What is shown of the rows of one resource.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) fields: Vec<Field>,
    pub(super) embedded: Vec<Embedded>,
}

/// One field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// What it is called in the answer.
    pub(super) name: String,
    pub(super) place: Place,
    /// Where the column stands in a row.
    pub(super) position: usize,
    pub(super) shape: Shape,
}

/// Rows of another resource.
#[derive(Debug, Clone)]
pub(super) struct Embedded {
    pub(super) name: String,
    /// Its place in the API.
    pub(super) resource: usize,
    /// The column here.
    pub(super) ours: usize,
    /// The column there.
    pub(super) theirs: &'static ColumnSpec,
    /// One row or none, not a list.
    pub(super) single: bool,
    pub(super) shown: Shown,
}

impl Shown {
    /// Every field of a resource.
    pub(super) fn all(resource: &Resource) -> Self {
        let columns = resource.table.columns.iter().enumerate();
        let fields = columns.map(|(position, column)| Field {
            name: column.name.to_owned(),
            place: Place::column(column.name),
            position,
            shape: column.shape,
        });
        Self { fields: fields.collect(), embedded: Vec::new() }
    }

    /// What `select` names.
    pub(super) fn parse(api: &Api, resource: &Resource, text: &str) -> Result<Self, Problem> {
        let shown = parse(api, resource, text, DEPTH)?;
        if shown.weight() > FIELDS {
            return Err(bad("select", format!("at most {FIELDS} fields can be selected")));
        }
        Ok(shown)
    }

    fn weight(&self) -> usize {
        self.fields.len() + self.embedded.iter().map(|inner| inner.shown.weight()).sum::<usize>()
    }
}

fn parse(api: &Api, resource: &Resource, text: &str, depth: usize) -> Result<Shown, Problem> {
    let mut shown = Shown { fields: Vec::new(), embedded: Vec::new() };
    for part in split("select", text)? {
        let (alias, name) = match part.split_once(':') {
            Some((alias, name)) if !alias.contains('(') => (Some(named(alias)?), name),
            _ => (None, part),
        };
        if name == "*" {
            shown.fields.extend(Shown::all(resource).fields);
        } else if let Some((other, inner)) = name.split_once('(') {
            let inner = inner.strip_suffix(')').unwrap_or(inner);
            let Some(depth) = depth.checked_sub(1) else {
                return Err(bad("select", "resources lie too deep in each other"));
            };
            shown.embedded.push(embed(api, resource, alias, other, inner, depth)?);
        } else {
            shown.fields.push(field(api, resource, alias, name)?);
        }
    }
    if shown.fields.is_empty() && shown.embedded.is_empty() {
        return Err(bad("select", "no field is selected"));
    }
    Ok(shown)
}

/// A name for the answer.
fn named(alias: &str) -> Result<String, Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fine = (1..=64).contains(&alias.len()) && alias.chars().all(plain);
    fine.then(|| alias.to_owned())
        .ok_or_else(|| bad("select", format!("`{}` is no name for a field", shortened(alias))))
}

fn field(api: &Api, resource: &Resource, alias: Option<String>, name: &str) -> Result<Field, Problem> {
    let mut names = name.split('.');
    let first = names.next().unwrap_or_default();
    if resource.table.column(first).is_none() {
        let others: Vec<String> = api.neighbours(resource).map(|other| format!("{other}(…)")).collect();
        return Err(unknown(resource.table, first, others.iter().map(String::as_str)));
    }
    let (place, shape) = place(resource.table, first, names)?;
    let position = resource.table.position(place.column).unwrap_or(usize::MAX);
    Ok(Field { name: alias.unwrap_or_else(|| name.to_owned()), place, position, shape })
}

fn embed(
    api: &Api,
    resource: &Resource,
    alias: Option<String>,
    other: &str,
    inner: &str,
    depth: usize,
) -> Result<Embedded, Problem> {
    let missing = || {
        let allowed = api.neighbours(resource).map(str::to_owned).collect();
        bad(&shortened(other), format!("{} leads to no resource of that name", resource.table.name))
            .allowed(allowed)
    };
    let (index, target) = api.find(other).ok_or_else(missing)?;
    let (ours, theirs) = link(resource, target).ok_or_else(missing)?;
    let mut keys = target.table.key_columns();
    let is_key = theirs.is_key && keys.next() == Some(theirs) && keys.next().is_none();
    Ok(Embedded {
        name: alias.unwrap_or_else(|| other.to_owned()),
        resource: index,
        ours,
        theirs,
        single: is_key || theirs.is_unique,
        shown: parse(api, target, if inner.is_empty() { "*" } else { inner }, depth)?,
    })
}

/// The column here and the column there that lead from one to the other.
pub(super) fn link(from: &Resource, to: &Resource) -> Option<(usize, &'static ColumnSpec)> {
    let points = |a: &Resource, b: &Resource| {
        a.table.columns.iter().enumerate().find_map(|(at, column)| {
            let (table, target) = column.target()?;
            if table == b.table.name { Some((at, b.table.position(target)?)) } else { None }
        })
    };
    if let Some((ours, theirs)) = points(from, to) {
        return Some((ours, to.table.columns.get(theirs)?));
    }
    let (theirs, ours) = points(to, from)?;
    Some((ours, to.table.columns.get(theirs)?))
}
