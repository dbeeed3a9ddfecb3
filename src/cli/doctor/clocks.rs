//! This machine's clock beside those of its neighbours, as they say it in their greetings.

use super::Report;
use crate::admin::PeerView;

/// Seconds that greetings and their being heard may take.
const NEAR: f64 = 5.0;

const SET: &str = "set it by NTP: `timedatectl set-ntp true`, or chrony; how long answers are fresh, certificates and \
                   bans go by it";

pub(super) fn clocks(report: &mut Report, peers: &[PeerView]) {
    let told: Vec<(&PeerView, f64)> =
        peers.iter().filter_map(|peer| Some((peer, peer.clock_ahead_seconds?))).collect();
    let (near, far): (Vec<_>, Vec<_>) = told.iter().copied().partition(|(_, ahead)| ahead.abs() < NEAR);
    let alike =
        far.iter().all(|(_, ahead)| far.first().is_some_and(|(_, first)| (ahead - first).abs() < NEAR));
    match far.as_slice() {
        [] if near.is_empty() => {}
        [] => report.ok("clocks", format!("within {NEAR} s of {}", theirs(near.len()))),
        [(_, ahead), _, ..] if near.is_empty() && alike => {
            let what = format!("this machine's is {} {}", distance(-ahead), theirs(far.len()));
            report.fail("clocks", what, SET);
        }
        far => {
            for (peer, ahead) in far {
                let what = format!(
                    "that of {} ({}) is {} this machine's",
                    peer.name,
                    peer.address,
                    distance(*ahead)
                );
                let hint = format!("`date -u` on both says which is wrong; {SET}");
                report.warn("clocks", what, &hint);
            }
        }
    }
}

/// The clocks of so many.
fn theirs(count: usize) -> String {
    if count == 1 { "the neighbour's".to_owned() } else { format!("all {count} neighbours'") }
}

/// How far ahead, in words.
fn distance(ahead: f64) -> String {
    let side = if ahead < 0.0 { "behind" } else { "ahead of" };
    let length = match ahead.abs() {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7170.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 2.0 * 86_400.0 => format!("{:.1} h", seconds / 3600.0),
        seconds => format!("{:.0} days", seconds / 86_400.0),
    };
    format!("{length} {side}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Exit;
    use crate::tls::NodeId;

    fn said(ahead: &[f64]) -> (String, Exit) {
        let peer = |ahead: &f64| PeerView {
            node: NodeId::from_bytes([7; 16]),
            name: "box2".to_owned(),
            address: "10.0.0.7:8096".to_owned(),
            last_seen_seconds: 1.0,
            version: String::new(),
            bytes_received: 0,
            bytes_given: 0,
            skipped: None,
            clock_ahead_seconds: Some(*ahead),
        };
        let mut report = Report::default();
        clocks(&mut report, &ahead.iter().map(peer).collect::<Vec<_>>());
        let lines = report.0.iter().map(|finding| finding.what.clone()).collect::<Vec<_>>().join("; ");
        (lines, report.worst())
    }

    #[test]
    fn whose_clock_is_off_is_said_where_it_can_be_known() {
        for (ahead, what, exit) in [
            (vec![], "", Exit::Done),
            (vec![0.1, -3.0], "within 5 s of all 2 neighbours'", Exit::Done),
            (vec![1.0], "within 5 s of the neighbour's", Exit::Done),
            (vec![7199.0], "that of box2 (10.0.0.7:8096) is 2.0 h ahead of this machine's", Exit::Done),
            (vec![0.0, -90.0], "that of box2 (10.0.0.7:8096) is 90 s behind this machine's", Exit::Done),
            (vec![600.0, 601.0], "this machine's is 10 min behind all 2 neighbours'", Exit::Failed),
        ] {
            assert_eq!(said(&ahead), (what.to_owned(), exit), "{ahead:?}");
        }
    }
}
