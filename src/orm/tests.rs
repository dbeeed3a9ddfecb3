//! The records of a small dairy: definition, statements, filters, migrations.
#![expect(dead_code, reason = "every column has a name for filters, and not every one is asked for here")]

mod engines;
mod kill;
pub(crate) mod postgres;
#[path = "../../tests/integration/support/postgres.rs"]
pub(crate) mod server;
mod writer;

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;
use crate::digest::Digest;

crate::record! {
    /// A cheese.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct Cheese in "cheeses", columns CheeseColumns {
        key {
            /// Its number.
            id: i64,
        }
        /// What is on the label.
        name: String [unique],
        /// Grams left.
        grams: u64 [index, check = "grams <> 13"],
        /// Who brought it.
        from: Option<String>,
        /// Who may eat it.
        eaters: Vec<String> [json],
    }
}

crate::record! {
    /// A bite, all kinds of columns.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct Bite in "bites" [without_rowid], columns BiteColumns {
        key {
            /// Who.
            eater: IpAddr,
            /// Of what.
            cheese: i64 [references = "cheeses(id)"],
        }
        /// Bytes of it.
        picture: Vec<u8>,
        /// Name of the picture.
        digest: Digest,
        /// When.
        at: Timestamp,
        /// How deep.
        depth: i128,
        /// How good.
        taste: f64 [default = "0.5"],
        /// Again?
        again: bool,
        /// How often.
        times: u32,
        /// A mark.
        mark: [u8; 4],
    }
}

/// Columns only, to see that a record can be all key.
mod pairs {
    crate::record! {
        /// Two names.
        #[derive(Debug, Clone, PartialEq)]
        pub(super) struct Pair in "pairs" [without_rowid], columns PairColumns {
            key {
                /// One.
                one: String,
                /// Other.
                other: String,
            }
        }
    }
}

pub(super) const DAIRY: Schema =
    Schema { application_id: 7, tables: &[Cheese::TABLE, Bite::TABLE, pairs::Pair::TABLE], steps: &[] };

fn dairy() -> Database {
    Database::memory(&DAIRY).unwrap()
}

pub(super) fn cheese(id: i64, name: &str, grams: u64) -> Cheese {
    Cheese { id, name: name.into(), grams, from: None, eaters: vec!["mouse".into()] }
}

#[test]
fn the_definition_gives_the_table() {
    let made = r#"CREATE TABLE "cheeses" (
    "id" INTEGER NOT NULL,
    "name" TEXT NOT NULL UNIQUE,
    "grams" INTEGER NOT NULL CHECK (grams <> 13),
    "from" TEXT,
    "eaters" TEXT NOT NULL CHECK (json_valid("eaters")),
    PRIMARY KEY ("id")
) STRICT;
CREATE INDEX "cheeses_grams" ON "cheeses" ("grams");
"#;
    assert_eq!(Cheese::TABLE.create(), made);
    assert_eq!(Cheese::TABLE.column("grams").unwrap().doc, "Grams left.");
    let bites = Bite::TABLE.create();
    assert!(bites.ends_with("PRIMARY KEY (\"eater\", \"cheese\")\n) STRICT, WITHOUT ROWID;\n"));
    assert!(bites.contains("\"digest\" BLOB NOT NULL CHECK (length(\"digest\") = 32)"));
    assert!(bites.contains("\"taste\" REAL NOT NULL DEFAULT (0.5)"));
    assert_eq!(Bite::TABLE.column("cheese").unwrap().references, Some("cheeses(id)"));
}

#[test]
fn rows_come_and_go() {
    let dairy = dairy();
    let cheeses = Repository::<Cheese>::new(&dairy);
    let brie = cheese(1, "brie", 200);
    cheeses.add(&brie).unwrap();
    assert_eq!(cheeses.get(&1).unwrap(), Some(brie.clone()));
    assert_eq!(cheeses.add(&brie).unwrap_err().kind(), Kind::Constraint);
    let eaten = Cheese { grams: 150, from: Some("a friend".into()), eaters: vec![], ..brie };
    cheeses.upsert(&eaten).unwrap();
    cheeses.upsert(&cheese(2, "edam", 500)).unwrap();
    assert_eq!(cheeses.get(&1).unwrap(), Some(eaten.clone()));
    assert!(cheeses.exists(&2).unwrap() && !cheeses.exists(&3).unwrap());
    // the name is unique too, and no upsert by key may take another row's
    assert_eq!(cheeses.upsert(&cheese(3, "edam", 1)).unwrap_err().kind(), Kind::Constraint);
    assert_eq!(cheeses.upsert(&cheese(3, "gouda", 13)).unwrap_err().kind(), Kind::Constraint);
    assert!(cheeses.delete(&2).unwrap() && !cheeses.delete(&2).unwrap());
    assert_eq!(cheeses.all().unwrap(), [eaten]);
}

