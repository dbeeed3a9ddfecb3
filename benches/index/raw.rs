//! The same with rusqlite alone and prepared statements.

use std::hint::black_box;

use rusqlite::{Connection, params};

use super::person::Person;
use super::{Turn, rate};

const INSERT: &str =
    "INSERT INTO people (id, first, last, amount, date, created, changed) VALUES (?, ?, ?, ?, ?, ?, ?)";
const SELECT: &str = "SELECT id, first, last, amount, date, created, changed FROM people";

/// All columns but what goes through REST.
pub(crate) fn turn(fresh: impl Fn() -> Connection, people: &[Person], few: usize) -> Turn {
    let direct = {
        let connection = fresh();
        let mut statement = connection.prepare(INSERT).unwrap();
        rate(few, || people.iter().take(few).for_each(|person| add(&mut statement, person)))
    };
    let list = |people: &[Person]| {
        let connection = fresh();
        let mut statement = connection.prepare(INSERT).unwrap();
        rate(people.len(), || {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            people.iter().for_each(|person| add(&mut statement, person));
            connection.execute_batch("COMMIT").unwrap();
        })
    };
    let (batch, trans, batch_trans) = (list(&people[..few]), list(people), list(people));
    let filled = fresh();
    filled.execute_batch("BEGIN").unwrap();
    let mut statement = filled.prepare(INSERT).unwrap();
    people.iter().for_each(|person| add(&mut statement, person));
    filled.execute_batch("COMMIT").unwrap();
    let mut get = filled.prepare(&format!("{SELECT} WHERE id = ?")).unwrap();
    let by_one = rate(people.len(), || {
        people.iter().for_each(|p| {
            black_box(get.query_row([p.id], |row| Ok(read(row))).unwrap());
        })
    });
    let mut all = filled.prepare(SELECT).unwrap();
    let all_direct = rate(people.len(), || {
        let rows = all.query_map([], |row| Ok(read(row))).unwrap();
        black_box(rows.collect::<Result<Vec<_>, _>>().unwrap());
    });
    [direct, batch, trans, batch_trans, by_one, f64::NAN, all_direct]
}

fn add(statement: &mut rusqlite::Statement<'_>, p: &Person) {
    let (created, changed) = (p.created.0.cast_signed(), p.changed.0.cast_signed());
    statement.execute(params![p.id, p.first, p.last, p.amount, p.date, created, changed]).unwrap();
}

fn read(row: &rusqlite::Row<'_>) -> Person {
    let time = |at| larder::clock::Timestamp(row.get::<_, i64>(at).unwrap().cast_unsigned());
    Person {
        id: row.get(0).unwrap(),
        first: row.get(1).unwrap(),
        last: row.get(2).unwrap(),
        amount: row.get(3).unwrap(),
        date: row.get(4).unwrap(),
        created: time(5),
        changed: time(6),
    }
}
