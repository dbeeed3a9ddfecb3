//! The two kinds of SQL that engines speak, and statements in the making: the text, and the values to bind.
//!
//! Both give the same answer to the same question. PostgreSQL is told in words what SQLite does by itself: no
//! value comes first, equality knows it as a value, a member of a JSON object that is a text is more than any
//! number.

use super::{Cell, Operator, Pattern, Place, Sort, SqlType, TableSpec};

/// Whose SQL it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Dialect {
    #[default]
    Sqlite,
    Postgres,
}

/// As what a place is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    Itself,
    /// A member's number counts as its digits.
    Text,
    Number,
}

/// SQL in the making: its text and the values to bind, in order.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) sql: String,
    pub(super) values: Vec<Cell<'static>>,
    dialect: Dialect,
}

impl As {
    pub(super) const fn compared(with: &Cell<'_>) -> Self {
        match with {
            Cell::Text(_) => Self::Text,
            Cell::Integer(_) | Cell::Real(_) => Self::Number,
            Cell::Null | Cell::Blob(_) => Self::Itself,
        }
    }
}

impl Dialect {
    /// The name of a type in a definition. Texts of PostgreSQL are compared byte by byte too.
    pub(super) const fn type_name(self, sql_type: SqlType) -> &'static str {
        match (self, sql_type) {
            (Self::Sqlite, sql_type) => sql_type.name(),
            (Self::Postgres, SqlType::Integer) => "BIGINT",
            (Self::Postgres, SqlType::Real) => "DOUBLE PRECISION",
            (Self::Postgres, SqlType::Text) => "TEXT COLLATE \"C\"",
            (Self::Postgres, SqlType::Blob) => "BYTEA",
        }
    }

    /// What stands for the value of this number, from 1.
    pub(super) fn mark(self, number: usize) -> String {
        match self {
            Self::Sqlite => "?".to_owned(),
            Self::Postgres => format!("${number}"),
        }
    }

    /// That a column holds a JSON text.
    pub(super) fn is_json(self, column: &str) -> String {
        match self {
            Self::Sqlite => format!("json_valid(\"{column}\")"),
            Self::Postgres => format!("\"{column}\"::jsonb IS NOT NULL"),
        }
    }

    /// A member of the objects in a JSON column, letter for letter as its index has it.
    pub(super) fn member(self, column: &str, member: &str) -> String {
        match self {
            Self::Sqlite => format!("\"{column}\" ->> '$.\"{member}\"'"),
            Self::Postgres => format!("(\"{column}\"::jsonb ->> '{member}') COLLATE \"C\""),
        }
    }
}

impl Rendered {
    /// A statement that begins with this.
    pub(super) const fn new(dialect: Dialect, sql: String) -> Self {
        Self { sql, values: Vec::new(), dialect }
    }

    /// A value: its mark in the text.
    pub(super) fn bind(&mut self, value: Cell<'static>) {
        self.values.push(value);
        self.sql.push_str(&self.dialect.mark(self.values.len()));
    }

    pub(super) fn truth(&mut self, truth: bool) {
        self.sql.push_str(match (self.dialect, truth) {
            (Dialect::Sqlite, true) => "1",
            (Dialect::Sqlite, false) => "0",
            (Dialect::Postgres, true) => "TRUE",
            (Dialect::Postgres, false) => "FALSE",
        });
    }

    /// A column, or a member of one.
    pub(super) fn place(&mut self, place: &Place, table: &TableSpec, wanted: As) {
        let column = place.column;
        let member = match place.path.as_slice() {
            [] => return self.sql.push_str(&format!("\"{column}\"")),
            [only] => table.column(column).and_then(|c| c.member_index).filter(|member| member == only),
            _ => None,
        };
        if let Some(member) = member.filter(|_| self.dialect == Dialect::Sqlite || wanted != As::Number) {
            let member = self.dialect.member(column, member);
            return self.sql.push_str(&format!("({member})"));
        }
        match (self.dialect, wanted) {
            (Dialect::Sqlite, As::Text) => {
                self.sql.push_str(&format!("CAST(\"{column}\" ->> "));
                self.path(place);
                self.sql.push_str(" AS TEXT)");
            }
            (Dialect::Sqlite, As::Itself | As::Number) => {
                self.sql.push_str(&format!("(\"{column}\" ->> "));
                self.path(place);
                self.sql.push(')');
            }
            (Dialect::Postgres, As::Itself | As::Text) => {
                self.member(place, true);
                self.sql.push_str(" COLLATE \"C\"");
            }
            (Dialect::Postgres, As::Number) => self.number(place),
        }
    }

