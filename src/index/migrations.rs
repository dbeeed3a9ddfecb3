//! The two databases and the steps that lead old ones here. Released steps never change: a new column is a
//! line in its record and a new step at the end of its list.

use super::{
    BanRecord, BlobRecord, BlockRecord, CutRecord, DigestRecord, EventRecord, ExpectationRecord, LabelRecord,
    ResourceRecord, SettingRecord, TransferRecord, UsageRecord,
};
use crate::orm::{Record as _, Schema, Step};

/// `index.db`.
pub(super) const INDEX: Schema = Schema {
    application_id: 0x4c44_0001,
    tables: &[
        BlobRecord::TABLE,
        ResourceRecord::TABLE,
        ExpectationRecord::TABLE,
        DigestRecord::TABLE,
        TransferRecord::TABLE,
    ],
    steps: &[Step(EXPECTATIONS), Step(DIGESTS), Step(TRANSFERS), Step(ANSWERS_FOUND)],
};

/// `state.db`.
pub(super) const STATE: Schema = Schema {
    application_id: 0x4c44_0002,
    tables: &[
        BanRecord::TABLE,
        BlockRecord::TABLE,
        CutRecord::TABLE,
        SettingRecord::TABLE,
        LabelRecord::TABLE,
        UsageRecord::TABLE,
        EventRecord::TABLE,
    ],
    steps: &[Step(LABELS_USAGE_EVENTS), Step(WHO), Step(BLOCKS)],
};

/// 1 to 2: digests that were stated for URLs.
const EXPECTATIONS: &str = r#"CREATE TABLE "expectations" (
    "url_key" BLOB NOT NULL CHECK (length("url_key") = 32),
    "digest" TEXT NOT NULL,
    "size" INTEGER,
    "stated_by" TEXT NOT NULL,
    "stated_at" INTEGER NOT NULL,
    PRIMARY KEY ("url_key")
) STRICT, WITHOUT ROWID;"#;

/// 2 to 3: blobs by their digests in other algorithms.
const DIGESTS: &str = r#"CREATE TABLE "digests" (
    "stated_key" BLOB NOT NULL CHECK (length("stated_key") = 32),
    "stated" TEXT NOT NULL,
    "blob" BLOB NOT NULL CHECK (length("blob") = 32),
    "reckoned_at" INTEGER NOT NULL,
    PRIMARY KEY ("stated_key")
) STRICT, WITHOUT ROWID;"#;

/// 3 to 4: the history of transfers.
const TRANSFERS: &str = r#"CREATE TABLE "transfers" (
    "id" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "digest" BLOB CHECK (length("digest") = 32),
    "size" INTEGER,
    "received" INTEGER NOT NULL,
    "readers" INTEGER NOT NULL,
    "state" TEXT NOT NULL,
    "started_at" INTEGER NOT NULL,
    "ended_at" INTEGER,
    PRIMARY KEY ("id")
) STRICT, WITHOUT ROWID;
CREATE INDEX "transfers_ended_at" ON "transfers" ("ended_at");"#;

/// 4 to 5: answers are found in the file by URL and by blob.
const ANSWERS_FOUND: &str = r#"CREATE INDEX "resources_url_key" ON "resources" ("url_key");
CREATE INDEX "resources_digest" ON "resources" ("digest");"#;

/// 1 to 2: labels, hourly sums, what administrators did.
const LABELS_USAGE_EVENTS: &str = r#"CREATE TABLE "labels" (
    "digest" BLOB NOT NULL CHECK (length("digest") = 32),
    "labels" TEXT NOT NULL DEFAULT ('{}') CHECK (json_valid("labels")),
    "version" INTEGER NOT NULL,
    PRIMARY KEY ("digest")
) STRICT, WITHOUT ROWID;
CREATE INDEX "labels_labels_team" ON "labels" ("labels" ->> '$."team"');
CREATE TABLE "usage" (
    "hour" INTEGER NOT NULL,
    "requests" INTEGER NOT NULL,
    "bytes_to_clients" INTEGER NOT NULL,
    "bytes_from_cache" INTEGER NOT NULL,
    "bytes_from_peers" INTEGER NOT NULL,
    "bytes_from_origin" INTEGER NOT NULL,
    "bytes_to_peers" INTEGER NOT NULL,
    "bytes_discarded" INTEGER NOT NULL,
    PRIMARY KEY ("hour")
) STRICT, WITHOUT ROWID;
CREATE TABLE "events" (
    "id" INTEGER NOT NULL,
    "at" INTEGER NOT NULL,
    "door" TEXT NOT NULL,
    "method" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "status" INTEGER NOT NULL,
    PRIMARY KEY ("id")
) STRICT, WITHOUT ROWID;
CREATE INDEX "events_at" ON "events" ("at");"#;

