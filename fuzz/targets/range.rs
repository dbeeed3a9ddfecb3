//! Ranges: what is asked for lies in the thing, and a set of spans holds exactly what was put into it.
#![no_main]

use larder::range::{ContentRange, RangeRequest, RangeSet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (String, u64, Vec<(u8, u8)>)| {
    let (field, size, spans) = input;
    if let Some(range) = RangeRequest::parse(&field)
        && let Ok(bytes) = range.resolve(size)
    {
        assert!(bytes.start < bytes.end && bytes.end <= size, "{bytes:?} of {size}");
        let told = ContentRange::satisfied(&bytes, size);
        assert!(ContentRange::parse(&told).is_some(), "{told}");
    }
    let _ = ContentRange::parse(&field);
    let (mut set, mut plain) = (RangeSet::default(), [false; 512]);
    for (start, length) in spans {
        let (start, end) = (usize::from(start), usize::from(start) + usize::from(length));
        set.insert(start as u64..end as u64);
        plain[start..end].fill(true);
    }
    assert_eq!(set.total(), plain.iter().filter(|held| **held).count() as u64);
    let missing: u64 = set.missing(0..512).iter().map(|span| span.end - span.start).sum();
    assert_eq!(missing, 512 - set.total());
});
