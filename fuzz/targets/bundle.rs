//! Bundles: whatever the file says, a blob is given once at most, and never more bytes than were listed for it.
#![no_main]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::Read as _;

use larder::cli::unpack;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut taken = BTreeSet::new();
    let told = unpack::<Infallible>(bytes, &mut |listed, from| {
        assert!(taken.insert(listed.digest), "given twice");
        let mut blob = Vec::new();
        let whole = from.read_to_end(&mut blob).is_ok() && blob.len() as u64 == listed.size;
        assert!(blob.len() as u64 <= listed.size, "more than was listed");
        Ok(whole)
    });
    let Ok(Some(told)) = told else { return };
    assert!(told.misfits.iter().all(|digest| !taken.contains(digest)));
});