/// 2 to 3: who did what administrators did.
const WHO: &str = r#"ALTER TABLE "events" RENAME TO "events_before";
DROP INDEX "events_at";
CREATE TABLE "events" (
    "id" INTEGER NOT NULL,
    "at" INTEGER NOT NULL,
    "door" TEXT NOT NULL,
    "who" TEXT NOT NULL,
    "method" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "status" INTEGER NOT NULL,
    PRIMARY KEY ("id")
) STRICT, WITHOUT ROWID;
CREATE INDEX "events_at" ON "events" ("at");
INSERT INTO "events" SELECT "id", "at", "door", '', "method", "path", "status" FROM "events_before";
DROP TABLE "events_before";"#;

/// 3 to 4: what nobody gets here.
const BLOCKS: &str = r#"CREATE TABLE "blocks" (
    "thing" TEXT NOT NULL,
    "shown" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "since" INTEGER NOT NULL,
    "because_of" TEXT NOT NULL,
    PRIMARY KEY ("thing")
) STRICT, WITHOUT ROWID;"#;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;
    use crate::orm::Database;

    /// What a file holds: columns with all that is said of them but their place, which the steps may have put at the
    /// end, and indexes.
    fn shape(path: &Path) -> Vec<String> {
        let connection = Connection::open(path).unwrap();
        let columns = "SELECT t.name || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || \
            coalesce(c.dflt_value, '') || ' ' || c.pk FROM pragma_table_list t JOIN pragma_table_xinfo(t.name) c \
            WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' \
            UNION ALL SELECT t.name || ' ' || t.wr || t.strict FROM pragma_table_list t WHERE t.name NOT LIKE 'sqlite%' \
            UNION ALL SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
        let mut statement = connection.prepare(columns).unwrap();
        let mut all: Vec<String> =
            statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        all.sort();
        all
    }

    /// The checks of a table, as its columns and its steps have them.
    fn checks(path: &Path) -> usize {
        let connection = Connection::open(path).unwrap();
        let all = "SELECT group_concat(sql) FROM sqlite_schema WHERE type = 'table'";
        let text: String = connection.query_row(all, [], |row| row.get(0)).unwrap();
        text.matches("CHECK (").count()
    }

    /// Files of every version that was, lifted step by step, are files that are made anew.
    #[test]
    fn every_version_leads_to_the_definitions() {
        let released = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/index-v1");
        for (schema, file) in [(&INDEX, "index.db"), (&STATE, "state.db")] {
            let folder = tempfile::tempdir().unwrap();
            let fresh = folder.path().join("fresh.db");
            drop(Database::open(&fresh, schema).unwrap());
            for done in 0..=schema.steps.len() {
                let path = folder.path().join(format!("{done}.db"));
                std::fs::copy(released.join(file), &path).unwrap();
                let connection = Connection::open(&path).unwrap();
                for step in &schema.steps[..done] {
                    connection.execute_batch(step.0).unwrap();
                }
                let version = i64::try_from(done + 1).unwrap();
                connection.pragma_update(None, "user_version", version).unwrap();
                drop(connection);
                assert!(!Database::open(&path, schema).unwrap().is_fresh());
                assert_eq!(shape(&path), shape(&fresh), "{file} of version {}", done + 1);
                assert_eq!(checks(&path), checks(&fresh), "{file} of version {}", done + 1);
            }
        }
    }
}
