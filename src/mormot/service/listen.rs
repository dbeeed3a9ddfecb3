//! The listening socket of a seat: opened when there is one, tried again when it cannot be.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::mormot::seat::Seat;
use crate::mormot::server::Server;
use crate::net::listener::bind;
use crate::shutdown::{Drain, Shutdown};
use crate::telemetry::Health;

/// How often a port that is taken is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// The socket, and who serves there.
#[derive(Debug)]
pub(super) struct Listening {
    server: Option<Server>,
    /// Bound before there was a task.
    bound: Option<TcpListener>,
    running: Option<(JoinHandle<()>, Shutdown)>,
    retry: Option<Instant>,
}

impl Listening {
    /// Without a server it never opens.
    pub(super) fn new(server: Option<Server>, bound: Option<TcpListener>) -> Self {
        Self { server, bound, running: None, retry: None }
    }

    pub(super) fn is_open(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn retry(&self) -> Option<Instant> {
        self.retry
    }

    /// Serves at this seat, if it does not and it is time.
    pub(super) fn open(&mut self, seat: Seat, stop: &Shutdown, drain: &Drain, health: &Health, now: Instant) {
        if self.running.as_ref().is_some_and(|(task, _)| task.is_finished()) {
            self.running = None;
        }
        let Some(server) = self.server.clone().filter(|_| self.running.is_none()) else { return };
        if self.retry.is_some_and(|retry| retry > now) {
            return;
        }
        let address = SocketAddr::from(seat.peer(seat.address));
        let bound = self.bound.take().filter(|bound| bound.local_addr().is_ok_and(|at| at == address));
        match bound.map_or_else(|| bind(address, "mormot.port"), Ok) {
            Ok(listener) => {
                self.retry = None;
                health.clear("mormot-port");
                let (stop, drain) = (stop.child(), drain.clone());
                let asked = stop.clone();
                let task = tokio::spawn(async move {
                    if let Err(error) = server.run(listener, seat.address, &asked, &drain).await {
                        tracing::warn!(%error, "mORMot peers can no longer connect");
                    }
                });
                self.running = Some((task, stop));
            }
            Err(error) => {
                self.retry = Some(now + RETRY);
                if health.raise("mormot-port", error.to_string()) {
                    tracing::warn!(%error, "mORMot peers cannot connect; it is tried again");
                }
            }
        }
    }

    /// Ends it and waits for its end.
    pub(super) async fn close(&mut self) {
        let Some((task, stop)) = self.running.take() else { return };
        stop.request();
        if task.await.is_err() {
            tracing::error!("the task that serves mORMot peers ended early");
        }
    }
}
