//! The two databases and the steps that lead old ones here. Released steps never change: a new column is a
//! line in its record and a new step at the end of its list.

use super::{
    BanRecord, BlobRecord, CutRecord, DigestRecord, ExpectationRecord, ResourceRecord, SettingRecord,
};
use crate::orm::{Record as _, Schema, Step};

/// `index.db`.
pub(super) const INDEX: Schema = Schema {
    application_id: 0x4c44_0001,
    tables: &[BlobRecord::TABLE, ResourceRecord::TABLE, ExpectationRecord::TABLE, DigestRecord::TABLE],
    steps: &[Step(EXPECTATIONS), Step(DIGESTS)],
};

/// `state.db`.
pub(super) const STATE: Schema = Schema {
    application_id: 0x4c44_0002,
    tables: &[BanRecord::TABLE, CutRecord::TABLE, SettingRecord::TABLE],
    steps: &[],
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
