//! The settings in force, each with where it came from, as administrators see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;

use crate::admin::SettingView;
use crate::config::{Config, Sources, redacted};

/// The list as it is now; a cheap clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings(Arc<ArcSwap<Vec<SettingView>>>);

impl Settings {
    /// Those the daemon starts with.
    pub(super) fn of(config: &Config, sources: &Sources) -> Self {
        let settings = Self::default();
        settings.put(config, sources, None);
        settings
    }

    /// Those of a configuration. Of what needs a restart the old value is in force.
    pub(super) fn put(&self, config: &Config, sources: &Sources, before: Option<(&Config, &[String])>) {
        let old = before.map(|(config, _)| flat(&redacted(config))).unwrap_or_default();
        let waits = |key: &String| before.is_some_and(|(_, keys)| keys.contains(key));
        let view = |(key, value): (String, Value)| {
            let from = sources.of(&key).to_string();
            match old.get(&key).filter(|_| waits(&key)) {
                Some(old) => {
                    SettingView { from: format!("{from} says otherwise: restart"), value: old.clone(), key }
                }
                None => SettingView { key, value, from },
            }
        };
        self.0.store(Arc::new(flat(&redacted(config)).into_iter().map(view).collect()));
    }

    pub(super) fn get(&self) -> Arc<Vec<SettingView>> {
        self.0.load_full()
    }
}

/// Every key with its value, dotted.
pub(super) fn flat(config: &Config) -> BTreeMap<String, Value> {
    let mut keys = BTreeMap::new();
    if let Ok(Value::Object(sections)) = serde_json::to_value(config) {
        for (section, value) in sections {
            match value {
                Value::Object(settings) => {
                    keys.extend(settings.into_iter().map(|(key, value)| (format!("{section}.{key}"), value)));
                }
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)) => {
                    keys.insert(section, other);
                }
            }
        }
    }
    keys
}
