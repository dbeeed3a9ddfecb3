//! A PostgreSQL database as an engine: one session, for callers on threads that may block.
//!
//! Every call has a deadline; a session that was silent once is given up, for nobody knows what it is doing, and
//! its owner makes a new one. Callers take turns: what one does in a transaction is seen by no other. Values are
//! bound, and statements prepared once for each session.

mod row;
mod schema;
mod server;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::dialect::{Dialect, Rendered};
use super::statements::{self, Statements};
use super::{
    Action, Cell, CellSource, Condition, DbError, Engine, Operation, Outcome, Schema, Select, TableSpec,
};
use crate::clock::Timestamp;
use row::Fields;
pub use server::{Server, ServerError};

/// How many statements are under way at once: so many are sent in the order they are given.
const AT_ONCE: usize = 30;

/// One session.
#[derive(Debug)]
pub struct Postgres {
    session: Mutex<Session>,
    runtime: Handle,
    deadline: Duration,
    driver: JoinHandle<()>,
}

#[derive(Debug)]
struct Session {
    client: Client,
    texts: HashMap<&'static str, Arc<Statements>>,
    prepared: HashMap<String, Statement>,
    /// It was silent, or left a transaction open.
    is_lost: bool,
}

/// A statement, its values, and how its answer is read.
struct Task<'a> {
    sql: String,
    values: Vec<Cell<'a>>,
    answer: Answer,
}

#[derive(Clone, Copy)]
enum Answer {
    Done(Option<u64>),
    /// The version that is given back.
    Version,
    /// The row was there, if anything is given back: its version, where that is counted.
    Found {
        counted: bool,
    },
}

