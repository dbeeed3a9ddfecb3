//! The tree of a configuration file with its places: what stands where, and cutting out what does not fit.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::complaint::{Complaint, Place};

/// Cuts the innermost entry at a place out of the tree and tells its dotted key.
pub(super) fn cut(table: &mut DeTable<'_>, at: usize) -> Option<String> {
    let names: Vec<String> = table.keys().map(|key| key.get_ref().to_string()).collect();
    for name in &names {
        let Some(value) = table.get_mut(name.as_str()).map(Spanned::get_mut) else { continue };
        if let Some(inner) = tables_of(value).into_iter().find_map(|inner| cut(inner, at)) {
            return Some(format!("{name}.{inner}"));
        }
    }
    let here = |key: &Spanned<_>, value: &Spanned<_>| key.span().contains(&at) || value.span().contains(&at);
    let name =
        table.iter().find(|(key, value)| here(key, value)).map(|(key, _)| key.get_ref().to_string())?;
    table.remove(name.as_str());
    Some(name)
}

/// The table a value is, or the tables it lists.
fn tables_of<'a, 'i>(value: &'a mut DeValue<'i>) -> Vec<&'a mut DeTable<'i>> {
    let items: &mut [Spanned<DeValue<'i>>] = if let DeValue::Table(table) = value {
        return vec![table];
    } else if let DeValue::Array(items) = value {
        items
    } else {
        &mut []
    };
    let tables = items.iter_mut().map(Spanned::get_mut);
    tables.filter_map(|item| if let DeValue::Table(table) = item { Some(table) } else { None }).collect()
}

/// Tells every key with its place.
pub(super) fn note_places(table: &DeTable<'_>, above: &str, note: &mut impl FnMut(String, Range<usize>)) {
    for (key, value) in table {
        let name = format!("{above}{}", key.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            note_places(inner, &format!("{name}."), note);
            continue;
        }
        if let DeValue::Array(items) = value.get_ref() {
            for (at, item) in items.iter().enumerate() {
                if let DeValue::Table(inner) = item.get_ref() {
                    note_places(inner, &format!("{name}[{at}]."), note);
                }
            }
        }
        note(name, key.span());
    }
}

/// Line and column of a byte of the text.
pub(super) fn place(path: &Path, text: &str, at: usize) -> Place {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    Place::File { path: path.to_owned(), line: before.matches('\n').count() + 1, column }
}

/// The reader's own words where serde's are for programmers.
pub(super) fn explain(key: &str, message: &str) -> Complaint {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let unknown = quoted.next().unwrap_or_default();
        let near =
            quoted.min_by_key(|known| distance(unknown, known)).filter(|known| distance(unknown, known) <= 3);
        let complaint = Complaint::about(key, "there is no such key");
        return match near {
            Some(near) => complaint.hint(format!("did you mean `{near}`?")),
            None => complaint.hint("`larder config default` shows all keys"),
        };
    }
    let complaint = Complaint::about(key, message);
    if message.contains("expected a string") {
        complaint.hint("write the value in quotes")
    } else {
        complaint
    }
}

/// How many letters differ (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (b, above) in other.chars().zip(row.iter().skip(1)) {
            left = (corner + usize::from(a != b)).min(left + 1).min(above + 1);
            corner = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
