//! One suite for all engines: whoever keeps rows keeps them like this.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::clock::SystemClock;
use crate::telemetry::Health;

crate::record! {
    /// A jar with a label of any members.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct Jar in "jars", columns JarColumns {
        key {
            /// Its number.
            id: i64,
        }
        /// What is on it.
        name: String [unique],
        /// Grams in it.
        grams: Option<u64> [index],
        /// Any words.
        labels: serde_json::Value [json, member_index = "team"],
        /// Counts its changes.
        version: u64 [version],
    }
}

pub(super) const CELLAR: Schema =
    Schema { application_id: 9, tables: &[Jar::TABLE, pairs::Pair::TABLE], steps: &[] };

/// Nothing is written behind.
struct Nothing;

impl Changes for Nothing {
    type Batch = ();

    fn take(&self) -> Option<()> {
        None
    }

    fn write(&self, _: &(), _: &Database) -> Result<(), DbError> {
        Ok(())
    }

    fn put_back(&self, _: ()) {}

    fn reopen(&self, _: Option<&DbError>) -> Result<Database, DbError> {
        Err(DbError::Missing)
    }
}

fn shared(path: &std::path::Path, feed: &Feed) -> Shared {
    let mut file = Database::open(path, &CELLAR).unwrap();
    file.tell(feed.clone());
    let writer = Writer::start(file, Arc::new(Nothing), Health::new(), "test").unwrap();
    Shared::new(path, &CELLAR, Arc::new(writer), SystemClock::shared())
}

fn jar(id: i64, grams: Option<u64>, labels: &str) -> Jar {
    Jar { id, name: format!("jar {id}"), grams, labels: serde_json::from_str(labels).unwrap(), version: 1 }
}

/// What every engine passes: its name, itself without rows, and the feed that it tells, if it tells one.
pub(super) type Suite = fn(&str, &dyn Engine, Option<&Feed>);

/// All of it.
pub(super) const SUITES: [Suite; 7] = [
    bounds_of_the_key_hide_no_row_of,
    rows_come_change_and_go_in,
    who_changes_what_he_has_not_seen_is_told_by,
    a_batch_is_whole_or_nothing_in,
    members_of_a_json_column_are_found_in,
    pages_hold_every_row_once_in,
    a_reader_may_have_enough_of,
];

/// Calls `suite` with each engine of this process, each with a feed that was told nothing yet.
fn with_each(suite: Suite) {
    let folder = tempfile::tempdir().unwrap();
    let feed = Feed::new();
    let mut file = Database::open(&folder.path().join("cellar.db"), &CELLAR).unwrap();
    file.tell(feed.clone());
    suite("file", &file, Some(&feed));
    let feed = Feed::new();
    let mut memory = Database::memory(&CELLAR).unwrap();
    memory.tell(feed.clone());
    suite("sqlite memory", &memory, Some(&feed));
    let feed = Feed::new();
    suite("shared", &shared(&folder.path().join("shared.db"), &feed), Some(&feed));
    let feed = Feed::new();
    suite("memory", &Memory::telling(feed.clone()), Some(&feed));
}

