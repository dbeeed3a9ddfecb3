//! The status document: what this node is, holds and did, with more for administrators.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{ACCEPT, HeaderMap, HeaderValue, VARY};
use tokio::sync::watch;

use super::access::Caller;
use super::health::Readiness;
use super::live;
use super::page;
use super::records::Deed;
use super::server::Shared;
use super::views::{
    About, BanView, CacheView, ExplanationView, HealthView, LogView, MormotView, PeerView, SavedView,
    SettingView, StatusView,
};
use crate::catalogue::CatalogueView;
use crate::clock::SharedClock;
use crate::fetch::{Measures, Traffic, TransferView};
use crate::telemetry::Health;

/// A look at something, from memory and without waiting.
type Look<T> = Box<dyn Fn() -> T + Send + Sync>;

/// How a URL is treated, from memory and without waiting.
type Explain = Box<dyn Fn(&str) -> Option<ExplanationView> + Send + Sync>;

/// Where everything shown comes from; filled by whoever builds the daemon.
pub struct Sources {
    /// Who this node is.
    pub about: About,
    /// What time it is.
    pub clock: SharedClock,
    /// Present troubles.
    pub health: Health,
    /// Whether the doors can be used.
    pub readiness: watch::Receiver<Readiness>,
    /// Which bytes came from where.
    pub traffic: Look<Traffic>,
    /// How long things take.
    pub measures: Measures,
    /// What runs.
    pub transfers: Look<Vec<TransferView>>,
    /// What is held, in numbers.
    pub cache: Look<CacheView>,
    /// What did not have to come from origin servers.
    pub saved: Look<SavedView>,
    /// What the log writes.
    pub log: Look<LogView>,
    /// The settings in force.
    pub settings: Look<Arc<Vec<SettingView>>>,
    /// mORMot peers.
    pub mormot: Look<Option<MormotView>>,
    /// The fleet's catalogue.
    pub catalogue: Look<Option<CatalogueView>>,
    /// Frames at the peer port under another secret.
    pub foreign_frames: Look<u64>,
    /// Neighbours.
    pub peers: Look<Vec<PeerView>>,
    /// Refused addresses.
    pub bans: Look<Vec<BanView>>,
    /// How a URL is treated and why; none if it is no URL.
    pub explain: Explain,
    /// Notes what an administrator did.
    pub deed: Box<dyn Fn(Deed) + Send + Sync>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Sources {
    /// Since the start, whatever the wall clock did.
    pub fn uptime(&self) -> Duration {
        self.clock.instant().saturating_duration_since(self.about.started)
    }

    pub(super) fn status(&self, administrator: bool) -> StatusView {
        let about = &self.about;
        let for_administrators = administrator.then_some(());
        StatusView {
            version: about.version,
            node: about.node,
            name: about.name.clone(),
            site: about.site.clone(),
            started_at: about.started_at.to_string(),
            uptime_seconds: self.uptime().as_secs(),
            health: self.health(administrator),
            cache: (self.cache)(),
            saved: (self.saved)(),
            peers: for_administrators.map(|()| (self.peers)()),
            frames_of_other_secrets: for_administrators
                .map(|()| (self.foreign_frames)())
                .filter(|frames| *frames > 0),
            mormot: for_administrators.and_then(|()| (self.mormot)()),
            catalogue: for_administrators.and_then(|()| (self.catalogue)()),
            traffic: (self.traffic)(),
            transfers: for_administrators.map(|()| (self.transfers)()),
            bans: for_administrators.map(|()| (self.bans)()),
        }
    }

    fn health(&self, administrator: bool) -> HealthView {
        let readiness = *self.readiness.borrow();
        let troubles = self.health.troubles();
        let status = match readiness {
            Readiness::Ready if troubles.is_empty() => "ok",
            Readiness::Ready => "degraded",
            Readiness::Starting | Readiness::NoDisk | Readiness::Draining => readiness.word(),
        };
        let said = troubles
            .into_iter()
            .map(|trouble| if administrator { trouble.reason } else { trouble.code.to_owned() });
        HealthView { status: status.to_owned(), reasons: said.collect() }
    }
}

pub(super) async fn status(
    State(shared): State<Arc<Shared>>,
    Extension(Caller(who)): Extension<Caller>,
    request: HeaderMap,
) -> Response {
    let administrator = who.is_some();
    let mut response = if wants_page(&request) {
        page::response(&shared.page)
    } else if live::follows(&request) {
        live::status(&shared, administrator, &request)
    } else {
        Json(shared.sources.status(administrator)).into_response()
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// A browser names `text/html` and no JSON; a program that takes anything gets JSON.
fn wants_page(request: &HeaderMap) -> bool {
    let named = |kind: &str| {
        request
            .get_all(ACCEPT)
            .iter()
            .filter_map(|field| field.to_str().ok())
            .any(|field| field.contains(kind))
    };
    named("text/html") && !named("application/json")
}
