//! Fetching a list for later: a few at a time, in an order of this node's own, so that the nodes of a site that
//! are given the same list begin at different places and then read from each other.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, Method, header};

use crate::admin::{ActionError, FetchOutcome, FetchView, FetchesRequest, FetchesView};
use crate::digest::{Digest, Stated};
use crate::fetch::{Engine, Want};
use crate::http::{Background, Target};
use crate::proxy::Proxy;
use crate::tls::NodeId;

/// How many are fetched at once.
const AT_ONCE: usize = 4;
/// How many one request may name.
const MOST: usize = 1000;
/// How long one request may take: a caller that goes on sends what was late again.
const LONGEST: Duration = Duration::from_secs(600);
/// What the origin is told who asks.
const AGENT: &str = concat!("larder/", env!("CARGO_PKG_VERSION"));

/// Fetches for later.
#[derive(Clone)]
pub(super) struct Prefetcher {
    engine: Engine,
    proxy: Proxy,
    node: NodeId,
    redirects: usize,
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Order {
    target: Target,
    stated: Option<Stated>,
}

impl Prefetcher {
    pub(super) fn new(engine: Engine, proxy: Proxy, node: NodeId, redirects: usize) -> Self {
        Self { engine, proxy, node, redirects }
    }

    /// Fetches what a caller names, as if it asked at the doors.
    pub(super) async fn fetch(
        self,
        request: FetchesRequest,
        client: IpAddr,
    ) -> Result<FetchesView, ActionError> {
        if request.urls.is_empty() || request.urls.len() > MOST {
            return Err(ActionError::Unreadable(format!("`urls` must name 1 to {MOST} things")));
        }
        let time = request.deadline.map_or(LONGEST, |span| span.0.min(LONGEST));
        let mut items: Vec<FetchView> = request.urls.iter().map(|_| FetchView::late()).collect();
        let mut orders = Vec::new();
        for (place, line) in request.urls.iter().enumerate() {
            match parse(line) {
                Ok(order) => orders.push((place, order)),
                Err(why) => put(&mut items, place, FetchView::failed("…".to_owned(), why)),
            }
        }
        for (place, order) in &orders {
            put(&mut items, *place, FetchView { url: order.target.shown(), ..FetchView::late() });
        }
        orders.sort_by_cached_key(|(_, order)| turn(self.node, &order.target));
        let work = futures_util::stream::iter(orders)
            .map(|(place, order)| {
                let one = self.clone();
                async move { (place, one.one(order, client).await) }
            })
            .buffer_unordered(AT_ONCE);
        let mut work = std::pin::pin!(work);
        let all = async {
            while let Some((place, view)) = work.next().await {
                put(&mut items, place, view);
            }
        };
        if tokio::time::timeout(time, all).await.is_err() {
            tracing::debug!("some things could not be fetched for later in time");
        }
        Ok(FetchesView { items })
    }

    /// Follows redirects; what a digest was stated for keeps it.
    async fn one(&self, order: Order, client: IpAddr) -> FetchView {
        let shown = order.target.shown();
        let mut target = order.target;
        for _ in 0..=self.redirects {
            let want = Want {
                target: target.clone(),
                method: Method::GET,
                headers: fields(),
                stated: order.stated,
                client,
                reach: self.proxy.reach(client),
                ask_peers: true,
                background: Some(Background::default()),
                interim: None,
            };
            let fetched = match self.engine.prefetch(want).await {
                Ok(fetched) => fetched,
                Err(error) => return FetchView::failed(shown, error.to_string()),
            };
            let is_redirect = (300..400).contains(&fetched.status);
            let Some(location) = fetched.location.as_deref().filter(|_| is_redirect) else {
                return view(shown, &fetched);
            };
            target = match target.join(location) {
                Ok(next) => next,
                Err(error) => return FetchView::failed(shown, format!("a redirect leads nowhere: {error}")),
            };
        }
        FetchView::failed(shown, "too many redirects".to_owned())
    }
}

fn view(url: String, fetched: &crate::fetch::Fetched) -> FetchView {
    if fetched.status != 200 {
        return FetchView::failed(url, format!("the answer is {}", fetched.status));
    }
    let by_peer = fetched.cache.detail.as_deref().is_some_and(|detail| detail.starts_with("peer"));
    let outcome = match (fetched.held, fetched.arrived) {
        (true, false) => FetchOutcome::Held,
        (true, true) if by_peer => FetchOutcome::Peer,
        (true, true) => FetchOutcome::Origin,
        (false, _) if fetched.cache.stored => {
            return FetchView::failed(url, "the download broke off; what came is kept".to_owned());
        }
        (false, _) => FetchOutcome::Passed,
    };
    let why = (outcome == FetchOutcome::Passed).then(|| "its origin or a rule forbids to keep it".to_owned());
    FetchView { url, outcome, bytes: fetched.bytes.unwrap_or(0), why }
}

fn put(items: &mut [FetchView], place: usize, view: FetchView) {
    if let Some(item) = items.get_mut(place) {
        *item = view;
    }
}

fn fields() -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    fields.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
    fields
}

/// Reads `[DIGEST@]URL`.
fn parse(line: &str) -> Result<Order, String> {
    let line = line.trim();
    let (stated, url) = match line.split_once('@').map(|(digest, url)| (Stated::parse(digest), url)) {
        Some((Ok(stated), url)) => (Some(stated), url),
        Some((Err(_), _)) | None => (None, line),
    };
    let wrong = || "this is no [DIGEST@]URL: write http://host/path or https://host/path".to_owned();
    let uri = url.parse().map_err(|_no_uri| wrong())?;
    let target =
        Target::from_uri(&uri).map_err(|error| format!("{error}; credentials cannot be given here"))?;
    Ok(Order { target, stated })
}

/// When it is a thing's turn on this node.
fn turn(node: NodeId, target: &Target) -> Digest {
    Digest::of(&[node.as_bytes().as_slice(), target.url().as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_urls_with_or_without_a_digest() {
        let digest = Digest::of(b"x");
        let order = parse(&format!(" {digest}@https://h/p@q ")).unwrap();
        assert_eq!((order.target.url().as_str(), order.stated), ("https://h/p@q", Some(digest.into())));
        assert!(parse("http://h/a@b").unwrap().stated.is_none());
        for wrong in ["", "h/p", "ftp://h/", "http://user:secret@h/"] {
            let why = parse(wrong).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn every_node_has_its_own_order() {
        let targets: Vec<_> = (0..20).map(|n| parse(&format!("http://h/{n}")).unwrap().target).collect();
        let first =
            |node: u8| targets.iter().min_by_key(|target| turn(NodeId::from_bytes([node; 16]), target));
        let firsts: std::collections::HashSet<_> = (0..10).filter_map(first).map(Target::url).collect();
        assert!(firsts.len() >= 4, "{firsts:?}");
    }
}
