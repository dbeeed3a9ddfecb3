//! What the administrator's side shows and takes, as it stands in JSON. Names are part of the outside contract
//! and change only by adding.

use std::net::IpAddr;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::catalogue::CatalogueView;
use crate::clock::Timestamp;
use crate::digest::{Digest, Stated};
use crate::fetch::{Traffic, TransferView};
use crate::mormot;
use crate::policy::{Answer, ResourceKey, Rule, UrlKey, Variance};
use crate::tls::NodeId;
use crate::unit::{ByteSize, Span};

/// Who this node is; does not change while it runs.
#[derive(Debug, Clone)]
pub struct About {
    /// Its id.
    pub node: NodeId,
    /// What it is called.
    pub name: String,
    /// Its site.
    pub site: String,
    /// The version of the program.
    pub version: &'static str,
    /// When it started, by the wall clock.
    pub started_at: Timestamp,
    /// When it started, by the monotonic clock.
    pub started: Instant,
}

/// The whole status document.
#[derive(Debug, Clone, Serialize)]
pub struct StatusView {
    /// The version of the program.
    pub version: &'static str,
    /// This node's id.
    pub node: NodeId,
    /// What it is called.
    pub name: String,
    /// Its site.
    pub site: String,
    /// RFC 3339.
    pub started_at: String,
    /// Since then.
    pub uptime_seconds: u64,
    /// What is wrong.
    pub health: HealthView,
    /// What is held.
    pub cache: CacheView,
    /// What did not have to come from origin servers.
    pub saved: SavedView,
    /// Neighbours; for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<PeerView>>,
    /// Frames at the peer port under a secret that is not this site's; for administrators, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_of_other_secrets: Option<u64>,
    /// mORMot peers; for administrators, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mormot: Option<MormotView>,
    /// The fleet's catalogue; for administrators, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<CatalogueView>,
    /// Which bytes came from where.
    pub traffic: Traffic,
    /// What runs; for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Vec<TransferView>>,
    /// Who is refused; for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bans: Option<Vec<BanView>>,
}

/// Present troubles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthView {
    /// `ok`, `degraded`, or the reason why the node is not ready.
    pub status: String,
    /// Sentences for administrators, codes for everybody else.
    pub reasons: Vec<String>,
}

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheView {
    /// How many blobs.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most bytes kept.
    pub max_bytes: u64,
    /// How many are pinned.
    pub pinned: u64,
    /// How many were found damaged since the start.
    #[serde(default)]
    pub damaged: u64,
}

/// Body bytes that programs got and no origin server had to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SavedView {
    /// Since midnight, UTC.
    pub today: u64,
    /// In the last seven days, today among them.
    pub week: u64,
    /// Since this node first ran.
    pub ever: u64,
}

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingView {
    /// Its key in the configuration, dotted.
    pub key: String,
    /// Its value; passwords left out.
    pub value: serde_json::Value,
    /// Where it came from: a line of the file, a variable, `default`, or how it was found.
    pub from: String,
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerView {
    /// Its id.
    pub node: NodeId,
    /// What it is called.
    pub name: String,
    /// Where its blobs are.
    pub address: String,
    /// Since it was heard.
    pub last_seen_seconds: f64,
    /// The version of its program.
    pub version: String,
    /// Body bytes received from it since the start.
    #[serde(default)]
    pub bytes_received: u64,
    /// Body bytes given to it since the start.
    #[serde(default)]
    pub bytes_given: u64,
    /// Why it is not asked, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// How far its clock was ahead of this node's when it last said hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_seconds: Option<f64>,
}

/// What there is of mORMot peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MormotView {
    /// Frames as long as theirs that came to Larder's own peer port: whoever sends them bans this machine.
    pub frames_on_peer_port: u64,
    /// This node among them; none where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<mormot::View>,
}

/// A refused address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanView {
    /// The address.
    pub address: IpAddr,
    /// What it did.
    pub reason: String,
    /// When the ban ends, RFC 3339.
    pub until: String,
}

/// Asks to refuse an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BanRequest {
    /// The address.
    pub address: IpAddr,
    /// For how long; the configured duration if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
}

/// Asks to block a thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockRequest {
    /// A digest (`sha256:HEX`), or a whole URL.
    pub thing: String,
    /// Why, for whoever is refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// On every node of the site.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub site: bool,
}

/// What is blocked now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockView {
    /// Its name among what is blocked: `sha256:` or `url:` and 64 hexadecimal digits.
    pub thing: String,
    /// The digest, or the URL without its query.
    pub shown: String,
    /// Why.
    pub reason: String,
    /// Whether bytes of it were held and are gone now.
    pub removed: bool,
}

