//! The search for rot: reading everything that is kept once in a period, at a bounded rate, and getting again what
//! was damaged.

use std::time::Duration;

use super::build::House;
use crate::cache::{Pass, Reading, SCRUB_STEP, Verdict};
use crate::digest::Digest;
use crate::shutdown::Shutdown;

/// How often it is looked whether a pass is due, and whether a blob could not be read.
const LOOK: Duration = Duration::from_secs(5);
/// How often it is remembered how far a pass has come.
const NOTE: Duration = Duration::from_secs(30);

/// Searches until asked to stop.
pub(super) async fn run(house: House, stop: Shutdown) {
    tokio::select! {
        () = stop.requested() => {}
        () = search(&house) => {}
    }
}

async fn search(house: &House) {
    let mut pass = house.cache.last_pass();
    let mut damaged_before = house.cache.damaged();
    loop {
        for digest in house.cache.doubted() {
            tracing::info!(blob.digest = %digest, "a blob could not be read: looking at it");
            if house.cache.verify(&digest).await == Verdict::Rotten {
                repair(house, digest).await;
            }
        }
        let every = house.cache.limits().scrub_every.0;
        if every.is_zero() {
            tokio::time::sleep(LOOK).await;
            continue;
        }
        if pass.is_due(house.clock.now(), every) {
            (pass, damaged_before) = (Pass::starting(house.clock.now()), house.cache.damaged());
        }
        if !pass.is_over {
            walk(house, &mut pass).await;
            pass = Pass { is_over: true, at: None, ..pass };
            house.cache.note_pass(&pass);
            let found = house.cache.damaged().saturating_sub(damaged_before);
            if found == 0 {
                house.cache.pass_was_clean();
            }
            tracing::info!(blobs.damaged = found, "everything that is kept was read again");
        }
        tokio::time::sleep(LOOK.min(every)).await;
    }
}

/// Looks at all that a pass has left.
async fn walk(house: &House, pass: &mut Pass) {
    let mut noted = house.clock.now();
    loop {
        let (cache, so_far) = (house.cache.clone(), *pass);
        let left = tokio::task::spawn_blocking(move || cache.left_of(&so_far)).await.unwrap_or_default();
        if left.is_empty() {
            return;
        }
        for digest in left {
            if look(house, digest).await == Some(Verdict::Rotten) {
                repair(house, digest).await;
            }
            pass.at = Some(digest);
            if house.clock.now().since(noted) >= NOTE {
                noted = house.clock.now();
                house.cache.note_pass(pass);
            }
        }
    }
}

/// Reads one blob at the rate that is allowed; none if the thread that reads ended early.
async fn look(house: &House, digest: Digest) -> Option<Verdict> {
    let cache = house.cache.clone();
    let opened = tokio::task::spawn_blocking(move || cache.scrub_open(&digest)).await.ok()?;
    let Some(mut reading) = opened else { return Some(Verdict::Missing) };
    let read = loop {
        let begun = house.clock.instant();
        let (now, step) = tokio::task::spawn_blocking(move || one_step(reading)).await.ok()?;
        reading = now;
        match step {
            Ok(0) => break Ok(()),
            Ok(bytes) => {
                let took = house.clock.instant().saturating_duration_since(begun);
                tokio::time::sleep(pace(house, bytes).saturating_sub(took)).await;
            }
            Err(error) => break Err(error),
        }
    };
    let cache = house.cache.clone();
    tokio::task::spawn_blocking(move || cache.scrub_judge(reading, read)).await.ok()
}

fn one_step(mut reading: Reading) -> (Reading, std::io::Result<usize>) {
    let step = reading.step(&mut vec![0; SCRUB_STEP]);
    (reading, step)
}

/// How long so many bytes must take.
fn pace(house: &House, bytes: usize) -> Duration {
    let rate = house.cache.limits().scrub_rate.0;
    if rate == 0 {
        return Duration::ZERO;
    }
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    Duration::from_micros(bytes.saturating_mul(1_000_000) / rate)
}

/// Gets a blob again that was damaged, from neighbours or from where it came.
async fn repair(house: &House, digest: Digest) {
    let is_back = house.engine.repair(digest).await;
    tracing::info!(blob.digest = %digest, is_back, "tried to get a damaged blob again");
}
