//! What an engine of ours does, through its typed side and through REST.

use std::hint::black_box;

use http::{HeaderMap, Method};
use larder::orm::{Database, Engine, Feed, Repository};
use larder::rest::{Api, Ask, Resource, Rows};

use super::person::Person;
use super::{Turn, rate};

/// The most rows of an answer.
pub(crate) const PAGE: usize = 10_000;

/// All columns but the third of an engine that is made anew for each writing one; in the third rows one by one,
/// which is what a transaction is to an engine that has none.
pub(crate) fn turn<E: Engine>(
    fresh: impl Fn() -> E,
    people: &[Person],
    few: usize,
    shared: impl Fn(E) -> Rows,
) -> Turn {
    let direct = {
        let engine = fresh();
        let rows = Repository::<Person, E>::new(&engine);
        rate(few, || people.iter().take(few).for_each(|person| rows.add(person).unwrap()))
    };
    let list = |people: &[Person]| {
        let engine = fresh();
        let rows = Repository::<Person, E>::new(&engine);
        rate(people.len(), || rows.add_all(people).unwrap())
    };
    let (batch, batch_trans) = (list(&people[..few]), list(people));
    let engine = fresh();
    Repository::<Person, E>::new(&engine).add_all(people).unwrap();
    let (by_one, all_direct) = reads(&engine, people);
    [direct, batch, direct, batch_trans, by_one, all_virtual(shared(engine), people.len()), all_direct]
}

fn reads<E: Engine>(engine: &E, people: &[Person]) -> (f64, f64) {
    let rows = Repository::<Person, E>::new(engine);
    let by_one = rate(people.len(), || {
        people.iter().for_each(|p| {
            black_box(rows.get(&p.id).unwrap());
        })
    });
    let all = rate(people.len(), || {
        black_box(rows.all().unwrap());
    });
    (by_one, all)
}

/// All rows as JSON, page after page.
fn all_virtual(rows: Rows, count: usize) -> f64 {
    let api = Api::new(Feed::new()).with(Resource::of::<Person>(rows));
    let (method, headers) = (Method::GET, HeaderMap::new());
    rate(count, || {
        for page in 0..count.div_ceil(PAGE) {
            let query = query(page);
            let ask = Ask { method: &method, path: "/people", query: &query, headers: &headers, body: b"" };
            black_box(api.answer("people", &ask));
        }
    })
}

/// What asks for one page of all rows.
pub(crate) fn query(page: usize) -> String {
    format!("limit={PAGE}&id=gt.{}", page * PAGE)
}

/// Rows one by one in a transaction of SQLite.
pub(crate) fn trans(database: &Database, people: &[Person]) -> f64 {
    rate(people.len(), || {
        database
            .transaction(|database| {
                let rows = Repository::<Person>::new(database);
                people.iter().try_for_each(|person| rows.add(person))
            })
            .unwrap();
    })
}
