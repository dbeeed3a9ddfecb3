//! Interim answers (RFC 9110 section 15.2): passed on where somebody takes them, and not for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::Request;
use tokio::sync::Notify;

use crate::http::{Body, Interim};

/// More than any origin has to say before it answers.
const MOST: u32 = 32;

/// Counts the interim answers to one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    seen: AtomicU32,
    too_many: Notify,
}

/// What is wrong with an origin that sends nothing else.
pub(super) const FLOOD: &str = "it sends interim answers without end";

/// Has the interim answers to this request counted, and passed on to whoever takes them.
pub(super) fn pass(request: &mut Request<Body>, to: Option<Interim>) -> Counted {
    let counted = Counted::default();
    let counting = counted.clone();
    hyper::ext::on_informational(request, move |answer| {
        if let Some(to) = &to {
            to.offer(answer.status(), answer.headers());
        }
        if counting.0.seen.fetch_add(1, Ordering::Relaxed) >= MOST {
            counting.0.too_many.notify_one();
        }
    });
    counted
}

impl Counted {
    /// Waits until there were too many.
    pub(super) async fn too_many(&self) {
        self.0.too_many.notified().await;
    }
}
