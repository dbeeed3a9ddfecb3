//! Lending on what is still arriving, to whoever asks for it by its digest.

use std::ops::Range;
use std::sync::Arc;

use super::delivery;
use super::engine::Engine;
use super::running::Running;
use crate::digest::{Digest, Stated};
use crate::http::Body;

/// Something that arrives straight from its origin and may be shared.
#[derive(Debug, Clone)]
pub struct Lending {
    /// How large it will be.
    pub size: u64,
    running: Arc<Running>,
}

impl Engine {
    /// What is arriving that must have this digest.
    pub fn lending(&self, stated: &Stated) -> Option<Lending> {
        let all = self.0.flights.all();
        let is_it = |running: &Arc<Running>| {
            let judge = running.judge();
            judge.stated == Some(*stated) || (judge.digest.is_some() && judge.digest == stated.sha256())
        };
        let running = all.into_iter().find(|running| is_it(running) && running.is_lendable())?;
        let size = running.growing().progress().total?;
        let is_thing = running.answer().head.status == 200;
        is_thing.then_some(Lending { size, running })
    }
}

impl Lending {
    /// Its SHA-256, if that is what it is judged by.
    pub fn digest(&self) -> Option<Digest> {
        self.running.expected()
    }

    /// When it was last changed, as the origin said.
    pub fn modified(&self) -> Option<String> {
        self.running.answer().head.get("last-modified").map(str::to_owned)
    }

    /// Its bytes, those that are still to come as they come. Fails where the transfer does.
    pub fn body(&self, range: Range<u64>) -> Body {
        delivery::of_lending(self.running.growing(), range)
    }
}
