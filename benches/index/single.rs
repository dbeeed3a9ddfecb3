//! One connection for all threads, as an engine that can be shared.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use larder::orm::{
    Cell, CellSource, Condition, Database, DbError, Engine, Operation, Outcome, Select, TableSpec,
};
use larder::rest::Rows;

/// The connection.
struct Single(Mutex<Database>);

pub(crate) fn shared(database: Database) -> Rows {
    Arc::new(Single(Mutex::new(database)))
}

impl Engine for Single {
    fn get(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        take: &mut dyn FnMut(&dyn CellSource),
    ) -> Result<bool, DbError> {
        self.0.lock().unwrap().get(table, key, take)
    }

    fn read(
        &self,
        table: &'static TableSpec,
        select: &Select,
        take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>,
    ) -> Result<(), DbError> {
        self.0.lock().unwrap().read(table, select, take)
    }

    fn count(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        self.0.lock().unwrap().count(table, condition)
    }

    fn run(&self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        self.0.lock().unwrap().run(operation)
    }

    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError> {
        self.0.lock().unwrap().apply(batch)
    }

    fn delete_where(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        self.0.lock().unwrap().delete_where(table, condition)
    }
}