#[test]
fn a_record_may_be_all_key() {
    let dairy = dairy();
    let all = Repository::<pairs::Pair>::new(&dairy);
    let pair = pairs::Pair { one: "salt".into(), other: "pepper".into() };
    all.upsert(&pair).unwrap();
    all.upsert(&pair).unwrap();
    assert_eq!(all.count(&pairs::Pair::COLUMNS.one.is(&"salt".into())).unwrap(), 1);
    assert!(all.delete(&pair.key()).unwrap());
}

#[test]
fn a_transaction_is_whole_or_nothing() {
    let dairy = dairy();
    let cheeses = Repository::<Cheese>::new(&dairy);
    let failed = dairy.transaction(|dairy| {
        cheeses.add(&cheese(1, "brie", 1))?;
        dairy.transaction(|_inner| cheeses.add(&cheese(2, "edam", 1)))?;
        cheeses.add(&cheese(3, "brie", 1))
    });
    assert_eq!(failed.unwrap_err().kind(), Kind::Constraint);
    assert_eq!(cheeses.count(&Filter::everything()).unwrap(), 0);
    dairy.transaction(|_dairy| cheeses.add(&cheese(1, "brie", 1))).unwrap();
    assert_eq!(cheeses.count(&Filter::everything()).unwrap(), 1);
}

#[test]
fn queries_filter_order_and_page() {
    let dairy = dairy();
    let cheeses = Repository::<Cheese>::new(&dairy);
    for (id, name, grams) in [(1, "brie", 10), (2, "edam", 30), (3, "feta", 20), (4, "gouda", 40)] {
        let from = (id % 2 == 0).then(|| "Holland".to_owned());
        cheeses.add(&Cheese { from, ..cheese(id, name, grams) }).unwrap();
    }
    let by = Cheese::COLUMNS;
    let names = |query: &Query<Cheese>| -> Vec<String> {
        cheeses.find(query).unwrap().into_iter().map(|cheese| cheese.name).collect()
    };
    let all = Query::everything;
    assert_eq!(names(&all().order(by.grams.descending()).limit(2)), ["gouda", "edam"]);
    assert_eq!(names(&all().order(by.grams.ascending()).offset(3)), ["gouda"]);
    assert_eq!(names(&all().order(by.id.ascending()).filter(by.from.is_none())), ["brie", "feta"]);
    assert_eq!(names(&all().filter(by.name.like("%D%").and(by.grams.above(&30)))), ["gouda"]);
    let ends = by.grams.below(&20).or(by.grams.at_least(&40));
    assert_eq!(names(&all().order(by.id.ascending()).filter(ends.clone())), ["brie", "gouda"]);
    assert_eq!(names(&all().order(by.id.ascending()).filter(ends.not())), ["edam", "feta"]);
    let other = by.from.is_not(&Some("Holland".into()));
    assert_eq!(names(&all().order(by.id.ascending()).filter(other)), ["brie", "feta"]);
    assert_eq!(names(&all().filter(by.id.any_of(&[4, 9]))), ["gouda"]);
    assert!(names(&all().filter(by.id.any_of([]))).is_empty());
    // what is compared with nothing is neither equal nor unequal
    assert_eq!(names(&all().filter(by.from.is(&Some("Holland".into())).not())).len(), 2);
    assert_eq!(cheeses.delete_where(&by.grams.at_most(&20)).unwrap(), 2);
    assert_eq!(cheeses.count(&Filter::everything()).unwrap(), 2);
}