impl Postgres {
    /// Opens a session and makes or checks the tables. Every call takes at most `deadline`. Blocks.
    pub fn open(
        server: &Server,
        schema: &Schema,
        runtime: &Handle,
        deadline: Duration,
    ) -> Result<Self, DbError> {
        let connecting = async {
            match tokio::time::timeout(deadline, server.connect()).await {
                Ok(connected) => connected,
                Err(_elapsed) => Err(DbError::Silent),
            }
        };
        let (client, connection) = runtime.block_on(connecting)?;
        let driver = runtime.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a session of the catalogue ended");
            }
        });
        let session = Session { client, texts: HashMap::new(), prepared: HashMap::new(), is_lost: false };
        let database = Self { session: Mutex::new(session), runtime: runtime.clone(), deadline, driver };
        let limit = deadline.as_millis();
        let settings = format!(
            "SET statement_timeout = {limit}; SET lock_timeout = {limit}; SET application_name = 'larder'"
        );
        database.turn(async |session| Ok(session.client.batch_execute(&settings).await?))?;
        database.turn(async |session| schema::apply(schema, &session.client).await)?;
        Ok(database)
    }

    /// What time it is there.
    pub fn now(&self) -> Result<Timestamp, DbError> {
        let ms: i64 = self.turn(async |session| {
            let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
            Ok(session.client.query_one(sql, &[]).await?.try_get(0)?)
        })?;
        Ok(Timestamp(u64::try_from(ms).unwrap_or(0)))
    }

    /// Whether it is of no use any more.
    pub fn is_lost(&self) -> bool {
        let session = self.lock();
        session.is_lost || session.client.is_closed()
    }

    /// Has the session for as long as the work takes, and at most until the deadline.
    fn turn<T>(&self, work: impl AsyncFnOnce(&mut Session) -> Result<T, DbError>) -> Result<T, DbError> {
        let mut session = self.lock();
        if session.is_lost {
            return Err(DbError::Silent);
        }
        let worked = self.runtime.block_on(async {
            let work = pin!(work(&mut session));
            tokio::time::timeout(self.deadline, work).await
        });
        worked.unwrap_or_else(|_elapsed| {
            session.is_lost = true;
            Err(DbError::Silent)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Engine for Postgres {
    fn get(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        take: &mut dyn FnMut(&dyn CellSource),
    ) -> Result<bool, DbError> {
        let rows = self.turn(async |session| {
            let sql = session.texts(table).get.clone();
            session.query(&sql, key).await
        })?;
        rows.iter().take(1).for_each(|row| take(&Fields(row)));
        Ok(!rows.is_empty())
    }

    fn read(
        &self,
        table: &'static TableSpec,
        select: &Select,
        take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>,
    ) -> Result<(), DbError> {
        self.turn(async |session| {
            let mut rendered = Rendered::new(Dialect::Postgres, session.texts(table).select.clone());
            select.render(table, &mut rendered);
            let statement = session.prepare(&rendered.sql).await?;
            let values: Vec<&(dyn ToSql + Sync)> = row::values(&rendered.values);
            let mut rows = pin!(session.client.query_raw(&statement, values).await?);
            while let Some(row) = rows.try_next().await? {
                if take(&Fields(&row)).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn count(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        let start = format!("SELECT count(*) FROM \"{}\" WHERE ", table.name);
        let mut rendered = Rendered::new(Dialect::Postgres, start);
        condition.render(table, &mut rendered);
        let rows = self.turn(async |session| session.query(&rendered.sql, &rendered.values).await)?;
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn run(&self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        self.turn(async |session| session.run(operation).await)
    }

    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError> {
        self.turn(async |session| {
            session.client.batch_execute("BEGIN").await?;
            let done = session.run_all(batch).await;
            // a transaction that cannot be ended would swallow what comes next
            session.is_lost = true;
            session.client.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
            session.is_lost = false;
            done
        })
    }

    fn delete_where(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        let mut rendered = Rendered::new(Dialect::Postgres, format!("DELETE FROM \"{}\" WHERE ", table.name));
        condition.render(table, &mut rendered);
        self.turn(async |session| {
            let statement = session.prepare(&rendered.sql).await?;
            Ok(session.client.execute(&statement, &row::values(&rendered.values)).await?)
        })
    }
}

impl Session {
    fn texts(&mut self, table: &'static TableSpec) -> Arc<Statements> {
        let made = || Arc::new(Statements::of(table, Dialect::Postgres));
        Arc::clone(self.texts.entry(table.name).or_insert_with(made))
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement, DbError> {
        if let Some(known) = self.prepared.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(sql).await?;
        // questions of all kinds are asked rarely: who asks so many different ones pays for each
        if self.prepared.len() < 256 {
            self.prepared.insert(sql.to_owned(), statement.clone());
        }
        Ok(statement)
    }

    async fn query(&mut self, sql: &str, values: &[Cell<'_>]) -> Result<Vec<Row>, DbError> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query(&statement, &row::values(values)).await?)
    }

    async fn run(&mut self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        let task = self.task(operation);
        let rows = self.query(&task.sql, &task.values).await?;
        match task.outcome(&rows)? {
            Some(outcome) => Ok(outcome),
            None => self.not_done(operation).await,
        }
    }

    /// All of them, several under way at a time.
    async fn run_all(&mut self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError> {
        let mut outcomes = Vec::with_capacity(batch.len());
        for some in batch.chunks(AT_ONCE) {
            let mut tasks = Vec::with_capacity(some.len());
            for operation in some {
                let task = self.task(operation);
                tasks.push((self.prepare(&task.sql).await?, task, operation));
            }
            let client = &self.client;
            let asked = tasks.iter().map(|(statement, task, _)| async move {
                client.query(statement, &row::values(&task.values)).await
            });
            for (answered, (_, task, operation)) in join_all(asked).await.into_iter().zip(&tasks) {
                let position = outcomes.len();
                let rows = answered.map_err(|error| DbError::from(error).at(position))?;
                outcomes.push(match task.outcome(&rows)? {
                    Some(outcome) => outcome,
                    None => self.not_done(operation).await?.in_batch(position)?,
                });
            }
        }
        Ok(outcomes)
    }

    /// Why nothing was done: there is no such row, or it is another one by now.
    async fn not_done(&mut self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        let (Action::Update { key, .. } | Action::Delete { key, .. }) = &operation.action else {
            return Ok(Outcome::Missing);
        };
        let sql = self.texts(operation.table).get.clone();
        Ok(if self.query(&sql, key).await?.is_empty() { Outcome::Missing } else { Outcome::Stale })
    }

    fn task<'a>(&mut self, operation: &'a Operation<'_>) -> Task<'a> {
        let (table, texts) = (operation.table, self.texts(operation.table));
        let counter = table.version_column().map(|column| column.name);
        let put = |sql: &str, row: &'a [Cell<'_>], answer| {
            let cells = table.columns.iter().zip(row);
            let values = cells.map(|(column, cell)| match column.is_version {
                true => Cell::Integer(1),
                false => cell.borrowed(),
            });
            Task { sql: sql.to_owned(), values: values.collect(), answer }
        };
        match &operation.action {
            Action::Add(row) => put(&texts.add, row, Answer::Done(counter.map(|_| 1))),
            Action::Upsert(row) if counter.is_some() => put(&texts.upsert, row, Answer::Version),
            Action::Upsert(row) => put(&texts.upsert, row, Answer::Done(None)),
            Action::Update { key, changes, seen } => {
                let columns = changes.iter().filter_map(|(at, cell)| Some((table.columns.get(*at)?, cell)));
                let columns: Vec<_> = columns.filter(|(column, _)| !column.is_version).collect();
                let names: Vec<&str> = columns.iter().map(|(column, _)| column.name).collect();
                let values = columns.iter().map(|(_, cell)| cell.borrowed()).collect();
                // what changes nothing only asks whether the row is there
                let sql = match names.is_empty() && counter.is_none() {
                    true => return Task::found(texts.get.clone(), values, key, None, None),
                    false => statements::update(table, Dialect::Postgres, &names),
                };
                Task::found(sql, values, key, seen.zip(counter), Some((table, counter)))
            }
            Action::Delete { key, seen } => {
                let sql = texts.delete.clone();
                Task::found(sql, Vec::new(), key, seen.zip(counter), Some((table, None)))
            }
        }
    }
}

impl<'a> Task<'a> {
    /// One that is about the row of a key, and of a version; with `returning` it says whether it was there.
    fn found(
        mut sql: String,
        mut values: Vec<Cell<'a>>,
        key: &'a [Cell<'_>],
        seen: Option<(u64, &'static str)>,
        returning: Option<(&TableSpec, Option<&'static str>)>,
    ) -> Self {
        values.extend(key.iter().map(Cell::borrowed));
        if let Some((version, name)) = seen {
            values.push(Cell::Integer(version.cast_signed()));
            sql.push_str(&format!(" AND \"{name}\" = ${}", values.len()));
        }
        let counted = returning.is_some_and(|(_, counter)| counter.is_some());
        if let Some((table, counter)) = returning {
            let first = || table.columns.first().map_or("", |column| column.name);
            sql.push_str(&format!(" RETURNING \"{}\"", counter.unwrap_or_else(first)));
        }
        Self { sql, values, answer: Answer::Found { counted } }
    }

    /// What came of it; none if it did nothing.
    fn outcome(&self, rows: &[Row]) -> Result<Option<Outcome>, DbError> {
        let version = || -> Result<Option<u64>, DbError> {
            let version = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?;
            Ok(version.map(i64::cast_unsigned))
        };
        Ok(match self.answer {
            Answer::Done(version) => Some(Outcome::Done(version)),
            Answer::Version => Some(Outcome::Done(version()?)),
            Answer::Found { .. } if rows.is_empty() => None,
            Answer::Found { counted: true } => Some(Outcome::Done(version()?)),
            Answer::Found { counted: false } => Some(Outcome::Done(None)),
        })
    }
}
