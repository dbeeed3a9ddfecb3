//! Reading the configuration again: what can change while running changes, the rest is named.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::build::House;
use super::settings::{Settings, flat};
use crate::admin::ReloadView;
use crate::clock::SharedClock;
use crate::config::{Config, Environment, load};
use crate::proxy::Interceptor;
use crate::telemetry::Logging;

/// Keys that hold at once; a trailing dot stands for all keys of a section.
const AT_ONCE: [&str; 23] = [
    "cache.max_size",
    "cache.min_free",
    "cache.max_age",
    "cache.max_object",
    "cache.read_only",
    "cache.scrub_every",
    "cache.scrub_rate",
    "proxy.allow",
    "proxy.connect_ports",
    "proxy.deny_private",
    "proxy.stale_if_error",
    "intercept.",
    "peers.trust",
    "peers.witnesses",
    "peers.release",
    "peers.min_size",
    "peers.upload_rate",
    "origin.download_rate",
    "limits",
    "bans.",
    "rule",
    "mirror",
    "log.level",
];

/// Reads the configuration again.
pub(super) struct Reloader {
    /// What the daemon started with: what needs a restart is measured against it.
    started: Arc<Config>,
    /// What holds now.
    config: Arc<Config>,
    file: Option<PathBuf>,
    logging: Logging,
    house: House,
    settings: Settings,
}

impl Reloader {
    pub(super) fn new(
        config: Arc<Config>,
        file: Option<PathBuf>,
        logging: Logging,
        house: House,
        settings: Settings,
    ) -> Self {
        Self { started: Arc::clone(&config), config, file, logging, house, settings }
    }

    /// How long running bodies may go on at a stop.
    pub(super) fn drain_timeout(&self) -> Duration {
        self.config.drain_timeout.into()
    }

    /// Reads, compares, applies; after an error everything stays as it was.
    pub(super) async fn reload(&mut self) -> Result<ReloadView, String> {
        let file = self.file.clone();
        let loaded =
            tokio::task::spawn_blocking(move || load(file.as_deref(), &Environment::of_process())).await;
        let loaded =
            loaded.map_err(|error| error.to_string())?.map_err(|complaints| complaints.to_string())?;
        let (new, sources) = (loaded.config, loaded.sources);
        self.logging.configure(&new.log.level).map_err(|error| error.to_string())?;
        let view = compare(&self.started, &self.config, &new);
        self.house.cache.set_limits(new.cache.clone());
        let sweeper = self.house.clone();
        // joined by the runtime: blocking tasks are waited for when it shuts down, and this one always ends
        drop(tokio::task::spawn_blocking(move || super::chores::sweep(&sweeper)));
        self.house.proxy.set_config(new.proxy.clone());
        self.house.proxy.set_mirrors(new.mirror.clone());
        self.house.proxy.set_interceptor(interceptor(&new, &self.house.clock).await?);
        self.house.engine.set_config(new.engine(), new.rule.clone());
        self.house.bans.reconfigure(new.bans.clone());
        self.house.limits.set(new.rates(), new.limits.clone()).await;
        self.settings.put(&new, &sources, Some((&self.started, &view.need_restart)));
        self.config = Arc::new(new);
        Ok(view)
    }
}

/// The authority may be another one, also where no setting changed.
async fn interceptor(new: &Config, clock: &SharedClock) -> Result<Interceptor, String> {
    let (config, folder, clock) = (new.intercept.clone(), new.state_dir.clone(), Arc::clone(clock));
    let opened = tokio::task::spawn_blocking(move || Interceptor::open(config, &folder, clock)).await;
    opened.map_err(|error| error.to_string())
}

/// What changes now, and what differs from the start and needs a new one.
fn compare(started: &Config, old: &Config, new: &Config) -> ReloadView {
    let (applied, _) = changed(old, new).into_iter().partition(|key| holds_at_once(key));
    let (_, need_restart) =
        changed(started, new).into_iter().partition::<Vec<_>, _>(|key| holds_at_once(key));
    ReloadView { applied, need_restart }
}

fn changed(old: &Config, new: &Config) -> Vec<String> {
    let (old, new) = (flat(old), flat(new));
    let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    keys.filter(|key| old.get(*key) != new.get(*key)).cloned().collect()
}

fn holds_at_once(key: &str) -> bool {
    let holds = |at_once: &&str| *at_once == key || (at_once.ends_with('.') && key.starts_with(*at_once));
    key == "drain_timeout" || AT_ONCE.iter().any(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_named_by_whether_it_holds_at_once() {
        let old = Config::default();
        let mut new = old.clone();
        new.cache.max_size = crate::unit::ByteSize(7);
        new.bans.strikes = 9;
        new.peers.port = 1;
        new.site = "other".to_owned();
        let view = compare(&old, &old, &new);
        assert_eq!(view.applied, ["bans.strikes", "cache.max_size"]);
        assert_eq!(view.need_restart, ["peers.port", "site"]);
        let again = compare(&old, &new, &new);
        assert!(again.applied.is_empty());
        assert_eq!(again.need_restart, ["peers.port", "site"], "told until it is restarted");
    }
}
