//! Fields of answers that state digests.
#![no_main]

use larder::ecosystem::{said_elsewhere, said_of_itself};
use larder::http::StoredHead;
use larder_fuzz::target;

const NAMES: [&str; 10] = [
    "repr-digest",
    "content-digest",
    "digest",
    "x-goog-hash",
    "content-md5",
    "docker-content-digest",
    "x-amz-checksum-sha256",
    "x-linked-etag",
    "location",
    "etag",
];

libfuzzer_sys::fuzz_target!(|input: (u16, Vec<(u8, String)>)| {
    let (status, fields) = input;
    let named = |(name, value): (u8, String)| (NAMES[usize::from(name) % NAMES.len()].to_owned(), value);
    let head = StoredHead { status, fields: fields.into_iter().map(named).collect() };
    if let Some(stated) = said_of_itself(&head) {
        assert_eq!(larder::digest::Stated::parse(&stated.to_string()), Ok(stated));
    }
    let target = target("/x/resolve/main/y").unwrap();
    drop(said_elsewhere(&target, &head));
});
