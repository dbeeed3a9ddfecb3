//! What a node tells of what it holds, and how it is written: a range of names, and which of them are held.
//!
//! A part is `first name (3) ‖ last name (3)` of the range that it speaks for, then for each name that is held how many
//! names lie between it and the one before it, or the first of the range: seven bits a byte, the lowest first, the top
//! bit set where more follow. The names are in order. What a later version adds comes in a field of its own.

use std::ops::RangeInclusive;

use crate::digest::Digest;

/// How many blobs a node tells of: its largest.
pub(in crate::cache) const NAMES: usize = 8192;
/// The longest part.
const PART: usize = 600;
/// The longest gap.
const GAP: usize = 4;
/// The last name there can be.
const LAST: u32 = 0x00ff_ffff;

/// What this node holds, to be told part by part.
#[derive(Debug, Default)]
pub(in crate::cache) struct Roll {
    /// In order, each once.
    names: Vec<u32>,
    /// Where the next part begins.
    from: u32,
}

/// What was told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) range: RangeInclusive<u32>,
    pub(super) names: Vec<u32>,
}

impl Roll {
    /// These are held from now on; what was to be told next is told next.
    pub(in crate::cache) fn call<'a>(&mut self, held: impl Iterator<Item = &'a Digest>) {
        self.names = held.map(super::name).collect();
        self.names.sort_unstable();
        self.names.dedup();
    }

    /// The next part; after the last one the first.
    pub(in crate::cache) fn next(&mut self) -> Vec<u8> {
        let first = self.from;
        let (mut gaps, mut expected, mut last) = (Vec::new(), first, LAST);
        let here = self.names.partition_point(|name| *name < first);
        for name in self.names.get(here..).unwrap_or_default() {
            if 6 + gaps.len() + GAP > PART {
                last = name - 1;
                break;
            }
            write_gap(name - expected, &mut gaps);
            expected = name + 1;
        }
        self.from = if last == LAST { 0 } else { last + 1 };
        let [_, start @ ..] = first.to_be_bytes();
        let [_, end @ ..] = last.to_be_bytes();
        [start.as_slice(), end.as_slice(), gaps.as_slice()].concat()
    }
}

/// What a part says; none if it says nothing that could be.
pub(super) fn read(part: &[u8]) -> Option<Part> {
    let ([a, b, c, d, e, f], mut gaps) = part.split_first_chunk()?;
    let (first, last) = (u32::from_be_bytes([0, *a, *b, *c]), u32::from_be_bytes([0, *d, *e, *f]));
    let (mut names, mut expected) = (Vec::new(), first);
    while !gaps.is_empty() {
        let (gap, rest) = read_gap(gaps)?;
        let name = expected.checked_add(gap).filter(|name| *name <= last)?;
        names.push(name);
        (expected, gaps) = (name + 1, rest);
    }
    (first <= last).then_some(Part { range: first..=last, names })
}

fn write_gap(mut gap: u32, to: &mut Vec<u8>) {
    loop {
        let [low, ..] = gap.to_le_bytes();
        gap >>= 7;
        if gap == 0 {
            return to.push(low & 0x7f);
        }
        to.push(low | 0x80);
    }
}

fn read_gap(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let length = bytes.iter().take(GAP).position(|byte| byte & 0x80 == 0)? + 1;
    let (gap, rest) = bytes.split_at_checked(length)?;
    Some((gap.iter().rev().fold(0, |gap, byte| gap << 7 | u32::from(byte & 0x7f)), rest))
}
