//! The suite of all engines on a real PostgreSQL, and what only it can do.

use std::time::Duration;

use super::engines::{CELLAR, SUITES};
use super::server::Postgres as TestServer;
use super::*;
use crate::clock::{Clock as _, SystemClock};

/// A runtime that drives the sessions while tests block.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

pub(crate) fn server_of(postgres: &TestServer, database: &str) -> Server {
    let server: Server = postgres.url(database).parse().unwrap();
    server.with_password_file(Some(postgres.password_file()))
}

#[test]
fn postgres_keeps_rows_like_the_others() {
    let Some(mut postgres) = TestServer::start([127, 0, 0, 1].into()) else { return };
    let runtime = runtime();
    let open = |database: &str, schema: &Schema, deadline: Duration| {
        Postgres::open(&server_of(&postgres, database), schema, runtime.handle(), deadline)
    };
    let patience = Duration::from_secs(30);
    for (number, suite) in SUITES.into_iter().enumerate() {
        let database = format!("suite{number}");
        postgres.database(&database);
        let engine = open(&database, &CELLAR, patience).unwrap();
        suite("postgres", &engine, None);
    }
    agrees_on_conditions(&{
        postgres.database("dairy");
        open("dairy", &DAIRY, patience).unwrap()
    });

    // a second session finds the tables; another schema does not take them for its own
    drop(open("suite0", &CELLAR, patience).unwrap());
    const OTHER: Schema = Schema { application_id: 10, tables: CELLAR.tables, steps: &[] };
    let error = open("suite0", &OTHER, patience).unwrap_err().to_string();
    assert!(error.contains("already exists"), "{error}");
    const NEWER: Schema = Schema { steps: &[Step("CREATE TABLE more (id BIGINT PRIMARY KEY)")], ..CELLAR };
    drop(open("suite0", &NEWER, patience).unwrap());
    assert_eq!(open("suite0", &CELLAR, patience).unwrap_err().kind(), Kind::Newer);
    postgres.sql_in("suite1", "ALTER TABLE jars ADD COLUMN theirs TEXT");
    assert_eq!(open("suite1", &CELLAR, patience).unwrap_err().kind(), Kind::Damaged);

    // who may only read reads
    postgres.sql("ALTER DATABASE suite2 SET default_transaction_read_only = on");
    let reading = open("suite2", &CELLAR, patience).unwrap();
    let jars = Repository::<pairs::Pair, _>::new(&reading);
    let pair = pairs::Pair { one: "x".into(), other: "y".into() };
    assert_eq!(jars.add(&pair).unwrap_err().kind(), Kind::Unreadable);
    assert!(jars.all().is_ok());
    let wrong: Server = postgres.url("suite3").parse().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "wrong").unwrap();
    let wrong = wrong.with_password_file(Some(file.path().to_owned()));
    let refused = Postgres::open(&wrong, &CELLAR, runtime.handle(), patience).unwrap_err();
    assert_eq!(refused.kind(), Kind::Unreadable, "{refused}");

    // one that hangs costs a deadline, once
    let hanging = open("suite3", &CELLAR, Duration::from_millis(300)).unwrap();
    assert!(hanging.now().unwrap().0 > 1_600_000_000_000);
    postgres.pause();
    let start = SystemClock.instant();
    assert_eq!(hanging.now().unwrap_err().kind(), Kind::Slow);
    assert!(hanging.is_lost() && hanging.count(pairs::Pair::table(), &Condition::everything()).is_err());
    assert!(start.elapsed() < Duration::from_secs(3));
    postgres.resume();
    let broken = open("suite3", &CELLAR, patience).unwrap();
    postgres.kill();
    assert!(broken.now().is_err());
    postgres.run();
    assert!(open_again(&postgres, runtime.handle()).now().is_ok());
}

fn open_again(postgres: &TestServer, runtime: &tokio::runtime::Handle) -> Postgres {
    Postgres::open(&server_of(postgres, "suite3"), &CELLAR, runtime, Duration::from_secs(30)).unwrap()
}

fn agrees_on_conditions(engine: &Postgres) {
    use proptest::test_runner::TestRunner;
    let memory = Memory::new();
    for cheese in six_cheeses() {
        Repository::<Cheese, _>::new(engine).add(&cheese).unwrap();
        Repository::<Cheese, _>::new(&memory).add(&cheese).unwrap();
    }
    let mut runner = TestRunner::new(ProptestConfig::with_cases(64));
    let agreed = runner.run(&condition(), |condition| {
        let query = Query::everything().filter(condition.filter()).order(Cheese::COLUMNS.id.ascending());
        let found = Repository::<Cheese, _>::new(&memory).find(&query).unwrap();
        prop_assert_eq!(Repository::<Cheese, _>::new(engine).find(&query).unwrap(), found);
        Ok(())
    });
    agreed.unwrap();
}
