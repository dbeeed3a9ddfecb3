//! What the administrator's side shows and does, from the rooms of the house.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::{mpsc, oneshot, watch};

use super::build::House;
use super::neighbours::Seat;
use crate::admin::{
    About, ActionError, BanView, BlobView, CacheView, Control, ExplanationView, GcRequest, GcView,
    MormotView, PeerView, Readiness, ReloadView, ResourceView, Sources, VerifyView,
};
use crate::ban::Ban;
use crate::cache::Verdict;
use crate::digest::Digest;
use crate::fetch::Explanation;
use crate::http::Target;
use crate::mormot::Mormot;
use crate::store::StoreError;

/// A request to read the configuration again, and where to answer it.
pub(super) type ReloadRequest = oneshot::Sender<Result<ReloadView, String>>;

/// What can be seen.
pub(super) fn sources(
    house: &House,
    about: About,
    readiness: watch::Receiver<Readiness>,
    seat: &Seat,
    mormot: &Arc<ArcSwapOption<Mormot>>,
) -> Sources {
    let traffic = {
        let (engine, uplink) = (house.engine.clone(), house.uplink.clone());
        move || {
            let mut traffic = engine.ledger().traffic();
            traffic.bytes_to_peers = uplink.sent();
            traffic
        }
    };
    let (engine, cache, bans, seat) =
        (house.engine.clone(), house.cache.clone(), house.bans.clone(), seat.clone());
    let (blobs, resources, explaining) = (house.clone(), house.clone(), house.clone());
    Sources {
        about,
        clock: Arc::clone(&house.clock),
        health: house.health.clone(),
        readiness,
        traffic: Box::new(traffic),
        transfers: Box::new(move || engine.transfers()),
        cache: Box::new(move || cache_view(&cache)),
        mormot: {
            let (mormot, seat) = (Arc::clone(mormot), seat.clone());
            Box::new(move || mormot_view(mormot.load_full().as_deref(), &seat))
        },
        peers: Box::new(move || peers(&seat)),
        bans: Box::new(move || bans.list().into_iter().map(ban_view).collect()),
        blobs: Box::new(move || all_blobs(&blobs)),
        resources: Box::new(move |url| resources_of(&resources, url)),
        explain: Box::new(move |url| explained(&explaining, url)),
    }
}

fn cache_view(cache: &crate::cache::Cache) -> CacheView {
    let summary = cache.summary();
    CacheView {
        blobs: summary.blobs,
        bytes: summary.bytes,
        max_bytes: summary.max_bytes,
        pinned: summary.pinned,
    }
}

fn peers(seat: &Seat) -> Vec<PeerView> {
    let Some(joined) = seat.joined() else { return Vec::new() };
    let view = |peer: Arc<crate::discovery::Peer>| PeerView {
        node: peer.node,
        name: peer.name.clone(),
        address: peer.address.to_string(),
        last_seen_seconds: (peer.last_seen_seconds * 10.0).round() / 10.0,
        version: peer.version.clone(),
        skipped: None,
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

fn all_blobs(house: &House) -> Vec<BlobView> {
    let index = house.cache.index();
    let view = |record: Arc<crate::index::BlobRecord>| BlobView {
        digest: record.digest,
        size: record.size,
        stored_at: record.stored_at.to_string(),
        last_used: record.last_used.to_string(),
        hits: record.hits,
        pinned: house.cache.is_pinned(&record.digest),
        first_hand: record.first_hand,
        urls: index.resources_of(&record.digest).iter().map(|r| r.shown_url.clone()).collect(),
    };
    index.blobs().into_iter().map(view).collect()
}

fn resources_of(house: &House, url: &str) -> Vec<ResourceView> {
    let target = url.parse().ok().and_then(|uri| Target::from_uri(&uri).ok());
    let Some(target) = target else { return Vec::new() };
    let view = |record: &Arc<crate::index::ResourceRecord>| ResourceView {
        url: record.shown_url.clone(),
        status: record.answer.head.status,
        digest: record.digest,
        size: record.size,
        answered_at: record.answer.response_time.to_string(),
        shareable: record.shareable,
    };
    house.cache.variants(&house.engine.url_key(&target)).iter().map(view).collect()
}

fn explained(house: &House, url: &str) -> Option<ExplanationView> {
    let target = Target::from_uri(&url.parse().ok()?).ok()?;
    let Explanation { rule, last } = house.engine.explain(&target);
    let (rule_number, rule) = rule.unzip();
    Some(ExplanationView {
        url: target.shown(),
        rule_number,
        rule,
        kept: last.as_ref().map(|last| last.kept),
        at: last.as_ref().map(|last| last.at.to_string()),
        why: last.map(|last| last.why),
    })
}

/// What can be done.
pub(super) fn control(house: &House, reload: mpsc::Sender<ReloadRequest>) -> Control {
    let (ban, unban, verify) = (house.bans.clone(), house.bans.clone(), house.cache.clone());
    Control {
        ban: Control::action(move |request: crate::admin::BanRequest| {
            let length = request.duration.map(Into::into);
            let made = ban.add(request.address, "by an administrator", length);
            std::future::ready(made.map(ban_view).map_err(|exempt| ActionError::Refused(exempt.to_string())))
        }),
        unban: Control::action(move |address| {
            let lifted = unban.remove(address);
            let missing = || ActionError::NotFound(format!("{address} is not banned"));
            std::future::ready(lifted.then_some(()).ok_or_else(missing))
        }),
        reload: Control::action(move |()| ask_reload(reload.clone())),
        verify: Control::action(move |digest| verified(verify.clone(), digest)),
        remove: on_disk(house, |house, digest| house.cache.remove(digest)),
        pin: on_disk(house, |house, digest| house.cache.pin(digest)),
        unpin: on_disk(house, |house, digest| house.cache.unpin(digest)),
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
