//! Tables as the definitions say, and bringing a database there: made anew at the newest version, or lifted
//! step by step from an older one, then compared column by column.
//!
//! A step is numbered by its place in the list and never changes once released; a new column is a new line of
//! its record and a new step, no more.

use rusqlite::Connection;

use super::dialect::Dialect;
use super::{Cell, Codec, DbError, Shape, SqlType};

/// A column as its record defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Its type.
    pub sql_type: SqlType,
    /// What its values are to the outside.
    pub shape: Shape,
    /// Whether it may hold no value.
    pub nullable: bool,
    /// How many bytes a value has, where all have the same number.
    pub bytes: Option<usize>,
    /// Part of the primary key.
    pub is_key: bool,
    /// A JSON text.
    pub is_json: bool,
    /// No two rows share a value.
    pub is_unique: bool,
    /// Has an index of its own.
    pub is_indexed: bool,
    /// The value where none is given, as SQL.
    pub default: Option<&'static str>,
    /// A condition that every row meets, as SQL.
    pub check: Option<&'static str>,
    /// The `table(column)` it points to, held to it by the engine.
    pub references: Option<&'static str>,
    /// The `table(column)` it names, whether or not there is such a row.
    pub relates: Option<&'static str>,
    /// Counts the changes of its row, for who changes only what he has seen.
    pub is_version: bool,
    /// What its values are beyond their shape, as JSON schema.
    pub schema: Option<&'static str>,
    /// The member of a JSON object that has an index of its own.
    pub member_index: Option<&'static str>,
}

/// A table as its record defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSpec {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub doc: &'static str,
    /// Its columns, those of the key first.
    pub columns: &'static [ColumnSpec],
    /// Rows lie in the order of their key, without numbers of their own.
    pub is_without_rowid: bool,
}

/// One released change of the tables, as SQL.
#[derive(Debug, Clone, Copy)]
pub struct Step(pub &'static str);

/// The tables of one database file.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// Marks the file as ours (`PRAGMA application_id`).
    pub application_id: i32,
    /// The tables as they are now.
    pub tables: &'static [TableSpec],
    /// Step `n` leads from version `n` to `n + 1`, the first one from 1 to 2. Only ever added to.
    pub steps: &'static [Step],
}

// === impl ColumnSpec ===

