//! Getting a blob again that turned out damaged.

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, Method};

use super::engine::Engine;
use super::outcome::Given;
use super::want::Want;
use crate::digest::Digest;
use crate::http::{Background, Target};
use crate::index::ResourceRecord;
use crate::origin::Reach;

impl Engine {
    /// Asks neighbours, then the origins, by the URLs that led to a blob, for those same bytes; true if they are here
    /// again. Only what anybody may have is asked for: nobody's credentials are kept to ask for the rest. Where this
    /// fails the next client that wants it has it fetched.
    pub async fn repair(&self, digest: Digest) -> bool {
        for record in self.0.cache.index().resources_of(&digest) {
            let Some(target) = self.target_of(&record) else { continue };
            let want = Want {
                target,
                method: Method::GET,
                headers: HeaderMap::new(),
                stated: Some(digest.into()),
                client: IpAddr::V4(Ipv4Addr::LOCALHOST),
                reach: Reach::Anywhere,
                ask_peers: true,
                background: Some(Background::default()),
                interim: None,
            };
            match self.fetch(want).await {
                Ok(reply) => {
                    if let Given::Held(held) = &reply.given {
                        held.settled().await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, blob.digest = %digest, "a damaged blob is not to be had")
                }
            }
            if self.0.cache.holds(&digest).is_some() {
                return true;
            }
        }
        false
    }

    /// The URL of a record, if what is shown of it is all of it.
    fn target_of(&self, record: &ResourceRecord) -> Option<Target> {
        let target = Target::from_uri(&record.shown_url.parse().ok()?).ok()?;
        (record.shareable && self.url_key(&target) == record.url_key).then_some(target)
    }
}
