//! What heads say.

use super::{HEX, target};
use crate::ecosystem::{said_elsewhere, said_of_itself};
use crate::http::StoredHead;

/// Of "abc" in base64.
const B64: &str = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
const EMPTY_MD5: &str = "1B2M2Y8AsgTpgAmY7PhCfg==";

fn head(status: u16, fields: &str) -> StoredHead {
    let fields = fields.replace("{b64}", B64).replace("{md5}", EMPTY_MD5).replace("{hex}", HEX);
    let lines = fields.split(" | ").filter_map(|line| line.split_once(": "));
    StoredHead { status, fields: lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
}

#[test]
fn what_a_head_says_of_the_thing_it_came_with() {
    let (sha256, md5) =
        (Some(format!("sha256:{HEX}")), Some("md5:d41d8cd98f00b204e9800998ecf8427e".to_owned()));
    for (status, fields, want) in [
        (200, "repr-digest: sha-256=:{b64}:", &sha256),
        (206, "repr-digest: sha-256=:{b64}:", &sha256),
        (200, "repr-digest: md5=:{md5}:, sha-256=:{b64}:;x=1", &sha256),
        (200, "repr-digest: md5=:{md5}: | repr-digest: sha-256=:{b64}:", &sha256),
        (200, "repr-digest: sha-256={b64}", &None),
        (200, "repr-digest: sha-256=:AAAA:", &None),
        (200, "repr-digest: sha-999=:{b64}:", &None),
        (404, "repr-digest: sha-256=:{b64}:", &None),
        (302, "repr-digest: sha-256=:{b64}:", &None),
        (200, "content-digest: sha-256=:{b64}:", &sha256),
        (206, "content-digest: sha-256=:{b64}:", &None),
        (200, "digest: SHA-256={b64},MD5={md5}", &sha256),
        (200, "digest: UNIXsum=30637", &None),
        (200, "x-amz-checksum-sha256: {b64}", &sha256),
        (200, "x-amz-checksum-sha256: {b64}-3", &None),
        (200, "x-amz-checksum-sha256: {b64} | x-amz-checksum-type: COMPOSITE", &None),
        (200, "x-amz-checksum-sha256: {b64} | x-amz-checksum-type: FULL_OBJECT", &sha256),
        (200, "x-goog-hash: crc32c=AAAAAA==,md5={md5}", &md5),
        (200, "x-goog-hash: crc32c=AAAAAA== | x-goog-hash: md5={md5}", &md5),
        (200, "content-md5: {md5}", &md5),
        (206, "content-md5: {md5}", &None),
        (200, "docker-content-digest: sha256:{hex}", &sha256),
        (200, "docker-content-digest: {hex}", &None),
        // two that contradict each other
        (200, "repr-digest: sha-256=:{b64}: | docker-content-digest: sha256:00{hex}", &sha256),
        (
            200,
            "repr-digest: sha-256=:{b64}: | x-amz-checksum-sha256: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            &None,
        ),
        (200, "etag: \"{hex}\"", &None),
    ] {
        assert_eq!(
            said_of_itself(&head(status, fields)).map(|stated| stated.to_string()),
            *want,
            "{status} {fields}"
        );
    }
}

#[test]
fn k19_what_a_redirect_says_of_the_thing_it_leads_to() {
    let said = |url: &str, status, fields: &str| -> Vec<String> {
        let found = said_elsewhere(&target(url), &head(status, fields));
        let line = |s: &crate::ecosystem::Statement| format!("{} {} {:?}", s.target.url(), s.digest, s.size);
        found.iter().map(|statement| line(statement).replace(HEX, "{hex}")).collect()
    };
    let model = "https://huggingface.co/a/b/resolve/main/m.bin";
    let cdn =
        "location: https://cdn-lfs-us-1.hf.co/x?Sig=%2F1 | x-linked-etag: \"{hex}\" | x-linked-size: 77";
    assert_eq!(
        said(model, 302, cdn),
        [
            format!("{model} sha256:{{hex}} Some(77)"),
            "https://cdn-lfs-us-1.hf.co/x?Sig=%2F1 sha256:{hex} Some(77)".to_owned()
        ]
    );
    let evil = cdn.replace("cdn-lfs-us-1.hf.co", "victim.example");
    assert_eq!(said(model, 302, &evil), [format!("{model} sha256:{{hex}} Some(77)")]);
    // the object of git, and no redirect
    assert!(said(model, 302, "x-linked-etag: \"da39a3ee5e6b4b0d3255bfef95601890afd80709\"").is_empty());
    assert!(said(model, 200, cdn).is_empty());
    // the thing whose digest its URL contains
    let blob = "https://ghcr.io/v2/a/b/blobs/sha256:{hex}";
    let to = "location: https://pkg-containers.githubusercontent.com/x?sig=1";
    assert_eq!(
        said(blob, 307, to),
        ["https://pkg-containers.githubusercontent.com/x?sig=1 sha256:{hex} None"]
    );
    assert!(said(blob, 307, "location: https://victim.example/x").is_empty());
    assert_eq!(said(blob, 307, "location: /elsewhere"), ["https://ghcr.io/elsewhere sha256:{hex} None"]);
}
