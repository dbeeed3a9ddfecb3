//! What systemd is told: ready, reloading, stopping, a line of status, and that the daemon is alive.
//!
//! Without systemd nothing is said. A message that cannot be sent is logged and does no harm.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::shutdown::Shutdown;

/// The way to the service manager; a cheap clone.
#[derive(Debug, Clone)]
pub struct Notifier {
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Reads from the environment what the service manager expects.
    pub fn from_env() -> Self {
        Self { watchdog: sd_notify::watchdog_enabled().filter(|period| !period.is_zero()) }
    }

    /// The doors are open, or the reload is done.
    pub fn ready(&self) {
        send(&[NotifyState::Ready]);
    }

    /// The configuration is read again; [`Notifier::ready`] ends it.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            Err(error) => tracing::debug!(%error, "no monotonic time for the service manager"),
        }
    }

    /// The daemon ends.
    pub fn stopping(&self) {
        send(&[NotifyState::Stopping]);
    }

    /// How often a sign of life is due.
    pub fn sign_of_life_every(&self) -> Option<Duration> {
        self.watchdog.map(|period| period / 3)
    }

    /// Gives signs of life until the daemon has stopped. `alive` is asked before each; while it says no, systemd
    /// hears nothing and will restart the daemon.
    pub async fn keep_alive(&self, alive: impl Fn() -> bool, stopped: Shutdown) {
        let Some(period) = self.sign_of_life_every() else { return stopped.requested().await };
        loop {
            if alive() {
                send(&[NotifyState::Watchdog]);
            }
            if tokio::time::timeout(period, stopped.requested()).await.is_ok() {
                return;
            }
        }
    }
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager could not be told");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_come_thrice_a_period_until_the_end() {
        let notifier = Notifier { watchdog: Some(Duration::from_secs(30)) };
        let (asked, stopped) = (std::cell::Cell::new(0), Shutdown::new());
        let count = || {
            asked.set(asked.get() + 1);
            true
        };
        let life = notifier.keep_alive(count, stopped.clone());
        let end = async {
            tokio::time::sleep(Duration::from_secs(95)).await;
            stopped.request();
        };
        tokio::join!(life, end);
        assert_eq!(asked.get(), 10);
    }

    #[tokio::test]
    async fn without_a_watchdog_it_only_waits() {
        let stopped = Shutdown::new();
        stopped.request();
        Notifier { watchdog: None }.keep_alive(|| panic!("nobody asked"), stopped).await;
    }
}
