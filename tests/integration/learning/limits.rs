//! What a stated digest may not do: speak for others, outlive the origin's word, or hurt whoever reads it.

use std::io::Write as _;

use super::{Archive, expectation, hex, two, wait_for_expectation, wheel_page};
use crate::support::{Larder, MIB, Origin, Script, Site, sha256, wait_until};

/// Waits until a document that was given out later than the ones before has been read: they are read in turn.
fn all_read(node: &Larder, origin: &Origin) {
    let marker = format!("{}  marker.bin\n", sha256(b"marker"));
    node.get(&origin.serve("/marker/SHA256SUMS", Script::of("text/plain", marker)));
    wait_for_expectation(node, &origin.url("/marker/marker.bin"));
}

#[test]
fn a_page_says_nothing_of_another_origins_files() {
    let (victim, a, b) = two();
    let (evil, path) = (Origin::start(), "/files/x-1.0-py3-none-any.whl");
    let (good, bad) = (Script::new(MIB), Script::new(MIB).seed(66));
    let url = victim.serve(path, good.clone());
    // the neighbour holds what the page names
    let bait = evil.serve("/bait.bin", bad.clone());
    a.get(&bait).assert_whole(&bad);
    a.wait_for_blob(&bad.digest());
    for (page, script) in [
        ("/simple/x/", wheel_page(&url, &bad)),
        ("/SHA256SUMS", Script::of("text/plain", format!("{}  {url}\n", hex(&bad)))),
        (
            "/simple/y/",
            Script::of(
                "text/html",
                format!("<base href=\"{}\"><a href=\"{path}#sha256={}\">", victim.url("/"), hex(&bad)),
            ),
        ),
    ] {
        b.get(&evil.serve(page, script.clone())).assert_whole(&script);
    }
    all_read(&b, &evil);
    assert_eq!(expectation(&b, &url), None);
    b.get(&url).assert_whole(&good);
    assert_eq!(victim.gets(path).len(), 1);
}

#[test]
fn a_page_in_clear_says_nothing_of_https_files() {
    let site = Site::new();
    let (clear, secure) = (Origin::start(), Origin::start_tls());
    let a = Larder::new("a").peers(&site).trusts(&secure).start();
    let b = Larder::new("b").peers(&site).trusts(&secure).start();
    a.meets(&b);
    let (good, bad) = (Script::new(MIB), Script::new(MIB).seed(66));
    let url = secure.serve("/files/x-1.0-py3-none-any.whl", good.clone());
    a.get(&clear.serve("/bait.bin", bad.clone())).assert_whole(&bad);
    a.wait_for_blob(&bad.digest());
    b.get(&clear.serve("/simple/x/", wheel_page(&url, &bad)));
    all_read(&b, &clear);
    assert_eq!(expectation(&b, &url), None);
    b.prefix(&url).send().assert_whole(&good);
    // what the origin's own page says over https counts
    let page = secure.serve("/simple/x/", wheel_page(&url, &good));
    b.prefix(&page).send();
    assert_eq!(wait_for_expectation(&b, &url)["stated_over_https"], true);
}

#[test]
fn a_folder_of_somebody_else_on_the_same_host_is_not_spoken_for() {
    let (origin, a, b) = two();
    let (good, bad) = (Script::new(MIB), Script::new(MIB).seed(66));
    let url = origin.serve("/good/repo/x-1.0-py3-none-any.whl", good.clone());
    a.get(&origin.serve("/evil/bait.bin", bad.clone())).assert_whole(&bad);
    a.wait_for_blob(&bad.digest());
    b.get(&origin.serve("/evil/simple/x/", wheel_page(&url, &bad)));
    let sums = format!("{}  ../good/repo/x-1.0-py3-none-any.whl\n", hex(&bad));
    b.get(&origin.serve("/evil/SHA256SUMS", Script::of("text/plain", sums)));
    all_read(&b, &origin);
    assert_eq!(expectation(&b, &url), None);
    b.get(&url).assert_whole(&good);
}

