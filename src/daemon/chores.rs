//! Timed chores: bringing index and disk in step after the start, making room, watching the disk, the hourly
//! sums, the backup.

use std::time::Duration;

use super::build::House;
use super::sources;
use crate::fetch::Traffic;
use crate::index::UsageRecord;
use crate::shutdown::Shutdown;

/// How often room is made and bans are looked over.
const SWEEP: Duration = Duration::from_secs(30);
/// How often what cannot be rebuilt is backed up.
const BACKUP: Duration = Duration::from_secs(86_400);

/// Does the chores until asked to stop.
pub(super) async fn run(house: House, stop: Shutdown) {
    let first = {
        let (house, stop) = (house.clone(), stop.clone());
        blocking(move || reconcile(&house, &stop))
    };
    first.await;
    let mut since_backup = BACKUP;
    let mut counted = Counted::default();
    loop {
        let stopping = tokio::select! {
            () = stop.requested() => true,
            () = tokio::time::sleep(SWEEP) => false,
        };
        counted.add(&house);
        if stopping {
            return;
        }
        let sweeper = house.clone();
        blocking(move || sweep(&sweeper)).await;
        since_backup += SWEEP;
        if since_backup >= BACKUP {
            since_backup = Duration::ZERO;
            let keeper = house.clone();
            blocking(move || backup(&keeper)).await;
        }
    }
}

/// What of the traffic stands in the hourly sums already.
#[derive(Default)]
struct Counted(Traffic);

impl Counted {
    /// Adds what came since the last time to the sums of this hour.
    fn add(&mut self, house: &House) {
        let (now, before) = (sources::traffic(house), self.0);
        let more = UsageRecord {
            requests: now.requests.saturating_sub(before.requests),
            bytes_to_clients: now.bytes_to_clients.saturating_sub(before.bytes_to_clients),
            bytes_from_cache: now.bytes_from_cache.saturating_sub(before.bytes_from_cache),
            bytes_from_peers: now.bytes_from_peers.saturating_sub(before.bytes_from_peers),
            bytes_from_origin: now.bytes_from_origin.saturating_sub(before.bytes_from_origin),
            bytes_to_peers: now.bytes_to_peers.saturating_sub(before.bytes_to_peers),
            bytes_discarded: now.bytes_discarded.saturating_sub(before.bytes_discarded),
            ..UsageRecord::default()
        };
        if more != UsageRecord::default() {
            house.cache.index().add_usage(more, house.clock.now());
        }
        self.0 = now;
    }
}

async fn blocking(chore: impl FnOnce() + Send + 'static) {
    if tokio::task::spawn_blocking(chore).await.is_err() {
        tracing::error!("a chore ended early");
    }
}

fn reconcile(house: &House, stop: &Shutdown) {
    if let Err(error) = house.cache.reconcile(|| stop.is_requested()) {
        tracing::warn!(%error, "failed to bring the index in step with the disk");
    }
}

fn sweep(house: &House) {
    house.bans.sweep();
    house.cache.index().forget_old(house.clock.now());
    match house.cache.sweep(None) {
        Ok((0, _)) => {}
        Ok((blobs, bytes)) => tracing::info!(blobs, bytes, "made room"),
        Err(error) => tracing::warn!(%error, "failed to make room"),
    }
    house.cache.look_at_disk();
}

fn backup(house: &House) {
    match house.cache.index().backup_state() {
        Ok(file) => tracing::debug!(file.path = %file.display(), "backed up what cannot be rebuilt"),
        Err(error) => tracing::warn!(%error, "failed to back up what cannot be rebuilt"),
    }
}
