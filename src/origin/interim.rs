//! Interim answers (RFC 9110 section 15.2): skipped, but not for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::Request;
use tokio::sync::Notify;

use crate::http::Body;

/// More than any origin has to say before it answers.
const MOST: u32 = 32;

/// Counts the interim answers to one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Interim(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    seen: AtomicU32,
    too_many: Notify,
}

/// Has the interim answers to this request counted.
pub(super) fn count(request: &mut Request<Body>) -> Interim {
    let interim = Interim::default();
    let counting = interim.clone();
    hyper::ext::on_informational(request, move |_| {
        if counting.0.seen.fetch_add(1, Ordering::Relaxed) >= MOST {
            counting.0.too_many.notify_one();
        }
    });
    interim
}

impl Interim {
    /// What is wrong with an origin that sends nothing else.
    pub(super) const FLOOD: &str = "it sends interim answers without end";

    /// Waits until there were too many.
    pub(super) async fn too_many(&self) {
        self.0.too_many.notified().await;
    }
}
