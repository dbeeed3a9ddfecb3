//! One statement of an administrator's own, on a connection that can do nothing but read.
//!
//! The files are opened to be read only, an authorizer refuses everything but selecting, SQLite's own limits
//! bound the statement, and rows and time are bounded here.

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Batch, Connection, OpenFlags, params_from_iter};

use super::sqlite::connect;
use super::{Cell, CellSource as _, DbError, FileKey, Location};

/// Functions that reach out of the database.
const REFUSED: [&str; 5] = ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"];
/// What a statement may be and hold.
const LIMITS: [(Limit, i32); 7] = [
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 * 1024),
    (Limit::SQLITE_LIMIT_LENGTH, 8 << 20),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 20),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
    (Limit::SQLITE_LIMIT_ATTACHED, 4),
];

/// What a statement gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell<'static>>>,
    /// There are more.
    pub more: bool,
}

/// Asks the first of these files, the others attached by their names, and gives up when `late` says so.
pub fn inquire(
    files: &[(&str, &Location)],
    sql: &str,
    parameters: &[Cell<'_>],
    limit: usize,
    late: impl FnMut() -> bool + Send + 'static,
) -> Result<Found, DbError> {
    let Some(((_, main), others)) = files.split_first() else { return Err(DbError::Missing) };
    let mut connection = connect(main, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    for (name, at) in others {
        let path = at.path().to_string_lossy();
        match at.key().map(FileKey::literal) {
            Some(key) => {
                connection.execute(&format!("ATTACH ? AS \"{name}\" KEY ?"), [path.as_ref(), key.as_str()])?
            }
            None => connection.execute(&format!("ATTACH ? AS \"{name}\""), [path])?,
        };
    }
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.authorizer(Some(authorize))?;
    connection.progress_handler(super::sqlite::LOOK_EVERY, Some(late))?;
    answer(&connection, sql, parameters, limit)
}

fn answer(
    connection: &Connection,
    sql: &str,
    parameters: &[Cell<'_>],
    limit: usize,
) -> Result<Found, DbError> {
    let mut statements = Batch::new(connection, sql);
    let only = |text: &str| DbError::Constraint(format!("{text}: give one SELECT"));
    let mut statement = statements.next()?.ok_or_else(|| only("there is no statement"))?;
    if statements.next()?.is_some() {
        return Err(only("there is more than one statement"));
    }
    if !statement.readonly() {
        return Err(only("the statement does not only read"));
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = Found { columns, rows: Vec::new(), more: false };
    let mut rows = statement.query(params_from_iter(parameters))?;
    while let Some(row) = rows.next()? {
        if found.rows.len() >= limit {
            found.more = true;
            break;
        }
        found.rows.push((0..found.columns.len()).map(|at| row.cell(at).into_owned()).collect());
    }
    Ok(found)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what is not known to read only is refused")]
fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if !REFUSED.contains(&function_name) => Authorization::Allow,
        _ => Authorization::Deny,
    }
}
