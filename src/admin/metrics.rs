//! Numbers for Prometheus: counters and gauges of this node, gathered from snapshots when they are asked for.
//! None names a URL, a file or an address.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap};

use super::control::{ActionError, Answer};
use super::health::Readiness;
use super::server::Shared;
use super::status::Sources;
use crate::catalogue::CatalogueView;
use crate::fetch::Measures;
use crate::mormot::View;
use crate::telemetry::{Exposition, TextFormat};

pub(super) async fn metrics(State(shared): State<Arc<Shared>>, request: HeaderMap) -> Answer {
    let format = TextFormat::wanted_by(request.get(ACCEPT).and_then(|field| field.to_str().ok()));
    let text = gather(&shared.sources)
        .encode(format)
        .map_err(|_ignored| ActionError::Failed("the numbers cannot be written".to_owned()))?;
    let response: Response = ([(CONTENT_TYPE, format.content_type())], text).into_response();
    Ok(response)
}

fn gather(sources: &Sources) -> Exposition {
    let mut numbers = Exposition::new();
    let about = &sources.about;
    numbers.info("build", "The program", &[("version", about.version)]);
    numbers.seconds_gauge("uptime", "Time since the start", sources.uptime().as_secs_f64());
    let ready = *sources.readiness.borrow();
    numbers.gauge("ready", "Whether the doors can be used", u64::from(ready == Readiness::Ready));
    let troubles = sources.health.troubles();
    let codes: Vec<(&str, bool)> = troubles.iter().map(|trouble| (trouble.code, true)).collect();
    numbers.gauge("troubles", "Present troubles", u64::try_from(codes.len()).unwrap_or(u64::MAX));
    numbers.states("trouble", "Present troubles by code", "code", &codes);
    traffic(&mut numbers, sources);
    durations(&mut numbers, &sources.measures);
    holdings(&mut numbers, sources);
    if let Some(network) = (sources.mormot)().and_then(|view| view.network) {
        mormot(&mut numbers, &network);
    }
    if let Some(view) = (sources.catalogue)() {
        catalogue(&mut numbers, &view);
    }
    numbers
}

fn catalogue(numbers: &mut Exposition, view: &CatalogueView) {
    numbers.gauge("catalogue_connected", "Whether the fleet's catalogue answers", u64::from(view.connected));
    numbers.counter("catalogue_told", "Rows written into the fleet's catalogue", view.told);
    numbers.counter("catalogue_asked", "Digests looked up in the fleet's catalogue", view.asked);
    numbers.counter("catalogue_found", "Of these, where a node was named", view.found);
    numbers.counter("catalogue_unanswered", "Of these, what was not answered in time", view.unanswered);
}

fn traffic(numbers: &mut Exposition, sources: &Sources) {
    let sums = (sources.traffic)();
    numbers.counter("requests", "Requests answered by the doors", sums.requests);
    numbers.bytes_counter("client_sent", "Body bytes given to clients", sums.bytes_to_clients);
    numbers.bytes_counters(
        "source_received",
        "Body bytes by where they came from",
        "source",
        &[
            ("cache", sums.bytes_from_cache),
            ("peer", sums.bytes_from_peers),
            ("origin", sums.bytes_from_origin),
        ],
    );
    numbers.bytes_counter("peer_sent", "Body bytes given to neighbours", sums.bytes_to_peers);
    numbers.bytes_counter("discarded", "Bytes received and never delivered", sums.bytes_discarded);
    numbers.bytes_counter("sidecars", "Checksum files asked for beside downloads", sums.bytes_sidecars);
    numbers.bytes_counter("tunnelled", "Bytes through CONNECT tunnels, both ways", sums.bytes_tunnelled);
}

fn durations(numbers: &mut Exposition, measures: &Measures) {
    let help = "Time from a request to the head of its answer";
    numbers.durations("answer_duration", help, &measures.answers);
    let help = "Time from asking neighbours to knowing who holds a thing";
    numbers.durations("peer_find_duration", help, &measures.finds);
    numbers.rates("transfer_rate", "Speed of whole transfers", &measures.rates);
}

fn mormot(numbers: &mut Exposition, view: &View) {
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let (frames, served) = (&view.frames, &view.served);
    numbers.gauge("mormot_peers", "mORMot peers heard lately", count(view.peers));
    numbers.bytes_counter("mormot_sent", "Body bytes given to mORMot peers", served.bytes);
    numbers.bytes_counter("mormot_received", "Body bytes read from mORMot peers", view.bytes_received);
    numbers.counter("mormot_frames_received", "Datagrams at the mORMot port", frames.received);
    numbers.counter("mormot_frames_sent", "Frames sent to mORMot peers", frames.sent);
    let refused = frames.length + frames.checksum + frames.forged + frames.unknown;
    numbers.counter("mormot_frames_refused", "Datagrams that were no frames of this network", refused);
    numbers.counter("mormot_requests_given", "Requests of mORMot peers answered with bytes", served.given);
    numbers.counter(
        "mormot_requests_missing",
        "Requests of mORMot peers for what is not here",
        served.missing,
    );
    numbers.counter(
        "mormot_requests_refused",
        "Requests of mORMot peers without a right token",
        served.refused,
    );
}

fn holdings(numbers: &mut Exposition, sources: &Sources) {
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let cache = (sources.cache)();
    numbers.gauge("cache_blobs", "Blobs held", cache.blobs);
    numbers.gauge("cache_pinned_blobs", "Blobs kept from eviction", cache.pinned);
    numbers.counter("cache_damaged_blobs", "Blobs found damaged and removed", cache.damaged);
    numbers.bytes_gauge("cache_size", "Bytes held", cache.bytes);
    numbers.bytes_gauge("cache_limit", "The most bytes kept", cache.max_bytes);
    numbers.gauge("peers", "Neighbours heard lately", count((sources.peers)().len()));
    numbers.gauge("transfers", "Transfers running", count((sources.transfers)().len()));
    numbers.gauge("bans", "Addresses refused", count((sources.bans)().len()));
}