#[test]
fn values_never_become_sql() {
    let dairy = dairy();
    let cheeses = Repository::<Cheese>::new(&dairy);
    cheeses.add(&cheese(1, "brie", 1)).unwrap();
    for evil in
        ["' OR 1=1 --", "\"; DROP TABLE cheeses; --", "x') UNION SELECT * FROM bites --", "\0", "?1", "%s"]
    {
        assert_eq!(cheeses.count(&Cheese::COLUMNS.name.is(&evil.to_owned())).unwrap(), 0, "{evil}");
        assert_eq!(cheeses.delete_where(&Cheese::COLUMNS.name.like(evil)).unwrap(), 0, "{evil}");
        cheeses.add(&cheese(2, evil, 1)).unwrap();
        assert_eq!(cheeses.get(&2).unwrap().unwrap().name, evil);
        cheeses.delete(&2).unwrap();
    }
    assert_eq!(cheeses.count(&Filter::everything()).unwrap(), 1);
}

#[test]
fn an_older_file_is_lifted_and_a_newer_one_left_alone() {
    const OLD: TableSpec = TableSpec::new("cheeses", &[ColumnSpec::new::<i64, Plain>("id", "").key()]);
    const NEW: TableSpec = TableSpec::new(
        "cheeses",
        &[
            ColumnSpec::new::<i64, Plain>("id", "").key(),
            ColumnSpec::new::<u64, Plain>("grams", "").default("5"),
        ],
    );
    const V1: Schema = Schema { application_id: 7, tables: &[OLD], steps: &[] };
    const V2: Schema = Schema {
        application_id: 7,
        tables: &[NEW],
        steps: &[Step("ALTER TABLE cheeses ADD COLUMN grams INTEGER NOT NULL DEFAULT (5)")],
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let old = Database::open(&path, &V1).unwrap();
    assert!(old.is_fresh());
    old.connection().execute("INSERT INTO cheeses VALUES (1)", []).unwrap();
    drop(old);
    let new = Database::open(&path, &V2).unwrap();
    assert!(!new.is_fresh());
    let grams: i64 = new.connection().query_row("SELECT grams FROM cheeses", [], |row| row.get(0)).unwrap();
    assert_eq!(grams, 5);
    drop(new);
    let error = Database::open(&path, &V1).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("version 2")), (Kind::Newer, true), "{error}");
    let stranger = Schema { application_id: 8, ..V2 };
    assert_eq!(Database::open(&path, &stranger).unwrap_err().kind(), Kind::Damaged);
    let drifted = Schema { tables: &[OLD], ..V2 };
    assert_eq!(Database::open(&path, &drifted).unwrap_err().kind(), Kind::Damaged);
    assert!(Database::open(&path, &V2).is_ok(), "none of these changed the file");
}

#[test]
fn a_backup_is_whole_and_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("x.db"), folder.path().join("x.db.backup"));
    let dairy = Database::open(&path, &DAIRY).unwrap();
    Repository::<Cheese>::new(&dairy).add(&cheese(1, "brie", 1)).unwrap();
    dairy.backup(&to).unwrap();
    Repository::<Cheese>::new(&dairy).add(&cheese(2, "edam", 1)).unwrap();
    dairy.backup(&to).unwrap();
    for file in [&path, &to] {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let copy = Database::open(&to, &DAIRY).unwrap();
    assert_eq!(Repository::<Cheese>::new(&copy).all().unwrap().len(), 2);
}

/// Different in every respect that conditions look at.
fn six_cheeses() -> impl Iterator<Item = Cheese> {
    (0..6_i64).map(|id| {
        let from = (id % 3 != 0).then(|| if id % 2 == 0 { "a".to_owned() } else { "b".to_owned() });
        Cheese { from, ..cheese(id, &id.to_string(), id.cast_unsigned() * 5 % 6) }
    })
}

/// A condition, as a filter and as Rust sees it.
#[derive(Debug, Clone)]
enum Question {
    Grams(usize, u64),
    From(Option<String>, bool),
    AnyOf(Vec<i64>),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

impl Question {
    fn filter(&self) -> Filter<Cheese> {
        let by = Cheese::COLUMNS;
        match self {
            Self::Grams(how, than) => match how {
                0 => by.grams.below(than),
                1 => by.grams.at_most(than),
                2 => by.grams.above(than),
                3 => by.grams.at_least(than),
                _ => by.grams.is(than),
            },
            Self::From(name, true) => by.from.is(name),
            Self::From(name, false) => by.from.is_not(name),
            Self::AnyOf(ids) => by.id.any_of(ids),
            Self::Not(one) => one.filter().not(),
            Self::And(one, other) => one.filter().and(other.filter()),
            Self::Or(one, other) => one.filter().or(other.filter()),
        }
    }