impl ColumnSpec {
    /// A column holding a `T` in the form `C`.
    pub const fn new<T, C: Codec<T>>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            doc: doc.trim_ascii(),
            sql_type: C::TYPE,
            shape: C::SHAPE,
            nullable: C::NULLABLE,
            bytes: C::BYTES,
            is_key: false,
            is_json: false,
            is_unique: false,
            is_indexed: false,
            default: None,
            check: None,
            references: None,
            relates: None,
            is_version: false,
            member_index: None,
            schema: None,
        }
    }

    /// Part of the primary key.
    #[must_use]
    pub const fn key(mut self) -> Self {
        self.is_key = true;
        self
    }

    /// A JSON text.
    #[must_use]
    pub const fn json(mut self) -> Self {
        self.is_json = true;
        self
    }

    /// No two rows share a value.
    #[must_use]
    pub const fn unique(mut self) -> Self {
        self.is_unique = true;
        self
    }

    /// Has an index.
    #[must_use]
    pub const fn index(mut self) -> Self {
        self.is_indexed = true;
        self
    }

    /// The value where none is given.
    #[must_use]
    pub const fn default(mut self, sql: &'static str) -> Self {
        self.default = Some(sql);
        self
    }

    /// A condition that every row meets.
    #[must_use]
    pub const fn check(mut self, sql: &'static str) -> Self {
        self.check = Some(sql);
        self
    }

    /// Points to a `table(column)`.
    #[must_use]
    pub const fn references(mut self, target: &'static str) -> Self {
        self.references = Some(target);
        self
    }

    /// Names a `table(column)`; the row need not be there.
    #[must_use]
    pub const fn relates(mut self, target: &'static str) -> Self {
        self.relates = Some(target);
        self
    }

    /// Counts the changes of its row.
    #[must_use]
    pub const fn version(mut self) -> Self {
        self.is_version = true;
        self
    }

    /// What its values are beyond their shape.
    #[must_use]
    pub const fn schema(mut self, json: &'static str) -> Self {
        self.schema = Some(json);
        self
    }

    /// A member of its JSON objects is found by an index.
    #[must_use]
    pub const fn member_index(mut self, member: &'static str) -> Self {
        self.member_index = Some(member);
        self
    }

    /// The value where none is given, where that is a number or a text.
    pub fn default_cell(&self) -> Option<Cell<'static>> {
        let sql = self.default?;
        if let Some(text) = sql.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
            return Some(Cell::Text(text.replace("''", "'").into()));
        }
        match self.sql_type {
            SqlType::Integer => sql.parse().ok().map(Cell::Integer),
            SqlType::Real => sql.parse().ok().map(Cell::Real),
            SqlType::Text | SqlType::Blob => None,
        }
    }

    /// The table and the column it points to, enforced or not.
    pub fn target(&self) -> Option<(&'static str, &'static str)> {
        let (table, column) = self.references.or(self.relates)?.split_once('(')?;
        Some((table, column.strip_suffix(')')?))
    }

    fn sql(&self, dialect: Dialect) -> String {
        let mut sql = format!("\"{}\" {}", self.name, dialect.type_name(self.sql_type));
        if !self.nullable {
            sql.push_str(" NOT NULL");
        }
        if self.is_unique {
            sql.push_str(" UNIQUE");
        }
        if let Some(default) = self.default {
            sql.push_str(&format!(" DEFAULT ({default})"));
        }
        if let Some(bytes) = self.bytes {
            sql.push_str(&format!(" CHECK (length(\"{}\") = {bytes})", self.name));
        }
        if self.is_json {
            sql.push_str(&format!(" CHECK ({})", dialect.is_json(self.name)));
        }
        if let Some(check) = self.check {
            sql.push_str(&format!(" CHECK ({check})"));
        }
        if let Some(target) = self.references {
            sql.push_str(&format!(" REFERENCES {target}"));
        }
        sql
    }
}

// === impl TableSpec ===

impl TableSpec {
    /// A table with these columns.
    pub const fn new(name: &'static str, columns: &'static [ColumnSpec]) -> Self {
        Self { name, doc: "", columns, is_without_rowid: false }
    }