fn fill(engine: &dyn Engine) -> Repository<'_, Jar, dyn Engine + '_> {
    let jars = Repository::<Jar, _>::new(engine);
    for (id, grams, labels) in [
        (1, Some(10), r#"{"team":"ops","n":5}"#),
        (2, None, r#"{"team":"dev"}"#),
        (3, Some(30), r#"{"deep":{"er":"x"},"n":70}"#),
        (4, Some(10), "{}"),
    ] {
        jars.add(&jar(id, grams, labels)).unwrap();
    }
    jars
}

#[test]
fn bounds_of_the_key_hide_no_row() {
    with_each(bounds_of_the_key_hide_no_row_of);
}

fn bounds_of_the_key_hide_no_row_of(name: &str, engine: &dyn Engine, _: Option<&Feed>) {
    fill(engine);
    let rows = Repository::<pairs::Pair, _>::new(engine);
    for (one, other) in [("a", "x"), ("b", "x"), ("b", "y"), ("c", "x")] {
        rows.add(&pairs::Pair { one: one.into(), other: other.into() }).unwrap();
    }
    let compare = |column, operator, value| Condition::Compare(Place::column(column), operator, value);
    let with = |conditions: Vec<Condition>, mut select: Select| {
        select.condition = Condition::All(conditions);
        select
    };
    use Operator::{Above, AtLeast, AtMost, Below, Equal, Other};
    for (operator, found) in [
        (Equal, vec![2]),
        (Other, vec![1, 3, 4]),
        (Below, vec![1]),
        (AtMost, vec![1, 2]),
        (Above, vec![3, 4]),
        (AtLeast, vec![2, 3, 4]),
    ] {
        let select = |back| with(vec![compare("id", operator, Cell::Integer(2))], sorted("id", back));
        assert_eq!(ids(engine, &select(false)), found, "{name} {operator:?}");
        assert!(ids(engine, &select(true)).iter().rev().eq(&found), "{name} {operator:?} backwards");
    }
    let between = |from, to, of| {
        let bounds = [(AtLeast, from), (Above, 0), (AtMost, to), (Below, 9)];
        let bounds = bounds.map(|(operator, id)| compare("id", operator, Cell::Integer(id)));
        ids(engine, &Select { limit: Some(of), offset: 1, ..with(bounds.into(), sorted("id", false)) })
    };
    assert_eq!((between(2, 4, 9), between(1, 4, 2)), (vec![3, 4], vec![2, 3]), "{name}");
    assert!(between(4, 2, 9).is_empty(), "{name}: nothing lies between");
    // of a key of two parts the first bounds the rows, and all of its rows are found
    for (operator, count) in [(Equal, 2), (Below, 1), (AtMost, 3), (Above, 1), (AtLeast, 3)] {
        let condition = compare("one", operator, Cell::Text("b".into()));
        assert_eq!(engine.count(pairs::Pair::table(), &condition).unwrap(), count, "{name} {operator:?}");
    }
    let condition = compare("one", AtLeast, Cell::Text("b".into()));
    assert_eq!(engine.delete_where(pairs::Pair::table(), &condition).unwrap(), 3, "{name}");
    assert_eq!(engine.count(pairs::Pair::table(), &Condition::everything()).unwrap(), 1, "{name}");
}

fn ids(engine: &dyn Engine, select: &Select) -> Vec<i64> {
    let mut ids = Vec::new();
    let mut take = |row: &dyn CellSource| {
        ids.push(i64::decode(row.cell(0)).unwrap());
        ControlFlow::Continue(())
    };
    engine.read(Jar::table(), select, &mut take).unwrap();
    ids
}

fn sorted(column: &'static str, descending: bool) -> Select {
    let mut select = Select::everything();
    select.order = vec![Sort { place: Place::column(column), descending }];
    select.complete_order(Jar::table());
    select
}

#[test]
fn rows_come_change_and_go() {
    with_each(rows_come_change_and_go_in);
}

fn rows_come_change_and_go_in(name: &str, engine: &dyn Engine, _: Option<&Feed>) {
    let jars = fill(engine);
    assert_eq!(jars.get(&1).unwrap().unwrap(), jar(1, Some(10), r#"{"team":"ops","n":5}"#), "{name}");
    assert_eq!(jars.add(&jar(1, None, "{}")).unwrap_err().kind(), Kind::Constraint, "{name}");
    let twin = Jar { name: "jar 1".into(), ..jar(9, None, "{}") };
    assert_eq!(jars.add(&twin).unwrap_err().kind(), Kind::Constraint, "{name}");
    assert_eq!(jars.upsert(&twin).unwrap_err().kind(), Kind::Constraint, "{name}");
    assert_eq!(jars.get_by(Jar::COLUMNS.name, &"jar 3".into()).unwrap().unwrap().id, 3, "{name}");
    jars.upsert(&jar(2, Some(7), "{}")).unwrap();
    assert_eq!(jars.get(&2).unwrap().unwrap(), Jar { version: 2, ..jar(2, Some(7), "{}") }, "{name}");
    assert!(jars.delete(&2).unwrap() && !jars.delete(&2).unwrap(), "{name}");
    assert!(!jars.exists(&2).unwrap() && jars.exists(&3).unwrap(), "{name}");
    let freed = Jar { name: "jar 2".into(), ..jar(9, None, "{}") };
    jars.add(&freed).unwrap();
    assert_eq!(jars.delete_where(&Jar::COLUMNS.grams.is(&Some(10))).unwrap(), 2, "{name}");
    assert_eq!(jars.all().unwrap().len(), 2, "{name}");
}

#[test]
fn who_changes_what_he_has_not_seen_is_told() {
    with_each(who_changes_what_he_has_not_seen_is_told_by);
}

fn who_changes_what_he_has_not_seen_is_told_by(name: &str, engine: &dyn Engine, _: Option<&Feed>) {
    let jars = fill(engine);
    let seen = jars.get(&1).unwrap().unwrap();
    let mine = Jar { grams: Some(1), ..seen.clone() };
    assert_eq!(jars.update(&mine, Some(1)).unwrap(), Outcome::Done(Some(2)), "{name}");
    assert_eq!(jars.update(&seen, Some(1)).unwrap(), Outcome::Stale, "{name}");
    assert_eq!(jars.update(&jar(8, None, "{}"), Some(1)).unwrap(), Outcome::Missing, "{name}");
    assert_eq!(jars.get(&1).unwrap().unwrap(), Jar { version: 2, ..mine }, "{name}");
    let delete = |seen| Operation {
        table: Jar::table(),
        action: Action::Delete { key: vec![Cell::Integer(1)], seen: Some(seen) },
    };
    assert_eq!(engine.run(&delete(1)).unwrap(), Outcome::Stale, "{name}");
    assert_eq!(engine.run(&delete(2)).unwrap(), Outcome::Done(None), "{name}");
}

#[test]
fn a_batch_is_whole_or_nothing() {
    with_each(a_batch_is_whole_or_nothing_in);
}

fn a_batch_is_whole_or_nothing_in(name: &str, engine: &dyn Engine, feed: Option<&Feed>) {
    fill(engine);
    let told = feed.map_or(0, Feed::last);
    let add = |id| {
        Operation { table: Jar::table(), action: Action::Add(jar(id, None, "{}").encode()).clone() }
            .into_owned()
    };
    let pair = pairs::Pair { one: "a".into(), other: "b".into() };
    let pair = Operation { table: pairs::Pair::table(), action: Action::Upsert(pair.encode()) };
    let change = Operation {
        table: Jar::table(),
        action: Action::Update { key: vec![Cell::Integer(3)], changes: vec![(2, Cell::Null)], seen: None },
    };
    let delete = |id| Operation {
        table: Jar::table(),
        action: Action::Delete { key: vec![Cell::Integer(id)], seen: None },
    };
    let before = ids(engine, &sorted("id", false));
    for bad in [add(1), delete(77)] {
        let batch = [add(10), pair.clone(), change.clone(), delete(4), bad];
        let error = engine.apply(&batch).unwrap_err();
        assert!(matches!(error, DbError::Batch { position: 4, .. }), "{name}: {error}");
        assert_eq!(ids(engine, &sorted("id", false)), before, "{name}");
        assert_eq!(engine.count(pairs::Pair::table(), &Condition::everything()).unwrap(), 0, "{name}");
    }
    assert_eq!(feed.map_or(0, Feed::last), told, "{name}: nothing of it was told");
    let done = engine.apply(&[add(10), pair, change, delete(4)]).unwrap();
    let version = |version| Outcome::Done(version);
    assert_eq!(done, [version(Some(1)), version(None), version(Some(2)), version(None)], "{name}");
    if let Some(feed) = feed {
        let news = feed.after(told, 10).changes;
        assert_eq!(news.len(), 4, "{name}");
        assert_eq!(news[2].1.row.as_ref().unwrap()[2], Cell::Null, "{name}");
        assert_eq!(
            (news[3].1.key.as_slice(), &news[3].1.row),
            ([Cell::Integer(4)].as_slice(), &None),
            "{name}"
        );
    }
    assert_eq!(ids(engine, &sorted("id", false)), [1, 2, 3, 10], "{name}");
    let jars = Repository::<Jar, _>::new(engine);
    let more = |last| [jar(11, None, "{}"), jar(12, Some(2), "{}"), jar(last, None, "{}")];
    let error = jars.add_all(&more(3)).unwrap_err();
    assert!(matches!(error, DbError::Batch { position: 2, .. }), "{name}: {error}");
    jars.add_all(&more(13)).unwrap();
    assert_eq!(ids(engine, &sorted("id", false)), [1, 2, 3, 10, 11, 12, 13], "{name}");
    jars.upsert(&jar(12, Some(3), "{}")).unwrap();
    assert_eq!(jars.get(&12).unwrap().map(|jar| (jar.grams, jar.version)), Some((Some(3), 2)), "{name}");
}

#[test]
fn members_of_a_json_column_are_found() {
    with_each(members_of_a_json_column_are_found_in);
}

fn members_of_a_json_column_are_found_in(name: &str, engine: &dyn Engine, _: Option<&Feed>) {
    let path = |names: &[&str]| Place {
        column: "labels",
        path: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let text = |text: &'static str| Cell::Text(text.into());
    fill(engine);
    for (condition, expected) in [
        (Condition::Compare(path(&["team"]), Operator::Equal, text("ops")), vec![1]),
        (Condition::AnyOf(path(&["team"]), vec![text("ops"), text("dev")]), vec![1, 2]),
        (Condition::Compare(path(&["deep", "er"]), Operator::Equal, text("x")), vec![3]),
        (Condition::Compare(path(&["n"]), Operator::Equal, text("5")), vec![1]),
        (Condition::Compare(path(&["n"]), Operator::Above, Cell::Integer(5)), vec![3]),
        (Condition::IsNull(path(&["n"])), vec![2, 4]),
        (Condition::Like(path(&["team"]), Pattern::new("D*", true)), vec![2]),
        (Condition::Compare(path(&["a\"b"]), Operator::Equal, text("x")), vec![]),
    ] {
        let mut select = sorted("id", false);
        select.condition = condition.clone();
        assert_eq!(ids(engine, &select), expected, "{name}: {condition:?}");
        assert_eq!(engine.count(Jar::table(), &condition).unwrap(), expected.len() as u64, "{name}");
    }
}

#[test]
fn the_index_of_a_member_is_used() {
    let cellar = Database::memory(&CELLAR).unwrap();
    let sql = "EXPLAIN QUERY PLAN SELECT id FROM jars WHERE (\"labels\" ->> '$.\"team\"') IS ?";
    let plan: String = cellar.connection().query_row(sql, ["ops"], |row| row.get(3)).unwrap();
    assert!(plan.contains("jars_labels_team"), "{plan}");
    let mut rendered = dialect::Rendered::default();
    let place = Place { column: "labels", path: vec!["team".into()] };
    Condition::Compare(place, Operator::Equal, Cell::Text("ops".into())).render(Jar::table(), &mut rendered);
    assert!(sql.ends_with(&rendered.sql), "{}", rendered.sql);
}

#[test]
fn pages_hold_every_row_once() {
    with_each(pages_hold_every_row_once_in);
}

fn pages_hold_every_row_once_in(name: &str, engine: &dyn Engine, _: Option<&Feed>) {
    let jars = fill(engine);
    for id in 20..40 {
        jars.add(&jar(id, (id % 3 > 0).then_some(5), "{}")).unwrap();
    }
    for (column, descending) in
        [("id", false), ("id", true), ("grams", false), ("grams", true), ("name", true), ("labels", false)]
    {
        let whole = ids(engine, &sorted(column, descending));
        let (mut paged, mut mark) = (Vec::new(), None::<Vec<Cell<'static>>>);
        loop {
            let mut select = sorted(column, descending);
            select.limit = Some(7);
            if let Some(mark) = &mark {
                select.after(mark);
            }
            let page = ids(engine, &select);
            let Some(last) = page.last() else { break };
            let last = jars.get(last).unwrap().unwrap();
            mark = Some(select.mark(Jar::table(), last.encode().as_slice()));
            paged.extend(page);
        }
        assert_eq!(paged, whole, "{name} {column} {descending}");
    }
    let heavy = Query::everything().order(Jar::COLUMNS.grams.descending());
    let first = jars.page(&heavy, 20, None).unwrap();
    let second = jars.page(&heavy, 20, first.next.as_deref()).unwrap();
    assert_eq!((first.rows.len(), second.rows.len(), second.next), (20, 4, None), "{name}");
}

#[test]
fn a_reader_may_have_enough() {
    with_each(a_reader_may_have_enough_of);
}

fn a_reader_may_have_enough_of(name: &str, engine: &dyn Engine, _: Option<&Feed>) {
    fill(engine);
    let mut seen = 0;
    let mut take = |_: &dyn CellSource| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    engine.read(Jar::table(), &Select::everything(), &mut take).unwrap();
    assert_eq!(seen, 2, "{name}");
    let select = Select { limit: Some(2), offset: 1, ..sorted("id", true) };
    assert_eq!(ids(engine, &select), [3, 2], "{name}");
}

#[test]
fn computed_rows_are_found_and_not_changed() {
    let rows = || vec![jar(2, Some(5), "{}"), jar(1, None, r#"{"team":"ops"}"#)];
    let engine = Computed::new(rows);
    assert_eq!(ids(&engine, &sorted("id", false)), [1, 2]);
    let jars = Repository::<Jar, _>::new(&engine);
    assert_eq!(jars.get(&2).unwrap(), Some(jar(2, Some(5), "{}")));
    assert_eq!(jars.count(&Jar::COLUMNS.grams.is(&None)).unwrap(), 1);
    assert!(matches!(jars.add(&jar(3, None, "{}")), Err(DbError::ReadOnly("jars"))));
}

#[test]
fn a_part_that_fails_leaves_the_rest() {
    let feed = Feed::new();
    let mut cellar = Database::memory(&CELLAR).unwrap();
    cellar.tell(feed.clone());
    cellar
        .transaction(|cellar| {
            let jars = Repository::<Jar>::new(cellar);
            jars.add(&jar(1, None, "{}"))?;
            let failed = cellar.part(|_| {
                jars.add(&jar(2, None, "{}"))?;
                jars.add(&jar(1, None, "{}"))
            });
            assert_eq!(failed.unwrap_err().kind(), Kind::Constraint);
            cellar.part(|_| jars.add(&jar(3, None, "{}")))
        })
        .unwrap();
    assert_eq!(ids(&cellar, &sorted("id", false)), [1, 3]);
    assert_eq!(feed.last(), 2);
}

#[test]
fn many_write_at_once_and_each_learns_of_his_own() {
    let folder = tempfile::tempdir().unwrap();
    let shared = shared(&folder.path().join("x.db"), &Feed::new());
    let added: usize = std::thread::scope(|scope| {
        let adders = [0, 1].map(|_| {
            (0..8).map(|id| {
                let shared = &shared;
                scope.spawn(move || Repository::<Jar, _>::new(shared).add(&jar(id, None, "{}")).is_ok())
            })
        });
        let all: Vec<_> = adders.into_iter().flatten().collect();
        all.into_iter().map(|adder| usize::from(adder.join().unwrap())).sum()
    });
    assert_eq!(added, 8, "one of two adds of the same key succeeds");
    assert_eq!(shared.count(Jar::table(), &Condition::everything()).unwrap(), 8);
}

#[test]
fn a_lock_from_outside_delays_a_write_and_no_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let shared = shared(&path, &Feed::new());
    let jars = Repository::<Jar, _>::new(&shared);
    jars.add(&jar(1, None, "{}")).unwrap();
    let outside = rusqlite::Connection::open(&path).unwrap();
    outside.execute_batch("BEGIN EXCLUSIVE").unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Repository::<Jar, _>::new(&shared).add(&jar(2, None, "{}")));
        assert!(jars.exists(&1).unwrap());
        assert!(!waiting.is_finished());
        outside.execute_batch("COMMIT").unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert!(jars.exists(&2).unwrap());
}

#[test]
fn a_question_that_takes_too_long_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut shared = shared(&folder.path().join("x.db"), &Feed::new());
    shared.question = Duration::ZERO;
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let look =
        |database: &Database| Ok(database.connection().query_row(endless, [], |row| row.get::<_, i64>(0))?);
    let error = shared.look(look).unwrap_err();
    assert_eq!(error.kind(), Kind::Slow);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn engines_agree_on_every_condition(condition in condition(), back: bool, limit in prop::option::of(0..7_u64)) {
        let sqlite = dairy();
        let memory = Arc::new(Memory::new());
        for cheese in six_cheeses() {
            Repository::<Cheese>::new(&sqlite).add(&cheese).unwrap();
            Repository::<Cheese, _>::new(memory.as_ref()).add(&cheese).unwrap();
        }
        let order = Cheese::COLUMNS.id;
        let query = Query::everything()
            .filter(condition.filter())
            .order(if back { order.descending() } else { order.ascending() });
        let query = limit.into_iter().fold(query, Query::limit);
        let found = Repository::<Cheese, _>::new(memory.as_ref()).find(&query).unwrap();
        prop_assert_eq!(Repository::<Cheese>::new(&sqlite).find(&query).unwrap(), found);
    }
}

#[test]
fn an_inquiry_reads_and_does_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("x.db"), folder.path().join("y.db"));
    for path in [&path, &other] {
        let cellar = Database::open(path, &CELLAR).unwrap();
        Repository::<Jar>::new(&cellar).add(&jar(1, Some(5), "{}")).unwrap();
    }
    let files = [("main", &Location::from(&path)), ("other", &Location::from(&other))];
    let ask = |sql: &str| inquire(&files, sql, &[Cell::Integer(1)], 3, || false);
    let found =
        ask("SELECT jars.id, o.grams FROM jars JOIN other.jars o USING (id) WHERE jars.id = ?").unwrap();
    assert_eq!((found.columns.len(), found.rows), (2, vec![vec![Cell::Integer(1), Cell::Integer(5)]]));
    let many =
        ask("WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n").unwrap();
    assert_eq!((many.rows.len(), many.more), (3, true));
    for evil in [
        "DELETE FROM jars",
        "INSERT INTO jars SELECT * FROM jars",
        "UPDATE jars SET grams = 1 RETURNING id",
        "DROP TABLE jars",
        "CREATE TEMP TABLE t (x)",
        "ATTACH '/tmp/z.db' AS z",
        "DETACH other",
        "PRAGMA query_only = 0",
        "PRAGMA table_info(jars)",
        "SELECT * FROM pragma_table_info('jars')",
        "SELECT load_extension('x')",
        "VACUUM INTO '/tmp/z.db'",
        "BEGIN EXCLUSIVE",
        "SELECT 1; DELETE FROM jars",
        "SELECT 1; SELECT 2",
        "EXPLAIN DELETE FROM jars",
        "ANALYZE",
        "REINDEX",
        "",
        "-- nothing",
        "SELEC 1",
    ] {
        assert!(ask(evil).is_err(), "{evil}");
    }
    let late = inquire(
        &files,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        &[],
        3,
        || true,
    );
    assert_eq!(late.unwrap_err().kind(), Kind::Slow);
    let cellar = Database::open(&path, &CELLAR).unwrap();
    assert_eq!(Repository::<Jar>::new(&cellar).all().unwrap(), [jar(1, Some(5), "{}")]);
}
