//! In which form rows are given: a JSON array, JSON values line by line, or comma-separated values.

use http::StatusCode;
use http::header::{ACCEPT, HeaderMap};

use super::Problem;
use super::select::{Field, Shown};
use crate::orm::{Cell, CellSource, Shape, TableSpec};

/// A form of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Lines,
    Csv,
}

impl Format {
    const ALL: [Self; 3] = [Self::Json, Self::Lines, Self::Csv];

    /// Its media type.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Lines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }

    const fn bare_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Json | Self::Lines => self.media_type(),
        }
    }

    /// The best one of those a caller takes (RFC 9110 section 12.5.1).
    pub(super) fn wanted(request: &HeaderMap) -> Result<Self, Problem> {
        let mut accepted = request.get_all(ACCEPT).iter().filter_map(|field| field.to_str().ok()).peekable();
        if accepted.peek().is_none() {
            return Ok(Self::Json);
        }
        let ranges: Vec<(String, f32)> = accepted.flat_map(|field| field.split(',')).map(range).collect();
        let quality = |format: Self| {
            let named = format.bare_type();
            let family = named.split('/').next().unwrap_or_default();
            let of = |range: &str| ranges.iter().find(|(name, _)| name == range).map(|(_, q)| *q);
            of(named).or_else(|| of(&format!("{family}/*"))).or_else(|| of("*/*")).unwrap_or(0.0)
        };
        let best = Self::ALL.into_iter().rev().max_by(|a, b| quality(*a).total_cmp(&quality(*b)));
        best.filter(|format| quality(*format) > 0.0).ok_or_else(|| {
            Problem::new(StatusCode::NOT_ACCEPTABLE, "not-acceptable", "Not in that form")
                .detail("rows are given in other forms than those accepted")
                .field("Accept")
                .allowed(Self::ALL.map(|format| format.bare_type().to_owned()).to_vec())
        })
    }
}

fn range(text: &str) -> (String, f32) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
    (name, quality)
}

/// Rows as they are written down one after the other.
#[derive(Debug)]
pub(super) struct Writing<'s> {
    format: Format,
    table: &'static TableSpec,
    fields: Vec<(Vec<u8>, &'s Field)>,
    pub(super) bytes: Vec<u8>,
    rows: u64,
}

impl<'s> Writing<'s> {
    pub(super) fn new(format: Format, table: &'static TableSpec, shown: &'s Shown) -> Self {
        let fields = shown.fields.iter().map(|field| (prefix(&field.name), field)).collect();
        let mut bytes = Vec::new();
        match format {
            Format::Json => bytes.push(b'['),
            Format::Lines => {}
            Format::Csv => {
                let names: Vec<String> = shown.fields.iter().map(|field| quoted(&field.name)).collect();
                bytes.extend_from_slice(names.join(",").as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
        }
        Self { format, table, fields, bytes, rows: 0 }
    }

    /// One row, and the members that come after its fields.
    pub(super) fn row(&mut self, row: &(impl CellSource + ?Sized), further: &[(Vec<u8>, Vec<u8>)]) {
        if self.rows > 0 && self.format == Format::Json {
            self.bytes.push(b',');
        }
        self.rows += 1;
        if self.format == Format::Csv {
            return self.csv(row);
        }
        object(self.table, &self.fields, row, further, &mut self.bytes);
        if self.format == Format::Lines {
            self.bytes.push(b'\n');
        }
    }

    fn csv(&mut self, row: &(impl CellSource + ?Sized)) {
        for (at, (_, field)) in self.fields.iter().enumerate() {
            if at > 0 {
                self.bytes.push(b',');
            }
            let cell = value(self.table, field, row);
            let shape = field_shape(field, &cell);
            if matches!(cell, Cell::Integer(_)) {
                // no sign of a spreadsheet's is in a number or a time
                shape.write_text(&cell, &mut self.bytes);
            } else {
                self.bytes.extend_from_slice(quoted(&shape.text(&cell)).as_bytes());
            }
        }
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.format == Format::Json {
            self.bytes.push(b']');
        }
        self.bytes
    }
}

/// One row as a JSON object.
pub(super) fn one(
    table: &TableSpec,
    shown: &Shown,
    row: &(impl CellSource + ?Sized),
    further: &[(Vec<u8>, Vec<u8>)],
) -> Vec<u8> {
    let fields: Vec<_> = shown.fields.iter().map(|field| (prefix(&field.name), field)).collect();
    let mut bytes = Vec::new();
    object(table, &fields, row, further, &mut bytes);
    bytes
}

fn object(
    table: &TableSpec,
    fields: &[(Vec<u8>, &Field)],
    row: &(impl CellSource + ?Sized),
    further: &[(Vec<u8>, Vec<u8>)],
    to: &mut Vec<u8>,
) {
    to.push(b'{');
    let mut first = true;
    let mut comma = |to: &mut Vec<u8>| {
        if !std::mem::take(&mut first) {
            to.push(b',');
        }
    };
    for (prefix, field) in fields {
        comma(to);
        to.extend_from_slice(prefix);
        let cell = value(table, field, row);
        field_shape(field, &cell).write_json(&cell, to);
    }
    for (prefix, json) in further {
        comma(to);
        to.extend_from_slice(prefix);
        to.extend_from_slice(json);
    }
    to.push(b'}');
}

fn value<'r>(table: &TableSpec, field: &Field, row: &'r (impl CellSource + ?Sized)) -> Cell<'r> {
    if field.place.path.is_empty() { row.cell(field.position) } else { field.place.value(table, row) }
}

/// A member of a JSON column is of the type it has there.
fn field_shape(field: &Field, cell: &Cell<'_>) -> Shape {
    match cell {
        _ if field.place.path.is_empty() => field.shape,
        Cell::Integer(_) => Shape::Integer,
        Cell::Real(_) => Shape::Number,
        Cell::Null | Cell::Text(_) | Cell::Blob(_) => Shape::Text,
    }
}

/// A name as it stands before its value.
pub(super) fn prefix(name: &str) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(name).unwrap_or_default();
    bytes.push(b':');
    bytes
}

/// A value of a comma-separated file (RFC 4180). One that a spreadsheet would take for a formula is kept from
/// that by a quote before it.
fn quoted(text: &str) -> String {
    let number = text.parse::<f64>().is_ok();
    let formula = !number && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
