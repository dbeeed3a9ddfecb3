//! Whose bytes are right: what came is compared with what those say who had it from the origin themselves.

use std::collections::BTreeMap;

use crate::store::PieceHash;
use crate::tls::NodeId;

/// How far beyond what is here statements are kept: 64 GiB.
const AHEAD: u64 = 65_536;

/// What was stated of the pieces of one thing, and how far what is here agrees with it.
#[derive(Debug, Default)]
pub struct Board {
    stated: BTreeMap<u64, (PieceHash, NodeId)>,
    /// From this piece on this node itself had it from the origin.
    own: Option<u64>,
    /// So many pieces from the first on are proved.
    proved: u64,
}

/// What a look at the board gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// So many pieces from the first on are proved.
    pub proved: u64,
    /// The piece after them is not what the node that fetched it says.
    pub wrong: Option<NodeId>,
}

impl Board {
    /// The first piece of which nothing was stated yet, and all after it.
    pub fn next_unstated(&self) -> u64 {
        (self.proved..).find(|piece| !self.stated.contains_key(piece)).unwrap_or(self.proved)
    }

    /// A node says what the pieces from `first` on are that it had from the origin. What was said first stays.
    pub fn state(&mut self, by: NodeId, first: u64, hashes: &[PieceHash]) {
        let pieces = self.proved..self.proved.saturating_add(AHEAD);
        for (at, hash) in (0..).zip(hashes) {
            if let Some(piece) = first.checked_add(at).filter(|piece| pieces.contains(piece)) {
                self.stated.entry(piece).or_insert((*hash, by));
            }
        }
    }

    /// From this piece on this node has it from the origin itself; none: no longer.
    pub fn set_own(&mut self, from: Option<u64>) {
        self.own = from;
    }

    /// Looks at the pieces that are here, given from the first unproved one on.
    pub fn judge(&mut self, here: &[PieceHash]) -> Judged {
        let mut wrong = None;
        for hash in here {
            let own = self.own.is_some_and(|from| self.proved >= from);
            match self.stated.get(&self.proved) {
                _ if own => {}
                Some((stated, _)) if stated == hash => {}
                Some((_, by)) => {
                    wrong = Some(*by);
                    break;
                }
                None => break,
            }
            self.stated.remove(&self.proved);
            self.proved += 1;
        }
        Judged { proved: self.proved, wrong }
    }

    /// How many pieces from the first on are proved.
    pub fn proved(&self) -> u64 {
        self.proved
    }

    /// What was said of a piece was wrong, or of another version: none of it counts any more.
    pub fn forget(&mut self) {
        self.stated.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u8) -> PieceHash {
        PieceHash::from([n; 32])
    }

    const ONE: NodeId = NodeId::from_bytes([1; 16]);
    const TWO: NodeId = NodeId::from_bytes([2; 16]);

    #[test]
    fn what_agrees_with_its_fetcher_is_proved_up_to_the_first_gap() {
        let mut board = Board::default();
        board.state(ONE, 0, &[hash(0), hash(1)]);
        board.state(TWO, 3, &[hash(3)]);
        let here = [hash(0), hash(1), hash(2), hash(3)];
        assert_eq!(board.judge(&here), Judged { proved: 2, wrong: None });
        assert_eq!(board.next_unstated(), 2);
        board.state(ONE, 2, &[hash(2)]);
        assert_eq!(board.judge(&here[2..]), Judged { proved: 4, wrong: None });
    }

    #[test]
    fn a_piece_that_does_not_agree_is_named_and_nothing_beyond_it_counts() {
        let mut board = Board::default();
        board.state(ONE, 0, &[hash(0), hash(9), hash(2)]);
        board.state(TWO, 1, &[hash(1)]);
        let here = [hash(0), hash(1), hash(2)];
        assert_eq!(board.judge(&here), Judged { proved: 1, wrong: Some(ONE) });
        board.forget();
        board.set_own(Some(1));
        assert_eq!(board.judge(&here[1..]), Judged { proved: 3, wrong: None });
    }

    #[test]
    fn statements_far_ahead_take_no_room() {
        let mut board = Board::default();
        board.state(ONE, u64::MAX, &[hash(0), hash(1)]);
        board.state(ONE, AHEAD, &[hash(0)]);
        assert_eq!((board.stated.len(), board.next_unstated()), (0, 0));
    }
}