    fn holds(&self, cheese: &Cheese) -> bool {
        match self {
            Self::Grams(how, than) => match how {
                0 => cheese.grams < *than,
                1 => cheese.grams <= *than,
                2 => cheese.grams > *than,
                3 => cheese.grams >= *than,
                _ => cheese.grams == *than,
            },
            Self::From(name, same) => (cheese.from == *name) == *same,
            Self::AnyOf(ids) => ids.contains(&cheese.id),
            Self::Not(one) => !one.holds(cheese),
            Self::And(one, other) => one.holds(cheese) && other.holds(cheese),
            Self::Or(one, other) => one.holds(cheese) || other.holds(cheese),
        }
    }
}

fn condition() -> impl Strategy<Value = Question> {
    let leaf = prop_oneof![
        (0..5_usize, 0..6_u64).prop_map(|(how, than)| Question::Grams(how, than)),
        (prop::option::of("[ab]"), any::<bool>()).prop_map(|(name, same)| Question::From(name, same)),
        prop::collection::vec(0..6_i64, 0..3).prop_map(Question::AnyOf),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        let inner = inner.prop_map(Box::new);
        prop_oneof![
            inner.clone().prop_map(Question::Not),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| Question::And(one, other)),
            (inner.clone(), inner).prop_map(|(one, other)| Question::Or(one, other)),
        ]
    })
}

prop_compose! {
    fn bite()(
        (eater, cheese, picture, digest, at) in any::<(IpAddr, i64, Vec<u8>, [u8; 32], u64)>(),
        (depth, taste, again, times, mark) in any::<(i128, f64, bool, u32, [u8; 4])>(),
    ) -> Bite {
        Bite {
            eater, cheese, picture, depth, taste, again, times, mark,
            digest: Digest::from_bytes(digest),
            at: Timestamp(at),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_value_comes_back(bite in bite()) {
        let dairy = dairy();
        dairy.connection().pragma_update(None, "foreign_keys", false).unwrap();
        let bites = Repository::<Bite>::new(&dairy);
        bites.upsert(&bite).unwrap();
        prop_assert_eq!(bites.get(&bite.key()).unwrap(), Some(bite.clone()));
        let same = Bite::COLUMNS.depth.at_least(&bite.depth).and(Bite::COLUMNS.eater.is(&bite.eater));
        prop_assert_eq!(bites.count(&same).unwrap(), 1);
    }

    #[test]
    fn a_filter_finds_what_it_says(condition in condition()) {
        let dairy = dairy();
        let cheeses = Repository::<Cheese>::new(&dairy);
        let mut expected = Vec::new();
        for cheese in six_cheeses() {
            cheeses.add(&cheese).unwrap();
            if condition.holds(&cheese) {
                expected.push(cheese);
            }
        }
        let query = Query::everything().filter(condition.filter()).order(Cheese::COLUMNS.id.ascending());
        prop_assert_eq!(cheeses.find(&query).unwrap(), expected.clone());
        prop_assert_eq!(cheeses.count(&condition.filter()).unwrap(), expected.len() as u64);
    }

    #[test]
    fn cells_of_depth_sort_as_numbers(a: i128, b: i128) {
        let bytes = |number: i128| number.encode().array::<16>("").unwrap();
        prop_assert_eq!(a.cmp(&b), bytes(a).cmp(&bytes(b)));
    }

    #[test]
    fn a_wrong_cell_is_an_error_and_no_panic(number: i64, text: String, bytes: Vec<u8>) {
        let cells = [Cell::Null, Cell::Integer(number), Cell::Real(0.5), Cell::Text(text.into()), Cell::Blob(bytes.into())];
        for cell in cells {
            let results = [
                u32::decode(cell.clone()).is_ok(),
                bool::decode(cell.clone()).is_ok(),
                Digest::decode(cell.clone()).is_ok(),
                IpAddr::decode(cell.clone()).is_ok(),
                i128::decode(cell.clone()).is_ok(),
                <Json as Codec<Vec<u8>>>::decode(cell.clone()).is_ok(),
            ];
            prop_assert!(results.iter().filter(|ok| **ok).count() <= 2);
        }
    }
}
