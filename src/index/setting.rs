//! What the daemon sets for itself and must find again after a restart.

crate::record! {
    /// One setting that is not in the configuration.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SettingRecord in "settings" [without_rowid], columns SettingColumns {
        key {
            /// Its name.
            name: String,
        }
        /// Its value.
        value: String,
    }
}
