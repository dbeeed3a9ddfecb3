//! What the administrator's side shows and does, from the rooms of the house.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::{mpsc, oneshot, watch};

use super::build::House;
use super::neighbours::Seat;
use super::prefetch::Prefetcher;
use super::settings::Settings;
use super::{imports, usage};
use crate::admin::{
    About, ActionError, BanView, BlockRequest, BlockView, CacheView, Control, Deed, ExplanationView,
    GcRequest, GcView, LogRequest, LogView, MormotView, PeerView, PurgeRequest, PurgeView, Readiness,
    ReloadView, Sources, VerifyView,
};
use crate::ban::Ban;
use crate::cache::Verdict;
use crate::config::Config;
use crate::digest::Digest;
use crate::fetch::{Explanation, Traffic};
use crate::http::Target;
use crate::mormot::Mormot;
use crate::peer::Tally;
use crate::store::StoreError;
use crate::telemetry::{Level, Logging};

/// A request to read the configuration again, and where to answer it.
pub(super) type ReloadRequest = oneshot::Sender<Result<ReloadView, String>>;

/// What can be seen.
pub(super) fn sources(
    house: &House,
    about: About,
    readiness: watch::Receiver<Readiness>,
    seat: &Seat,
    mormot: &Arc<ArcSwapOption<Mormot>>,
    settings: &Settings,
    logging: &Logging,
) -> Sources {
    let counting = house.clone();
    let traffic = move || traffic(&counting);
    let (engine, cache, bans, seat) =
        (house.engine.clone(), house.cache.clone(), house.bans.clone(), seat.clone());
    let (audited, explaining, saving, settings) =
        (house.clone(), house.clone(), house.clone(), settings.clone());
    let tally = house.tally.clone();
    let deed = move |deed: Deed| audited.cache.index().put_event(super::records::event(&audited, deed));
    Sources {
        about,
        clock: Arc::clone(&house.clock),
        health: house.health.clone(),
        readiness,
        traffic: Box::new(traffic),
        measures: house.engine.ledger().measures().clone(),
        transfers: Box::new(move || engine.transfers()),
        cache: Box::new(move || cache_view(&cache)),
        saved: Box::new(move || usage::saved(&saving)),
        settings: Box::new(move || settings.get()),
        log: {
            let logging = logging.clone();
            Box::new(move || log_view(&logging.level()))
        },
        mormot: {
            let (mormot, seat) = (Arc::clone(mormot), seat.clone());
            Box::new(move || mormot_view(mormot.load_full().as_deref(), &seat))
        },
        catalogue: {
            let seat = seat.clone();
            Box::new(move || Some(seat.joined()?.catalogue.as_ref()?.view()))
        },
        foreign_frames: {
            let seat = seat.clone();
            Box::new(move || seat.joined().map_or(0, |joined| joined.discovery.counts().unknown_key))
        },
        peers: Box::new(move || peers(&seat, &tally)),
        bans: Box::new(move || bans.list().into_iter().map(ban_view).collect()),
        explain: Box::new(move |url| explained(&explaining, url)),
        deed: Box::new(deed),
    }
}

/// Which bytes came from where since the start.
pub(super) fn traffic(house: &House) -> Traffic {
    let mut traffic = house.engine.ledger().traffic();
    traffic.bytes_to_peers = house.uplink.sent();
    traffic
}

fn cache_view(cache: &crate::cache::Cache) -> CacheView {
    let summary = cache.summary();
    CacheView {
        blobs: summary.blobs,
        bytes: summary.bytes,
        max_bytes: summary.max_bytes,
        pinned: summary.pinned,
        damaged: cache.damaged(),
    }
}

pub(super) fn peers(seat: &Seat, tally: &Tally) -> Vec<PeerView> {
    let Some(joined) = seat.joined() else { return Vec::new() };
    let view = |peer: Arc<crate::discovery::Peer>| {
        let exchanged = tally.of(&peer.node);
        PeerView {
            node: peer.node,
            name: peer.name.clone(),
            address: peer.address.to_string(),
            last_seen_seconds: (peer.last_seen_seconds * 10.0).round() / 10.0,
            version: peer.version.clone(),
            bytes_received: exchanged.received,
            bytes_given: exchanged.given,
            skipped: None,
            #[expect(clippy::cast_precision_loss, reason = "a difference for people")]
            clock_ahead_seconds: joined.discovery.clock_ahead(&peer.node).map(|ms| ms as f64 / 1000.0),
        }
    };
    joined.discovery.peers().into_iter().map(view).collect()
}

/// None where there is nothing to tell.
fn mormot_view(mormot: Option<&Mormot>, seat: &Seat) -> Option<MormotView> {
    let frames_on_peer_port = seat.joined().map_or(0, |joined| joined.discovery.counts().mormot);
    let network = mormot.map(Mormot::view);
    (network.is_some() || frames_on_peer_port > 0).then_some(MormotView { frames_on_peer_port, network })
}

fn ban_view(ban: Ban) -> BanView {
    BanView { address: ban.address, reason: ban.reason, until: ban.until.to_string() }
}