#[test]
fn what_only_a_client_named_teaches_nothing() {
    let (origin, a, b) = two();
    let (good, bad) = (Script::new(MIB), Script::new(MIB).seed(66));
    let path = "/pool/x_1_amd64.deb";
    let url = origin.serve(path, good.clone());
    a.get(&origin.serve("/evil/bait.bin", bad.clone())).assert_whole(&bad);
    a.wait_for_blob(&bad.digest());
    // an index of lies, which the neighbour holds under a URL of its own
    let lies = format!("Package: x\nFilename: pool/x_1_amd64.deb\nSHA256: {}\n\n", hex(&bad));
    let lies = Script::of("text/plain", format!("{lies}{}", "\n".repeat(5000)));
    a.get(&origin.serve("/evil/lies.txt", lies.clone())).assert_whole(&lies);
    a.wait_for_blob(&lies.digest());
    let by_hash = origin.url(&format!("/dists/sid/main/by-hash/SHA256/{}", hex(&lies)));
    assert!(b.get(&by_hash).assert_whole(&lies).is_from_peer());
    let stated = origin.url("/dists/sid/main/binary-amd64/Packages");
    assert!(b.ask(&stated).field("Larder-Digest", &lies.digest()).send().assert_whole(&lies).is_hit());
    all_read(&b, &origin);
    assert_eq!(expectation(&b, &url), None);
    b.get(&url).assert_whole(&good);
}

#[test]
fn a_digest_gone_stale_never_refuses_the_origins_bytes() {
    let (origin, a, b) = two();
    let path = "/files/x-1.0-py3-none-any.whl";
    let (old, new) = (Script::new(3 * MIB), Script::new(2 * MIB).seed(5));
    let url = origin.serve(path, new.clone());
    let page = origin.serve("/simple/x/", wheel_page(&url, &old));
    b.get(&page);
    wait_for_expectation(&b, &url);
    let answer = b.get(&url);
    answer.assert_whole(&new);
    assert!(!answer.is_from_peer());
    wait_until("the stale digest to be dropped", || expectation(&b, &url).is_none());
    b.wait_for_blob(&new.digest());
    assert!(b.get(&url).assert_whole(&new).is_hit());
    b.verify_all_blobs();
    drop(a);
}

#[test]
fn a_weak_digest_is_compared_and_never_enough() {
    let (origin, a, b) = two();
    let image = Script::new(3 * MIB).no_etag().cache_control("no-cache");
    let url = origin.serve("/d/image.iso", image.clone());
    a.get(&url).assert_whole(&image);
    a.wait_for_blob(&image.digest());
    let wrong = Script::of("text/plain", format!("{}  image.iso\n", "0b".repeat(16)));
    b.get(&origin.serve("/d/MD5SUMS", wrong));
    wait_for_expectation(&b, &url);
    let answer = b.get(&url);
    answer.assert_whole(&image);
    assert!(!answer.is_from_peer(), "{}", answer.cache_status());
    wait_until("the wrong MD5 to be dropped", || expectation(&b, &url).is_none());
}

#[test]
fn k01_a_set_of_index_files_is_never_mixed() {
    // the same second, the same size: only the contents differ, and there is a day of freshness
    let decorate = |script: Script| {
        script.no_etag().last_modified("Mon, 30 Nov 2026 12:00:00 GMT").cache_control("max-age=86400")
    };
    let (origin, a, b) = two();
    for round in 0..20 {
        let deb = Script::new(5000).seed(round);
        let archive = Archive::publish(&origin, &[("/pool/x_1_amd64.deb", &deb)], decorate);
        origin.serve("/pool/x_1_amd64.deb", deb.clone());
        for node in [&a, &b, &a] {
            let release = node.get(&archive.release).text();
            wait_until("the set to be known", || {
                expectation(node, &archive.packages).is_some_and(|told| {
                    release.contains(told["expected"].as_str().unwrap().trim_start_matches("sha256:"))
                })
            });
            let packages = node.get(&archive.packages);
            assert!(release.contains(&sha256(&packages.body)), "round {round}: {}", packages.cache_status());
        }
    }
}

