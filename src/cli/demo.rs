//! `larder demo`: an origin and three nodes on this machine share one download.
//!
//! The nodes are this very program with folders of their own, on 127.0.0.2 to 127.0.0.4; the origin is a small
//! server in this process that counts what it sends. Everything is removed at the end, also after Ctrl-C.

mod nodes;
mod origin;

use std::time::{Duration, Instant};

use serde::Serialize;

use super::table::Table;
use super::{DemoArgs, Exit, Failure, Output};
use crate::clock::{Clock as _, SystemClock};
use crate::digest::{Digest, Hasher};
use crate::unit::ByteSize;

use nodes::{Node, Site};
use origin::DemoOrigin;

/// The size of the file that is shared.
const SIZE: u64 = 64 * 1024 * 1024;
/// The whole demonstration takes seconds; this is for machines that hang.
const DEADLINE: Duration = Duration::from_secs(120);

/// One line of the result.
#[derive(Debug, Serialize)]
struct Row {
    node: String,
    source: String,
    bytes: u64,
    origin_sent: u64,
    seconds: f64,
    megabytes_per_second: f64,
    right: bool,
}

/// Runs the demonstration.
pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Failed, format!("no runtime: {error}")))?;
    let rows = runtime.block_on(async {
        tokio::select! {
            rows = tokio::time::timeout(DEADLINE, show(args)) => rows.unwrap_or_else(|_late| {
                Err(Failure::new(Exit::Failed, "the demonstration took too long"))
            }),
            _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Failed, "interrupted")),
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let rows = rows?;
    let is_right = rows.iter().all(|row| row.right) && rows.iter().skip(1).all(|row| row.origin_sent == 0);
    print(args, &rows)?;
    if is_right {
        Ok(Exit::Done)
    } else {
        Err(Failure::new(Exit::Failed, "a node did not get the file from its neighbour"))
    }
}

async fn show(args: &DemoArgs) -> Result<Vec<Row>, Failure> {
    let failed = |error: String| Failure::new(Exit::Failed, error);
    let note = |text: &str| {
        if !args.json {
            super::output::note(text)
        }
    };
    let origin = DemoOrigin::start(SIZE).await.map_err(|error| failed(error.to_string()))?;
    note(&format!("An origin server offers a file of {}; three nodes share a secret.", ByteSize(SIZE)));
    let site = Site::start(3).await.map_err(failed)?;
    site.wait_until_acquainted().await.map_err(failed)?;
    note("The nodes have found each other by broadcast. Each downloads the file through its own proxy port:");
    let (mut rows, mut before) = (Vec::new(), 0);
    for node in site.nodes() {
        let row = download(node, &origin, before).await.map_err(failed)?;
        before += row.origin_sent;
        rows.push(row);
    }
    site.stop().await;
    Ok(rows)
}

async fn download(node: &Node, origin: &DemoOrigin, before: u64) -> Result<Row, String> {
    let started = SystemClock.instant();
    let (mut hasher, mut source) = (Hasher::new(), String::new());
    node.get(&origin.url(), origin.digest(), |status, bytes| {
        status.clone_into(&mut source);
        hasher.update(bytes);
    })
    .await?;
    let (bytes, seconds) = (hasher.length(), passed(started));
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = (bytes as f64 / 1e5 / seconds.max(0.001)).round() / 10.0;
    Ok(Row {
        node: node.name().to_owned(),
        source,
        bytes,
        origin_sent: origin.sent().saturating_sub(before),
        seconds,
        megabytes_per_second: rate,
        right: is_right(hasher, origin.digest()),
    })
}

fn is_right(hasher: Hasher, digest: Digest) -> bool {
    hasher.finish() == digest
}

fn passed(started: Instant) -> f64 {
    let passed = SystemClock.instant().saturating_duration_since(started);
    (passed.as_secs_f64() * 1000.0).round() / 1000.0
}

fn print(args: &DemoArgs, rows: &[Row]) -> Result<(), Failure> {
    let mut output = Output::new();
    if args.json {
        return output.json(&rows);
    }
    let mut table = Table::new(&["NODE", "FROM", "GOT", "ORIGIN SENT", "TIME", "RATE", "SHA-256"]);
    for row in rows {
        table.row([
            row.node.clone(),
            row.source.clone(),
            ByteSize(row.bytes).to_string(),
            ByteSize(row.origin_sent).to_string(),
            format!("{:.2}s", row.seconds),
            format!("{:.0} MB/s", row.megabytes_per_second),
            if row.right { "right" } else { "WRONG" }.to_owned(),
        ]);
    }
    output.text(&table.text())?;
    output.line("The file came once from the origin, then from the neighbour.")
}