/// How a URL is treated, and what became of its last answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplanationView {
    /// The URL, secrets left out.
    pub url: String,
    /// The place of the rule that holds among the `[[rule]]`s, counted from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_number: Option<usize>,
    /// That rule; none where none matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// Whether the last answer was kept; none if there was none lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The digest that was stated for it; one of a weak algorithm is compared, never trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Stated>,
    /// The size, where it was stated too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_size: Option<u64>,
    /// The document or head that stated it, secrets left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_by: Option<String>,
    /// Whether that came over https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_over_https: Option<bool>,
    /// When its origin last said so, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_at: Option<String>,
}

/// Asks to forget what URLs led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeRequest {
    /// A URL, or the beginning of some and a `*`.
    pub url: String,
    /// Only say what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// What purging did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PurgeView {
    /// Answers forgotten.
    pub answers: u64,
    /// Blobs removed.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that stay because they are pinned.
    pub pinned: u64,
    /// Nothing was done.
    pub dry_run: bool,
}

/// A blob that is given from outside.
#[derive(Debug)]
pub struct GivenBlob {
    /// What it should be.
    pub digest: Digest,
    /// Its size, where that was said.
    pub size: Option<u64>,
    /// Its bytes.
    pub body: crate::http::Body,
}

/// A blob that is held now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredView {
    /// What it is.
    pub digest: Digest,
    /// Its size.
    pub size: u64,
}

/// Answers that are given from outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// As the API lists them.
    pub resources: Vec<ImportedResource>,
}

/// An answer as the API lists it; what it says of its provenance is not taken over.
#[derive(Debug, Clone, Deserialize)]
pub struct ImportedResource {
    /// The name of the URL.
    pub url_key: UrlKey,
    /// The name of the answer.
    pub resource_key: ResourceKey,
    /// The URL as it may be shown.
    pub shown_url: String,
    /// The request fields that selected it.
    pub variance: Variance,
    /// Head and times.
    pub answer: Answer,
    /// The blob it led to.
    pub digest: Option<Digest>,
    /// Length of the body.
    pub size: u64,
    /// Whether neighbours may have it.
    pub shareable: bool,
}

/// What became of answers that were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImportedView {
    /// Answers noted.
    pub answers: u64,
    /// Answers whose URL is known here, or whose blob is not.
    pub passed_over: u64,
}

/// Asks to fetch things for later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchesRequest {
    /// What: `[DIGEST@]URL` each.
    pub urls: Vec<String>,
    /// How long it may take; at most ten minutes, which is what holds if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
}

/// What became of fetching things for later, in the order in which they were named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FetchesView {
    /// Each of them.
    pub items: Vec<FetchView>,
}

/// What became of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchView {
    /// Its URL, secrets left out.
    pub url: String,
    /// What became of it.
    pub outcome: FetchOutcome,
    /// Its size, where it is held now.
    pub bytes: u64,
    /// Why it is not held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What became of one thing that should be fetched for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FetchOutcome {
    /// It was held already.
    Held,
    /// It came from a neighbour.
    Peer,
    /// It came from its origin.
    Origin,
    /// It may not be kept.
    Passed,
    /// It could not be had.
    Failed,
    /// The time was over before.
    Late,
}

impl FetchView {
    /// Its time has not come.
    pub fn late() -> Self {
        Self { url: String::new(), outcome: FetchOutcome::Late, bytes: 0, why: None }
    }

    /// It could not be had.
    pub fn failed(url: String, why: String) -> Self {
        Self { url, outcome: FetchOutcome::Failed, bytes: 0, why: Some(why) }
    }
}

/// Asks to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GcRequest {
    /// Down to this size; the configured limits if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<ByteSize>,
}

/// What making room did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GcView {
    /// Blobs that went.
    pub removed: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What reading a blob again showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyView {
    /// The blob.
    pub digest: Digest,
    /// Whether its bytes are those of its digest.
    pub sound: bool,
}

/// What the log is to write.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogRequest {
    /// A level or a filter, as `log.level` has it; null: back to the configuration.
    #[serde(deserialize_with = "Option::deserialize")]
    pub level: Option<String>,
}

/// What the log writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogView {
    /// What holds now, until a reload or a restart.
    pub level: String,
    /// What the configuration has.
    pub configured: String,
}

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReloadView {
    /// Keys that hold from now on.
    pub applied: Vec<String>,
    /// Keys that changed but need a restart.
    pub need_restart: Vec<String>,
}