    pub(super) fn compare(&mut self, operator: Operator, value: &Cell<'static>) {
        let words = match (self.dialect, operator, value) {
            (Dialect::Sqlite, Operator::Equal, _) => "IS",
            (Dialect::Sqlite, Operator::Other, _) => "IS NOT",
            // no index answers IS NOT DISTINCT FROM
            (Dialect::Postgres, Operator::Equal, Cell::Null) => return self.sql.push_str(" IS NULL"),
            (Dialect::Postgres, Operator::Other, Cell::Null) => return self.sql.push_str(" IS NOT NULL"),
            (Dialect::Postgres, Operator::Equal, _) => "=",
            (Dialect::Postgres, Operator::Other, _) => "IS DISTINCT FROM",
            (_, Operator::Below, _) => "<",
            (_, Operator::AtMost, _) => "<=",
            (_, Operator::Above, _) => ">",
            (_, Operator::AtLeast, _) => ">=",
        };
        self.sql.push_str(&format!(" {words} "));
        self.bind(value.clone());
    }

    pub(super) fn any_of(&mut self, place: &Place, table: &TableSpec, values: &[Cell<'static>]) {
        if values.is_empty() {
            return self.truth(false);
        }
        let all = |wanted| values.iter().all(|value| As::compared(value) == wanted);
        let wanted = [As::Text, As::Number].into_iter().find(|wanted| all(*wanted)).unwrap_or(As::Itself);
        self.place(place, table, wanted);
        self.sql.push_str(" IN (");
        for (position, value) in values.iter().enumerate() {
            self.sql.push_str(if position == 0 { "" } else { ", " });
            self.bind(value.clone());
        }
        self.sql.push(')');
    }

    pub(super) fn like(&mut self, pattern: &Pattern) {
        let (operator, text) = match (self.dialect, pattern.folds_case()) {
            (Dialect::Sqlite, false) => ("GLOB", pattern.glob()),
            (Dialect::Sqlite, true) | (Dialect::Postgres, false) => ("LIKE", pattern.like()),
            (Dialect::Postgres, true) => ("ILIKE", pattern.like()),
        };
        self.sql.push_str(&format!(" {operator} "));
        self.bind(Cell::Text(text.into()));
        if operator != "GLOB" {
            self.sql.push_str(" ESCAPE '\\'");
        }
    }

    pub(super) fn sorted(&mut self, sort: &Sort, table: &TableSpec) {
        self.place(&sort.place, table, As::Itself);
        self.sql.push_str(if sort.descending { " DESC" } else { " ASC" });
        // said only where it matters: an index of a column that is never empty has no such order
        let never_empty = table.column(sort.place.column).is_some_and(|column| !column.nullable);
        if self.dialect == Dialect::Postgres && !(never_empty && sort.place.path.is_empty()) {
            self.sql.push_str(if sort.descending { " NULLS LAST" } else { " NULLS FIRST" });
        }
    }

    pub(super) fn limit(&mut self, limit: Option<u64>, offset: u64) {
        let whole = |number: u64| Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let none = if self.dialect == Dialect::Sqlite { Cell::Integer(-1) } else { Cell::Null };
        self.sql.push_str(" LIMIT ");
        self.bind(limit.map_or(none, whole));
        self.sql.push_str(" OFFSET ");
        self.bind(whole(offset));
    }

    /// The path of a member as SQLite has it, as a value.
    fn path(&mut self, place: &Place) {
        let names = place.path.iter().map(|name| format!(".\"{}\"", name.replace('"', "")));
        self.bind(Cell::Text(format!("${}", names.collect::<String>()).into()));
    }

    /// A member as PostgreSQL has it, as text or as JSON.
    fn member(&mut self, place: &Place, as_text: bool) {
        self.sql.push_str(&format!("(\"{}\"::jsonb", place.column));
        for (position, name) in place.path.iter().enumerate() {
            let last = position + 1 == place.path.len();
            self.sql.push_str(if last && as_text { " ->> " } else { " -> " });
            self.bind(Cell::Text(name.clone().into()));
            self.sql.push_str("::text");
        }
        self.sql.push(')');
    }

    /// A member as a number; a text is more than any.
    fn number(&mut self, place: &Place) {
        self.sql.push_str("(CASE jsonb_typeof(");
        self.member(place, false);
        self.sql.push_str(") WHEN 'number' THEN ");
        self.member(place, true);
        self.sql.push_str("::float8 WHEN 'boolean' THEN ");
        self.member(place, true);
        self.sql.push_str("::boolean::int::float8");
        for kind in ["string", "array", "object"] {
            self.sql.push_str(&format!(" WHEN '{kind}' THEN 'Infinity'::float8"));
        }
        self.sql.push_str(" END)");
    }
}
