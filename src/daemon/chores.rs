//! Timed chores: bringing index and disk in step after the start, making room, watching the disk, the hourly
//! sums, the backup.

use std::time::Duration;

use super::build::House;
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
    loop {
        let stopping = tokio::select! {
            () = stop.requested() => true,
            () = tokio::time::sleep(SWEEP) => false,
        };
        house.counted.settle(&house);
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

/// Makes room and looks after what is out of date. Blocks on the disk.
pub(super) fn sweep(house: &House) {
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
