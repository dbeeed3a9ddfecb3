//! Stopping: [`Shutdown`] asks everybody to stop, [`Drain`] waits until all guests have left.
//!
//! Every long task takes a [`Shutdown`] and ends when it is requested; every task of a bounded life (a
//! connection, a running transfer) is spawned on a [`Drain`], so that somebody always joins it.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A request to stop that everybody can hear.
#[derive(Debug, Clone, Default)]
pub struct Shutdown(CancellationToken);

/// The tasks that may finish on their own before the process ends.
#[derive(Debug, Clone, Default)]
pub struct Drain(TaskTracker);

/// Somebody who is waited for without being a task; leaves when dropped.
#[derive(Debug, Clone)]
pub struct Guest(#[expect(dead_code, reason = "held for its drop")] TaskTrackerToken);

impl Shutdown {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks; asking again does nothing more.
    pub fn request(&self) {
        self.0.cancel();
    }

    /// Whether somebody asked.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until somebody asks.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }

    /// A request of its own that also hears this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }
}

impl Drain {
    /// No guests yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a task that [`Drain::wait`] will wait for.
    pub fn spawn<F>(&self, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.spawn(task)
    }

    /// Is waited for until the guest is dropped.
    pub fn enter(&self) -> Guest {
        Guest(self.0.token())
    }

    /// How many guests there are.
    pub fn guests(&self) -> usize {
        self.0.len()
    }

    /// Waits until all guests have left; false if the deadline came first.
    pub async fn wait(&self, deadline: Duration) -> bool {
        self.0.close();
        tokio::time::timeout(deadline, self.0.wait()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn drain_waits_for_guests_and_no_longer() {
        let (drain, stop) = (Drain::new(), Shutdown::new());
        let child = stop.child();
        let guest = drain.spawn(async move { child.requested().await });
        assert!(!drain.wait(Duration::from_secs(1)).await);
        stop.request();
        assert!(drain.wait(Duration::from_secs(1)).await);
        assert!(guest.await.is_ok() && stop.is_requested());
    }
}
