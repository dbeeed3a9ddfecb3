//! `larder get`: download, verify, resume.
//!
//! Through the daemon if one answers, else with the same engine in this process. A file appears under its
//! name only when it is whole and right; until then it is `FILE.part`, and a later `get` goes on from there.

mod fetched;
mod job;
mod list;
mod mget;
mod part;
mod progress;
mod sums;
mod way;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use super::{Exit, Failure, GetArgs, Output};
use crate::clock::{Clock as _, SystemClock};
use crate::unit::ByteSize;

use job::Getter;
use progress::Bars;

/// One finished download.
#[derive(Debug, Serialize)]
struct Done {
    url: String,
    file: String,
    size: u64,
    sha256: String,
    /// `origin`, `peer 10.0.0.7`, `cache`…
    source: String,
    seconds: f64,
}

/// Downloads what is named, a few at a time; the first failure's status is the command's.
pub(crate) fn run(args: GetArgs) -> Result<Exit, Failure> {
    let args = &mget::understood(args)?;
    let things = list::things(args)?;
    if things.len() > 1 && args.output.as_ref().is_some_and(|output| output.as_os_str() != "-") {
        return Err(Failure::new(Exit::Usage, "several downloads cannot go into one file")
            .hint("give a folder with -O"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Failed, format!("no runtime: {error}")))?;
    let done = runtime.block_on(all(args, things));
    runtime.shutdown_timeout(Duration::from_millis(500));
    done
}

async fn all(args: &GetArgs, things: Vec<list::Thing>) -> Result<Exit, Failure> {
    let bars = Bars::new(args.json);
    let getter = Getter::open(args, &things, bars.clone()).await?;
    let at_once = at_once(args, &things);
    let (mut finished, mut failed) = (Vec::new(), None);
    let shared = &getter;
    let mut coming = stream::iter(things.into_iter().enumerate())
        .map(|(place, thing)| async move { (place, shared.get(args, thing, SystemClock.instant()).await) })
        .buffer_unordered(at_once);
    loop {
        let got = tokio::select! {
            got = coming.next() => got,
            () = interrupted() => {
                // what came so far stays for the next time; what only this run needed goes
                drop(coming);
                getter.close().await;
                return Err(Failure::new(Exit::Failed, "interrupted").hint("run the same command again to go on"));
            }
        };
        let Some((place, got)) = got else { break };
        match got {
            Ok(done) => {
                say(args, &bars, &done);
                finished.push((place, done));
            }
            Err(failure) if failed.is_none() => failed = Some(failure),
            Err(failure) => bars.note(&format!("larder: {}", failure.sentence())),
        }
    }
    drop(coming);
    getter.close().await;
    finished.sort_by_key(|(place, _)| *place);
    let finished: Vec<Done> = finished.into_iter().map(|(_, done)| done).collect();
    if args.json {
        Output::new().json(&finished)?;
    }
    failed.map_or(Ok(Exit::Done), Err)
}

/// How many downloads run at one time: one where two would go to the same place.
fn at_once(args: &GetArgs, things: &[list::Thing]) -> usize {
    let places: HashSet<_> = things.iter().map(|thing| list::file(args, thing)).collect();
    let apart = places.len() == things.len() && !places.contains(&None);
    if apart { args.parallel.into() } else { 1 }
}

/// Waits for Ctrl-C or a polite request to end.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}

fn say(args: &GetArgs, bars: &Bars, done: &Done) {
    if args.json || done.file == "-" {
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = if done.seconds > 0.0 { done.size as f64 / done.seconds / 1e6 } else { 0.0 };
    bars.note(&format!(
        "{}  {}  {:.1}s  {rate:.1} MB/s  from {}",
        done.file,
        ByteSize(done.size),
        done.seconds,
        done.source
    ));
}

fn seconds_since(started: Instant) -> f64 {
    let passed = SystemClock.instant().saturating_duration_since(started);
    (passed.as_secs_f64() * 1000.0).round() / 1000.0
}
