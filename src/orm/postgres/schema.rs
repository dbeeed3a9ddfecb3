//! Making the tables in a database that many programs share, and checking that those found are ours.
//!
//! The version stands in a table of its own, `larder_schema`. Whoever comes first makes the tables, under a lock
//! that the others wait for; where they are there already nothing is written, so that an account that may not
//! make tables will do.

use tokio_postgres::Client;

use crate::orm::dialect::Dialect;
use crate::orm::{DbError, Schema, SqlType, TableSpec};

const VERSIONS: &str =
    "CREATE TABLE IF NOT EXISTS larder_schema (application_id BIGINT PRIMARY KEY, version BIGINT NOT NULL)";

/// Makes or lifts the tables, and compares them with the definitions.
pub(super) async fn apply(schema: &Schema, client: &Client) -> Result<(), DbError> {
    if found(schema, client).await? != Some(schema.version()) {
        client.batch_execute("BEGIN").await?;
        let lifted = lift(schema, client).await;
        client.batch_execute(if lifted.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        lifted?;
    }
    for table in schema.tables {
        compare(table, client).await?;
    }
    Ok(())
}

/// The version there; none if there is none.
async fn found(schema: &Schema, client: &Client) -> Result<Option<i64>, DbError> {
    let there: bool =
        client.query_one("SELECT to_regclass('larder_schema') IS NOT NULL", &[]).await?.try_get(0)?;
    if !there {
        return Ok(None);
    }
    let sql = "SELECT version FROM larder_schema WHERE application_id = $1";
    let row = client.query_opt(sql, &[&i64::from(schema.application_id)]).await?;
    let version: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
    match version {
        Some(found) if found > schema.version() => Err(DbError::Newer { found, known: schema.version() }),
        version => Ok(version),
    }
}

async fn lift(schema: &Schema, client: &Client) -> Result<(), DbError> {
    let id = i64::from(schema.application_id);
    client.query_one("SELECT pg_advisory_xact_lock($1)", &[&id]).await?;
    client.batch_execute(VERSIONS).await?;
    // somebody may have been quicker: what counts is what is found under the lock
    match found(schema, client).await? {
        None => {
            for table in schema.tables {
                client.batch_execute(&table.create_in(Dialect::Postgres)).await?;
            }
            let sql = "INSERT INTO larder_schema (application_id, version) VALUES ($1, $2)";
            client.execute(sql, &[&id, &schema.version()]).await?;
        }
        Some(version) => {
            let done = usize::try_from(version - 1).unwrap_or(0);
            for step in schema.steps.iter().skip(done) {
                client.batch_execute(step.0).await?;
            }
            let sql = "UPDATE larder_schema SET version = $2 WHERE application_id = $1";
            client.execute(sql, &[&id, &schema.version()]).await?;
        }
    }
    Ok(())
}

/// Whether the table is the one defined here.
async fn compare(table: &TableSpec, client: &Client) -> Result<(), DbError> {
    let sql = "SELECT attname::text, format_type(atttypid, NULL), attnotnull FROM pg_attribute \
               WHERE attrelid = to_regclass($1::text) AND attnum > 0 AND NOT attisdropped";
    let mut found = Vec::new();
    for row in client.query(sql, &[&table.name]).await? {
        found.push((row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?, row.try_get::<_, bool>(2)?));
    }
    let wrong = |what: &str| Err(DbError::Schema(format!("the table {} {what}", table.name)));
    if found.is_empty() {
        return wrong("is missing");
    }
    for column in table.columns {
        let kind = match column.sql_type {
            SqlType::Integer => "bigint",
            SqlType::Real => "double precision",
            SqlType::Text => "text",
            SqlType::Blob => "bytea",
        };
        let same = |(name, found, not_null): &(String, String, bool)| {
            name == column.name && found == kind && *not_null != column.nullable
        };
        if !found.iter().any(same) {
            return wrong(&format!("is another one: its column {} is missing or another", column.name));
        }
    }
    if found.len() == table.columns.len() { Ok(()) } else { wrong("has columns of somebody else") }
}
