//! Keeping the rates to what holds at this hour.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::SharedClock;
use crate::http::Uplink;
use crate::net::limits::{Limit, Rates};
use crate::origin::Origin;
use crate::shutdown::Shutdown;

/// Hours are written in minutes: the next may begin then.
const MINUTE: u64 = 60_000;

/// What holds the rates; a cheap clone.
#[derive(Debug, Clone)]
pub(super) struct Limits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Mutex<(Rates, Vec<Limit>)>,
    uplink: Uplink,
    origin: Origin,
    clock: SharedClock,
    /// What holds now, once somebody looked.
    now: Mutex<Option<Rates>>,
}

impl Limits {
    pub(super) fn new(uplink: Uplink, origin: Origin, clock: SharedClock) -> Self {
        Self(Arc::new(Inner { settings: Mutex::default(), uplink, origin, clock, now: Mutex::default() }))
    }

    /// These settings hold from the next look on.
    pub(super) fn prepare(&self, rates: Rates, limits: Vec<Limit>) {
        *self.0.settings.lock().unwrap_or_else(PoisonError::into_inner) = (rates, limits);
    }

    /// These settings hold at once.
    pub(super) async fn set(&self, rates: Rates, limits: Vec<Limit>) {
        self.prepare(rates, limits);
        self.look().await;
    }

    /// Looks at the clock every minute until asked to stop.
    pub(super) async fn run(&self, stop: Shutdown) {
        loop {
            self.look().await;
            // a clock that is set meanwhile is noticed within a minute, too
            let wait = Duration::from_millis(MINUTE - self.0.clock.now().0 % MINUTE);
            if tokio::time::timeout(wait, stop.requested()).await.is_ok() {
                return;
            }
        }
    }

    /// The local time may have to be read from the zone's file.
    async fn look(&self) {
        let limits = self.clone();
        if tokio::task::spawn_blocking(move || limits.apply()).await.is_err() {
            tracing::error!("the limits of this hour could not be found out: the old ones stay");
        }
    }

    fn apply(&self) {
        let local = self.0.clock.now().local();
        let rates = {
            let settings = self.0.settings.lock().unwrap_or_else(PoisonError::into_inner);
            settings.0.at(&settings.1, local)
        };
        let mut now = self.0.now.lock().unwrap_or_else(PoisonError::into_inner);
        if *now == Some(rates) {
            return;
        }
        if now.is_some() || rates != Rates::default() {
            let (upload, download) = (rates.upload, rates.download);
            tracing::info!(rate.upload = %upload, rate.download = %download, "these limits hold now");
        }
        self.0.uplink.set_rate(rates.upload);
        self.0.origin.set_download_rate(rates.download);
        *now = Some(rates);
    }
}
