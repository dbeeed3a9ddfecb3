//! Whom to read from first, as the originals choose.

use super::engine::Offer;

/// Full before partial; then by network, speed and load; then as they came.
pub(super) fn ranked(mut offers: Vec<Offer>) -> Vec<Offer> {
    offers.sort_by_key(|offer| {
        let told = &offer.told;
        (std::cmp::Reverse(told.kind), told.hardware.rank(), std::cmp::Reverse(told.speed), told.connections)
    });
    offers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mormot::engine::tests::message;
    use crate::mormot::{Hardware, Kind, Message};

    #[test]
    fn kind_network_speed_load_and_arrival_decide_in_this_order() {
        let full = Message {
            hardware: Hardware::Ethernet,
            speed: 1000,
            connections: 3,
            ..message(Kind::ResponseFull)
        };
        let worse_to_better = [
            Message { kind: Kind::ResponsePartial, speed: 9999, connections: 0, ..full },
            Message { hardware: Hardware::Software, ..full },
            Message { hardware: Hardware::Cellular, ..full },
            Message { hardware: Hardware::Tunnel, ..full },
            Message { hardware: Hardware::Ppp, ..full },
            Message { hardware: Hardware::Undefined, ..full },
            Message { hardware: Hardware::WiFi, speed: 9999, connections: 0, ..full },
            Message { speed: 100, connections: 0, ..full },
            full,
            Message { connections: 2, seq: 1, ..full },
        ];
        let mut offers: Vec<Offer> =
            worse_to_better.iter().map(|told| Offer { told: *told, larder: None }).collect();
        offers.push(Offer { told: Message { connections: 2, seq: 2, ..full }, larder: None });
        let ranked: Vec<Message> = ranked(offers).iter().map(|offer| offer.told).collect();
        assert_eq!((ranked[0].seq, ranked[1].seq), (1, 2), "equals stay as they came");
        let rest: Vec<Message> = worse_to_better.iter().rev().skip(1).copied().collect();
        assert_eq!(ranked[2..], rest);
    }
}