fn explained(house: &House, url: &str) -> Option<ExplanationView> {
    let target = Target::from_uri(&url.parse().ok()?).ok()?;
    let Explanation { rule, last } = house.engine.explain(&target);
    let (rule_number, rule) = rule.unzip();
    let expected = house.engine.expectation(&target);
    Some(ExplanationView {
        url: target.shown(),
        rule_number,
        rule,
        kept: last.as_ref().map(|last| last.kept),
        at: last.as_ref().map(|last| last.at.to_string()),
        why: last.map(|last| last.why),
        expected: expected.as_ref().map(|it| it.digest),
        expected_size: expected.as_ref().and_then(|it| it.size),
        stated_by: expected.as_ref().map(|it| it.stated_by.to_string()),
        stated_over_https: expected.as_ref().map(|it| it.stated_by.starts_with("https://")),
        stated_at: expected.map(|it| it.stated_at.to_string()),
    })
}

fn log_view(level: &Level) -> LogView {
    LogView { level: level.level.clone(), configured: level.configured.clone() }
}

/// Changes what the log writes, or goes back to what the configuration has.
fn set_log_level(logging: &Logging, request: &LogRequest) -> Result<LogView, ActionError> {
    let set = match &request.level {
        Some(level) => logging.set_level(level),
        None => logging.reset_level(),
    };
    let level = set.map_err(|error| ActionError::Unreadable(error.to_string()))?;
    tracing::info!(
        log.level = level.level,
        log.configured = level.configured,
        "the log writes this from now on"
    );
    Ok(log_view(&level))
}

/// What can be done.
pub(super) fn control(
    house: &House,
    config: &Config,
    reload: mpsc::Sender<ReloadRequest>,
    logging: &Logging,
) -> Control {
    let (ban, verify) = (house.bans.clone(), house.cache.clone());
    let redirects = config.origin.max_redirects;
    Control {
        ban: Control::action(move |request: crate::admin::BanRequest| {
            let length = request.duration.map(Into::into);
            let made = ban.add(request.address, "by an administrator", length);
            std::future::ready(made.map(ban_view).map_err(|exempt| ActionError::Refused(exempt.to_string())))
        }),
        block: {
            let house = house.clone();
            Control::action(move |request| blocked(house.clone(), request))
        },
        reload: Control::action(move |()| ask_reload(reload.clone())),
        log: {
            let logging = logging.clone();
            Control::action(move |request| std::future::ready(set_log_level(&logging, &request)))
        },
        verify: Control::action(move |digest| verified(verify.clone(), digest)),
        pin: on_disk(house, |house, digest| house.cache.pin(digest)),
        unpin: on_disk(house, |house, digest| house.cache.unpin(digest)),
        fetches: {
            let (engine, proxy) = (house.engine.clone(), house.proxy.clone());
            let prefetcher = Prefetcher::new(engine, proxy, house.identity.node(), redirects);
            Control::action(move |(request, client)| prefetcher.clone().fetch(request, client))
        },
        purge: {
            let house = house.clone();
            Control::action(move |request| purged(house.clone(), request))
        },
        store: {
            let house = house.clone();
            Control::action(move |given| imports::store(house.clone(), given))
        },
        import: {
            let house = house.clone();
            Control::action(move |request| std::future::ready(Ok(imports::learn(&house, request))))
        },
        gc: {
            let house = house.clone();
            Control::action(move |request| swept(house.clone(), request))
        },
    }
}

/// An action on one blob that blocks on the disk; false means that there is no such blob.
fn on_disk(
    house: &House,
    act: fn(&House, &Digest) -> Result<bool, StoreError>,
) -> crate::admin::Action<Digest, ()> {
    let house = house.clone();
    Control::action(move |digest: Digest| {
        let house = house.clone();
        async move {
            let done = tokio::task::spawn_blocking(move || act(&house, &digest)).await;
            match done.map_err(|error| ActionError::Failed(error.to_string()))? {
                Ok(true) => Ok(()),
                Ok(false) => Err(ActionError::NotFound(format!("{digest} is not held"))),
                Err(error) => Err(ActionError::Failed(error.to_string())),
            }
        }
    })
}

async fn verified(cache: crate::cache::Cache, digest: Digest) -> Result<VerifyView, ActionError> {
    match cache.verify(&digest).await {
        Verdict::Right => Ok(VerifyView { digest, sound: true }),
        Verdict::Rotten => Ok(VerifyView { digest, sound: false }),
        Verdict::Missing => Err(ActionError::NotFound(format!("{digest} is not held"))),
    }
}

async fn blocked(house: House, request: BlockRequest) -> Result<BlockView, ActionError> {
    let blocked = tokio::task::spawn_blocking(move || super::blocks::block(&house, &request)).await;
    blocked.map_err(|error| ActionError::Failed(error.to_string()))?
}

async fn purged(house: House, request: PurgeRequest) -> Result<PurgeView, ActionError> {
    let purged = tokio::task::spawn_blocking(move || super::purge::purge(&house, &request)).await;
    purged.map_err(|error| ActionError::Failed(error.to_string()))?
}

async fn swept(house: House, request: GcRequest) -> Result<GcView, ActionError> {
    let to = request.to.map(crate::unit::ByteSize::bytes);
    let swept = tokio::task::spawn_blocking(move || house.cache.sweep(to)).await;
    let swept = swept.map_err(|error| ActionError::Failed(error.to_string()))?;
    let (removed, bytes) = swept.map_err(|error| ActionError::Failed(error.to_string()))?;
    Ok(GcView { removed, bytes })
}

async fn ask_reload(reload: mpsc::Sender<ReloadRequest>) -> Result<ReloadView, ActionError> {
    let (answer, answered) = oneshot::channel();
    let refused = || ActionError::Refused("larder is stopping".to_owned());
    reload.send(answer).await.map_err(|_stopping| refused())?;
    answered.await.map_err(|_stopping| refused())?.map_err(ActionError::Failed)
}
