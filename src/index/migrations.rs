//! The two databases and the steps that lead old ones here. Released steps never change: a new column is a
//! line in its record and a new step at the end of its list.

use super::{BanRecord, BlobRecord, CutRecord, ResourceRecord, SettingRecord};
use crate::orm::{Record as _, Schema};

/// `index.db`.
pub(super) const INDEX: Schema =
    Schema { application_id: 0x4c44_0001, tables: &[BlobRecord::TABLE, ResourceRecord::TABLE], steps: &[] };

/// `state.db`.
pub(super) const STATE: Schema = Schema {
    application_id: 0x4c44_0002,
    tables: &[BanRecord::TABLE, CutRecord::TABLE, SettingRecord::TABLE],
    steps: &[],
};
