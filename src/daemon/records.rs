//! The records of the house as an API: who keeps the rows of each, and who changes them.

use std::net::IpAddr;
use std::sync::Arc;

use super::build::House;
use super::neighbours::Seat;
use crate::admin::{Deed, Door};
use crate::digest::Digest;
use crate::fetch::TransferView;
use crate::http::Target;
use crate::index::{
    BanRecord, BlobRecord, BlockRecord, CutRecord, DigestRecord, EventRecord, ExpectationRecord, LabelRecord,
    PeerRecord, PinRecord, ResourceRecord, SettingRecord, TransferRecord, UsageRecord,
};
use crate::orm::{Cell, Computed, Condition, Field, Operator, Place};
use crate::policy::ResourceKey;
use crate::rest::{Api, Inquiry, Problem, Resource, Rows};

/// All records.
pub(super) fn api(house: &House, seat: &Seat) -> Api {
    let index = house.cache.index();
    let (rows, state): (Rows, Rows) = (index.rows(), index.state_rows());
    let of = |rows: &Rows| Arc::clone(rows);
    Api::new(index.feed().clone())
        .with(blobs(house, of(&rows)))
        .with(resources(house, of(&rows)))
        .with(Resource::of::<DigestRecord>(of(&rows)))
        .with(Resource::of::<ExpectationRecord>(of(&rows)))
        .with(pins(house))
        .with(Resource::of::<LabelRecord>(of(&state)).writable())
        .with(transfers(house))
        .with(peers(house, seat))
        .with(bans(house))
        .with(blocks(house, of(&state)))
        .with(Resource::of::<CutRecord>(of(&state)))
        .with(Resource::of::<UsageRecord>(of(&state)))
        .with(Resource::of::<EventRecord>(of(&state)))
        .with(Resource::of::<SettingRecord>(state))
        .inquiring(Inquiry {
            files: vec![("main", index.rows().at().clone()), ("state", index.state_rows().at().clone())],
            clock: Arc::clone(&house.clock),
        })
}

/// What an administrator did, as it is remembered.
pub(super) fn event(house: &House, deed: Deed) -> EventRecord {
    EventRecord {
        id: 0,
        at: house.clock.now(),
        door: match deed.door {
            Door::Port => "port".to_owned(),
            Door::Socket => "socket".to_owned(),
        },
        who: deed.who,
        method: deed.method.to_string(),
        path: deed.path,
        status: deed.status.as_u16().into(),
    }
}

fn blobs(house: &House, rows: Rows) -> Resource {
    let cache = house.cache.clone();
    Resource::of::<BlobRecord>(rows).deleted_by(move |key| {
        let removed = only::<Digest>(key).map(|digest| cache.remove(&digest)).transpose();
        removed.map(Option::unwrap_or_default).map_err(|error| failed(&error))
    })
}

fn resources(house: &House, rows: Rows) -> Resource {
    let (index, engine) = (house.cache.index().clone(), house.engine.clone());
    Resource::of::<ResourceRecord>(rows)
        .found_by("url", "The whole URL, as it was asked for.", move |url| {
            let target = url.parse().ok().and_then(|uri| Target::from_uri(&uri).ok());
            let key = target.map(|target| engine.url_key(&target));
            key.map_or(Condition::Any(Vec::new()), |key| {
                let key = key.encode().into_owned();
                Condition::Compare(Place::column("url_key"), Operator::Equal, key)
            })
        })
        .deleted_by(move |key| {
            let known = only::<ResourceKey>(key).filter(|key| index.resource(key).is_some());
            known.iter().for_each(|key| index.remove_resource(key));
            Ok(known.is_some())
        })
}

fn pins(house: &House) -> Resource {
    let (cache, unpin) = (house.cache.clone(), house.cache.clone());
    let rows = move || cache.pins().into_iter().map(|digest| PinRecord { digest }).collect();
    Resource::of::<PinRecord>(Arc::new(Computed::new::<PinRecord>(rows))).untold().deleted_by(move |key| {
        let done = only::<Digest>(key).map(|digest| unpin.unpin(&digest)).transpose();
        done.map(Option::unwrap_or_default).map_err(|error| failed(&error))
    })
}

/// Those that run, and those that ended not too long ago.
fn transfers(house: &House) -> Resource {
    let (index, engine) = (house.cache.index().clone(), house.engine.clone());
    let rows = move || {
        let running = engine.transfers().into_iter().map(running);
        running.chain(index.transfers().iter().map(|ended| (**ended).clone())).collect()
    };
    Resource::of::<TransferRecord>(Arc::new(Computed::new::<TransferRecord>(rows)))
}

fn running(view: TransferView) -> TransferRecord {
    TransferRecord {
        id: view.id,
        url: view.url,
        source: view.source.to_owned(),
        digest: None,
        size: view.size,
        received: view.received,
        readers: u64::try_from(view.readers).unwrap_or(u64::MAX),
        state: "running".to_owned(),
        started_at: view.started_at,
        ended_at: None,
    }
}

fn peers(house: &House, seat: &Seat) -> Resource {
    let (seat, tally) = (seat.clone(), house.tally.clone());
    let rows = move || {
        let peers = super::sources::peers(&seat, &tally).into_iter();
        let record = peers.map(|peer| PeerRecord {
            node: peer.node.to_string(),
            name: peer.name,
            address: peer.address,
            last_seen_seconds: peer.last_seen_seconds,
            version: peer.version,
            bytes_received: peer.bytes_received,
            bytes_given: peer.bytes_given,
            skipped: peer.skipped,
        });
        record.collect()
    };
    Resource::of::<PeerRecord>(Arc::new(Computed::new::<PeerRecord>(rows))).untold()
}

fn bans(house: &House) -> Resource {
    let (list, lift) = (house.bans.clone(), house.bans.clone());
    let rows = move || {
        let record = |ban: crate::ban::Ban| BanRecord {
            address: ban.address,
            reason: ban.reason,
            since: ban.since,
            until: ban.until,
            count: ban.count,
        };
        list.list().into_iter().map(record).collect()
    };
    Resource::of::<BanRecord>(Arc::new(Computed::new::<BanRecord>(rows)))
        .deleted_by(move |key| Ok(only::<IpAddr>(key).is_some_and(|address| lift.remove(address))))
}

fn blocks(house: &House, rows: Rows) -> Resource {
    let (engine, lift) = (house.engine.clone(), house.orders.clone());
    Resource::of::<BlockRecord>(rows)
        .found_by("url", "The whole URL, as it was asked for.", move |url| {
            let target = url.parse().ok().and_then(|uri| Target::from_uri(&uri).ok());
            let thing = target.map(|target| BlockRecord::url(&engine.url_key(&target)));
            let condition = |thing: String| {
                Condition::Compare(Place::column("thing"), Operator::Equal, Cell::Text(thing.into()))
            };
            thing.map_or(Condition::Any(Vec::new()), condition)
        })
        .deleted_by(move |key| Ok(only::<String>(key).is_some_and(|thing| lift.unblock(&thing))))
}

/// The key that has only one part.
fn only<T: Field>(key: &[Cell<'static>]) -> Option<T> {
    key.first().and_then(|cell| T::decode(cell.borrowed()).ok())
}

fn failed(error: &crate::store::StoreError) -> Problem {
    crate::admin::ActionError::Failed(error.to_string()).into()
}
