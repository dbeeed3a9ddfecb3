//! What happens among the neighbours, as lines in the log: names and ids, no addresses.

use crate::discovery::engine::Event;

pub(super) fn note(event: &Event) {
    match event {
        Event::Joined(node, name) => {
            tracing::info!(peer.node = %node, peer.name = name, "a neighbour was found")
        }
        Event::Restarted(node, name) => {
            tracing::info!(peer.node = %node, peer.name = name, "a neighbour runs anew")
        }
        Event::Left(node, name) => tracing::info!(peer.node = %node, peer.name = name, "a neighbour left"),
        Event::Lost(node) => tracing::info!(peer.node = %node, "a neighbour has not been heard for long"),
        Event::Clone(node) => tracing::debug!(peer.node = %node, "two live nodes have one id"),
        Event::CloneOfUs => tracing::warn!("another live node has this node's id; that one takes a new id"),
    }
}
