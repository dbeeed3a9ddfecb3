//! `larder prefetch`: has the daemon fetch a list of things for later.

use std::collections::VecDeque;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use http::Method;

use super::admin_client::AdminClient;
use super::args::PrefetchArgs;
use super::{ConfigFile, Exit, Failure, Output, output};
use crate::admin::{FetchOutcome, FetchView, FetchesRequest, FetchesView};
use crate::clock::{Clock as _, SystemClock};
use crate::unit::{ByteSize, Span};

/// How many things one request names.
const BATCH: usize = 64;
/// How long one request may take.
const ROUND: Duration = Duration::from_secs(600);
/// How often what was late is asked for again although nothing came of it.
const IDLE_ROUNDS: usize = 3;

pub(super) fn run(node: &ConfigFile, args: &PrefetchArgs) -> Result<Exit, Failure> {
    let lines = read(&args.list)?;
    if lines.is_empty() {
        return Err(Failure::new(Exit::Usage, "the list names nothing").hint("write one [DIGEST@]URL a line"));
    }
    let client = AdminClient::of(node)?;
    let until = args.deadline.map(|span| SystemClock.instant() + span.0);
    let done = fetch(&client, lines, until)?;
    let mut out = Output::new();
    if args.json {
        out.json(&FetchesView { items: done.clone() })?;
    } else {
        report(&mut out, &done)?;
    }
    let missing = done.iter().any(|it| matches!(it.outcome, FetchOutcome::Failed | FetchOutcome::Late));
    Ok(if missing { Exit::Failed } else { Exit::Done })
}

/// One round after the other, until nothing is late, nothing comes any more, or the time is over.
fn fetch(
    client: &AdminClient,
    lines: Vec<String>,
    until: Option<Instant>,
) -> Result<Vec<FetchView>, Failure> {
    let (mut done, mut waiting, mut idle) = (Vec::new(), VecDeque::from(lines), 0);
    while !waiting.is_empty() {
        let left = until.map_or(ROUND, |until| until.saturating_duration_since(SystemClock.instant()));
        if left.is_zero() || idle >= IDLE_ROUNDS {
            let shown = |line: &str| line.split('?').next().unwrap_or_default().to_owned();
            done.extend(waiting.iter().map(|line| FetchView { url: shown(line), ..FetchView::late() }));
            break;
        }
        let urls: Vec<String> = waiting.drain(..waiting.len().min(BATCH)).collect();
        let request = FetchesRequest { urls, deadline: Some(Span(left.min(ROUND))) };
        let view: FetchesView = client.call(Method::POST, "/api/v1/fetches", Some(&request))?;
        let before = done.len();
        for (url, item) in request.urls.into_iter().zip(view.items) {
            if item.outcome == FetchOutcome::Late {
                waiting.push_back(url);
            } else {
                done.push(item);
            }
        }
        idle = if done.len() > before { 0 } else { idle + 1 };
    }
    Ok(done)
}

fn read(list: &Path) -> Result<Vec<String>, Failure> {
    let mut text = String::new();
    let read = if list.as_os_str() == "-" {
        std::io::stdin().lock().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(list).map(|whole| text = whole)
    };
    read.map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read the list {}: {error}", list.display()))
            .hint("name a file with one [DIGEST@]URL a line, or `-` for standard input")
    })?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

fn report(out: &mut Output, done: &[FetchView]) -> Result<(), Failure> {
    for item in done {
        if let Some(why) = &item.why {
            output::warn(&format!("{}: {why}", item.url), "");
        }
    }
    let of = |outcome: FetchOutcome| {
        let these = done.iter().filter(move |item| item.outcome == outcome);
        these.fold((0_u64, 0_u64), |(count, bytes), item| (count + 1, bytes + item.bytes))
    };
    for (outcome, what) in [
        (FetchOutcome::Held, "were here already"),
        (FetchOutcome::Peer, "came from neighbours"),
        (FetchOutcome::Origin, "came from their origins"),
        (FetchOutcome::Passed, "may not be kept"),
        (FetchOutcome::Failed, "failed"),
        (FetchOutcome::Late, "were too late"),
    ] {
        let (count, bytes) = of(outcome);
        if count > 0 {
            out.line(format!("{count} {what}, {}", ByteSize(bytes)))?;
        }
    }
    Ok(())
}
