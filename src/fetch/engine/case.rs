//! A want on its way.

use crate::fetch::flight::FlightKey;
use crate::fetch::guarded::Admitted;
use crate::fetch::judge::Judge;
use crate::fetch::learn::Learned;
use crate::fetch::origin_side::Upstream;
use crate::fetch::want::Want;
use crate::policy::{Rule, UrlKey};

/// A want and what the rules say of its URL.
#[derive(Debug, Clone)]
pub(in crate::fetch) struct Case {
    pub(in crate::fetch) want: Want,
    pub(in crate::fetch) url: UrlKey,
    pub(in crate::fetch) rule: Rule,
    pub(in crate::fetch) judge: Judge,
    /// What was stated for its URL, where neither the client nor the URL says what it is.
    pub(in crate::fetch) learned: Learned,
    /// Why it goes forward.
    pub(in crate::fetch) why: &'static str,
    /// The origin's own word within this request: it would give this client the thing, with this head.
    pub(in crate::fetch) admitted: Option<Admitted>,
    /// Whatever comes is for those alone whom the origin lets in.
    pub(in crate::fetch) guarded: bool,
}

impl Case {
    pub(in crate::fetch) fn flight_key(&self) -> FlightKey {
        self.judge.named().map_or(FlightKey::Url(self.url), FlightKey::Stated)
    }

    /// Whether strangers to the site may hear of it.
    pub(in crate::fetch) fn may_be_told(&self) -> bool {
        self.want.ask_peers && !self.want.is_private() && self.rule.share
    }

    /// The same, asked of nobody but the origin.
    pub(in crate::fetch) fn without_peers(&self) -> Self {
        let mut case = self.clone();
        case.want.ask_peers = false;
        case
    }

    pub(in crate::fetch) fn upstream(&self, headers: http::HeaderMap) -> Upstream {
        let want = &self.want;
        let (target, reach, interim) = (want.target.clone(), want.reach.clone(), want.interim.clone());
        Upstream { target, headers, reach, interim, background: want.background.clone() }
    }
}