#[test]
fn bombs_and_endless_lines_pass_and_hurt_nobody() {
    let origin = Origin::start();
    let node = Larder::new("a").start();
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..2000 {
        bomb.write_all(&vec![0; MIB as usize]).unwrap();
    }
    let line = vec![b'a'; 8_000_000];
    let brackets = "[".repeat(4_000_000);
    let idle = node.rss();
    for (path, script) in [
        ("/dists/sid/main/binary-amd64/Packages.gz", Script::of("application/gzip", bomb.finish().unwrap())),
        ("/dists/sid/Release", Script::of("text/plain", &line)),
        ("/SHA256SUMS", Script::of("text/plain", &line)),
        ("/se/rd/serde", Script::of("text/plain", &line)),
        ("/simple/x/", Script::of("text/html", [b"<a href=\"".as_slice(), &line].concat())),
        ("/simple/y/", Script::of("application/vnd.pypi.simple.v1+json", &brackets)),
        (
            "/left-pad",
            Script::of("application/vnd.npm.install-v1+json", format!("{{\"versions\":{brackets}")),
        ),
        ("/v2/x/manifests/y", Script::of("application/vnd.oci.image.manifest.v1+json", &brackets)),
    ] {
        node.get(&origin.serve(path, script.clone())).assert_whole(&script);
    }
    all_read(&node, &origin);
    let grown = node.rss().saturating_sub(idle);
    println!("after bombs of 2 GB: {} MiB more", grown / MIB);
    assert!(grown < 200 * MIB, "{grown}");
    node.get(&origin.serve("/f.bin", Script::new(MIB))).assert_whole(&Script::new(MIB));
}

#[test]
fn k14_tokens_and_refusals_are_nobody_elses() {
    let origin = Origin::start();
    let node = Larder::new("a").start();
    let refusal = Script::new(50)
        .status(401)
        .cache_control("max-age=600")
        .field("WWW-Authenticate", "Bearer realm=\"x\"");
    let refused = origin.serve("/v2/", refusal);
    let token = origin.serve(
        "/token",
        Script::of("application/json", "{\"token\":\"s3cret\"}").cache_control("max-age=600"),
    );
    for user in ["one", "two"] {
        let answer = node.get(&refused);
        assert_eq!((answer.status, answer.is_hit()), (401, false));
        assert_eq!(answer.field("WWW-Authenticate"), Some("Bearer realm=\"x\""));
        let ask = format!("{token}?service=registry&scope=repository:x:pull&account={user}");
        for _ in 0..2 {
            assert!(!node.get(&ask).is_hit());
        }
    }
    assert_eq!((origin.gets("/v2/").len(), origin.gets("/token").len()), (2, 4));
    assert!(node.blobs().is_empty(), "nothing of it was kept");
}

#[test]
fn k15_a_tag_is_confirmed_each_time_and_a_digest_never() {
    let origin = Origin::start();
    let node = Larder::new("a").start();
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = |n: u32| {
        let text = format!("{{\"schemaVersion\":2,\"layers\":[],\"annotations\":{{\"n\":\"{n}\"}}}}");
        let script = Script::of(kind, text).cache_control("no-cache");
        let digest = script.digest();
        script.field("Docker-Content-Digest", &digest)
    };
    for n in 0..3 {
        let latest = manifest(n);
        let tag = origin.serve("/v2/a/manifests/latest", latest.clone());
        let by_digest = format!("/v2/a/manifests/{}", latest.digest());
        let url = origin.serve(&by_digest, latest.clone());
        for _ in 0..2 {
            node.get(&tag).assert_whole(&latest);
            node.get(&url).assert_whole(&latest);
            node.wait_for_blob(&latest.digest());
        }
        assert!(origin.gets(&by_digest).len() <= 1, "{n}");
        let seen = origin.gets("/v2/a/manifests/latest");
        assert_eq!(seen.len() as u32, 2 * (n + 1), "each time");
    }
}