    /// What a row is.
    #[must_use]
    pub const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc.trim_ascii();
        self
    }

    /// Rows lie in the order of their key.
    #[must_use]
    pub const fn without_rowid(mut self) -> Self {
        self.is_without_rowid = true;
        self
    }

    /// The columns of the primary key.
    pub fn key_columns(&self) -> impl Iterator<Item = &'static ColumnSpec> {
        self.columns.iter().filter(|column| column.is_key)
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&'static ColumnSpec> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Where the column of this name stands.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The column that counts the changes of a row.
    pub fn version_column(&self) -> Option<&'static ColumnSpec> {
        self.columns.iter().find(|column| column.is_version)
    }

    /// The statements that make the table and its indexes.
    pub fn create(&self) -> String {
        self.create_in(Dialect::Sqlite)
    }

    pub(super) fn create_in(&self, dialect: Dialect) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|column| format!("    {}", column.sql(dialect))).collect();
        let key: Vec<String> = self.key_columns().map(|column| format!("\"{}\"", column.name)).collect();
        let mut sql = format!(
            "CREATE TABLE \"{}\" (\n{},\n    PRIMARY KEY ({})\n){};\n",
            self.name,
            columns.join(",\n"),
            key.join(", "),
            match (dialect, self.is_without_rowid) {
                (Dialect::Sqlite, true) => " STRICT, WITHOUT ROWID",
                (Dialect::Sqlite, false) => " STRICT",
                (Dialect::Postgres, _) => "",
            },
        );
        for column in self.columns.iter().filter(|column| column.is_indexed) {
            let (table, column) = (self.name, column.name);
            sql.push_str(&format!("CREATE INDEX \"{table}_{column}\" ON \"{table}\" (\"{column}\");\n"));
        }
        for column in self.columns {
            if let Some(member) = column.member_index {
                let (table, column) = (self.name, column.name);
                let indexed = dialect.member(column, member);
                sql.push_str(&format!(
                    "CREATE INDEX \"{table}_{column}_{member}\" ON \"{table}\" ({indexed});\n"
                ));
            }
        }
        sql
    }

    /// Whether the table in the file is the one defined here.
    fn compare(&self, connection: &Connection) -> Result<(), DbError> {
        let mut statement =
            connection.prepare("SELECT name, type, \"notnull\", pk > 0 FROM pragma_table_info(?1)")?;
        let found: Vec<(String, String, bool, bool)> = statement
            .query_map([self.name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<Result<_, _>>()?;
        if found.is_empty() {
            return Err(DbError::Schema(format!("the table {} is missing", self.name)));
        }
        for column in self.columns {
            let same = found.iter().any(|(name, sql_type, not_null, is_key)| {
                name == column.name
                    && sql_type == column.sql_type.name()
                    && *not_null != column.nullable
                    && *is_key == column.is_key
            });
            if !same {
                let message =
                    format!("the column {} of table {} is missing or another", column.name, self.name);
                return Err(DbError::Schema(message));
            }
        }
        if found.len() != self.columns.len() {
            return Err(DbError::Schema(format!("the table {} has columns of somebody else", self.name)));
        }
        Ok(())
    }
}

// === impl Schema ===

impl Schema {
    /// The newest version: 1 and one more for each step.
    pub fn version(&self) -> i64 {
        i64::try_from(self.steps.len()).unwrap_or(i64::MAX).saturating_add(1)
    }

    /// Makes or lifts the tables in one transaction; true if the file was empty.
    pub(super) fn apply(&self, connection: &Connection) -> Result<bool, DbError> {
        if self.found(connection)? == Some(self.version()) {
            self.compare(connection)?;
            return Ok(false);
        }
        let behaviour = rusqlite::TransactionBehavior::Immediate;
        let transaction = rusqlite::Transaction::new_unchecked(connection, behaviour)?;
        // another process may have been quicker: what counts is what is found under the lock
        let found = self.found(connection)?;
        match found {
            None => {
                for table in self.tables {
                    connection.execute_batch(&table.create())?;
                }
                connection.pragma_update(None, "application_id", self.application_id)?;
            }
            Some(version) => {
                let done = usize::try_from(version - 1).unwrap_or(0);
                for step in self.steps.iter().skip(done) {
                    connection.execute_batch(step.0)?;
                }
            }
        }
        connection.pragma_update(None, "user_version", self.version())?;
        self.compare(connection)?;
        transaction.commit()?;
        Ok(found.is_none())
    }

    /// The version in the file; none if the file is empty, an error if it is not one of ours.
    pub(super) fn found(&self, connection: &Connection) -> Result<Option<i64>, DbError> {
        let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let version = number("PRAGMA user_version")?;
        let application_id = number("PRAGMA application_id")?;
        if version == 0 && application_id == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0 {
            return Ok(None);
        }
        if application_id != i64::from(self.application_id) || version < 1 {
            return Err(DbError::Schema("it is the database of another program".to_owned()));
        }
        if version > self.version() {
            return Err(DbError::Newer { found: version, known: self.version() });
        }
        Ok(Some(version))
    }

    fn compare(&self, connection: &Connection) -> Result<(), DbError> {
        self.tables.iter().try_for_each(|table| table.compare(connection))
    }
}
