//! Learned digests: what an index states of a file lets the neighbour give it, and what it may not do.

mod limits;
mod sidecars;

use sha2::{Digest as _, Sha512};

use crate::support::{Answer, Larder, MIB, Origin, Script, Site, sha256, wait_until};

/// Two nodes that know each other, and an origin.
fn two() -> (Origin, Larder, Larder) {
    let site = Site::new();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    (Origin::start(), a, b)
}

/// What a node has been told of a URL.
fn expectation(node: &Larder, url: &str) -> Option<serde_json::Value> {
    let path = format!("/api/v1/explanation?url={}", url.replace('%', "%25").replace('+', "%2B"));
    let answer = node.admin_ask("GET", &path).send();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let explained: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    explained.get("expected").is_some().then_some(explained)
}

/// Waits until a node has been told the digest of a URL.
fn wait_for_expectation(node: &Larder, url: &str) -> serde_json::Value {
    wait_until(&format!("a digest of {url}"), || expectation(node, url).is_some());
    expectation(node, url).unwrap()
}

/// The first node has the index and the file; the second one has the file from the first, without a byte of the
/// origin's.
fn assert_second_from_first(
    origin: &Origin,
    nodes: (&Larder, &Larder),
    index: &[&str],
    path: &str,
    file: &Script,
) {
    let (a, b) = nodes;
    let url = origin.serve(path, file.clone());
    for url in index {
        assert_eq!(a.get(url).status, 200, "{url}");
    }
    wait_for_expectation(a, &url);
    a.get(&url).assert_whole(file);
    a.wait_for_blob(&file.digest());
    for url in index {
        assert_eq!(b.get(url).status, 200, "{url}");
    }
    let stated = wait_for_expectation(b, &url);
    let (gets, bytes) = (origin.requests(path).len(), origin.bytes_sent(path));
    let answer = b.get(&url);
    answer.assert_whole(file);
    assert!(answer.is_from_peer(), "{path}: {} ({stated})", answer.cache_status());
    assert_eq!((origin.requests(path).len(), origin.bytes_sent(path)), (gets, bytes), "{path}");
    println!(
        "{path}: {} bytes from the neighbour, none from the origin; told by {}",
        file.size, stated["stated_by"]
    );
}

fn hex(script: &Script) -> String {
    script.digest().replace("sha256:", "")
}

fn sri(script: &Script) -> String {
    use base64::Engine as _;
    format!("sha512-{}", base64::engine::general_purpose::STANDARD.encode(Sha512::digest(script.body())))
}

fn wheel_page(url: &str, file: &Script) -> Script {
    Script::of("text/html", format!("<html><a href=\"{url}#sha256={}\">x</a></html>", hex(file)))
}

#[test]
fn k07_a_wheel_and_its_metadata_come_from_the_neighbour() {
    let (origin, a, b) = two();
    let (wheel, metadata) = (Script::new(3 * MIB), Script::new(5000).seed(7));
    let path = "/files/x-1.0-py3-none-any.whl";
    let (of_wheel, of_metadata) = (hex(&wheel), hex(&metadata));
    let page = format!(
        "<!DOCTYPE html><a href=\"../..{path}#sha256={of_wheel}\" data-core-metadata=\"sha256={of_metadata}\">x</a>"
    );
    let page = origin.serve("/simple/x/", Script::of("text/html", page).negotiates());
    assert_second_from_first(&origin, (&a, &b), &[&page], path, &wheel);
    assert_second_from_first(&origin, (&a, &b), &[&page], &format!("{path}.metadata"), &metadata);
    // known before the head: the door says it, and so does `info`
    let answer = a.get(&origin.url(path));
    assert!(answer.field("Repr-Digest").is_some());
    let info = b.cli(&["info", &origin.url(path)]).assert_code(0).stdout;
    assert!(info.contains(&wheel.digest()) && info.contains(&page), "{info}");
}

#[test]
fn a_wheel_known_from_an_index_in_json_comes_from_the_neighbour() {
    let (origin, a, b) = two();
    let wheel = Script::new(2 * MIB);
    let path = "/files/y-1.0-py3-none-any.whl";
    let index = serde_json::json!({"meta": {"api-version": "1.1"}, "name": "y", "files": [{"filename": "y",
        "url": origin.url(path), "hashes": {"sha256": hex(&wheel)}, "size": wheel.size}]});
    let index = Script::of("application/vnd.pypi.simple.v1+json", index.to_string());
    let index = origin.serve("/simple/y/", index);
    assert_second_from_first(&origin, (&a, &b), &[&index], path, &wheel);
}

#[test]
fn k10_a_scoped_tarball_comes_from_the_neighbour_by_its_sha_512() {
    let (origin, a, b) = two();
    let tarball = Script::new(2 * MIB);
    let path = "/@s/n/-/n-1.0.0.tgz";
    let dist = serde_json::json!({"tarball": origin.url(path), "integrity": sri(&tarball), "shasum": "ab"});
    let packument = serde_json::json!({"name": "@s/n", "versions": {"1.0.0": {"dist": dist}}});
    let packument = Script::of("application/vnd.npm.install-v1+json", packument.to_string());
    let packument = origin.serve("/@s%2fn", packument);
    assert_second_from_first(&origin, (&a, &b), &[&packument], path, &tarball);
}

#[test]
fn k12_a_crate_comes_from_the_neighbour_and_a_new_version_is_seen() {
    let (origin, a, b) = two();
    let (one, two) = (Script::new(2 * MIB), Script::new(2 * MIB).seed(5));
    let config = format!("{{\"dl\":\"{}\"}}", origin.url("/dl"));
    let config = origin.serve("/index/config.json", Script::of("application/json", config));
    let line = |version: &str, file: &Script| {
        format!("{{\"name\":\"serde\",\"vers\":\"{version}\",\"cksum\":\"{}\",\"deps\":[]}}\n", hex(file))
    };
    let lines = |text: &str| Script::of("text/plain", text).stale_at_once();
    let index = origin.serve("/index/se/rd/serde", lines(&line("1.0.0", &one)));
    assert_second_from_first(&origin, (&a, &b), &[&config, &index], "/dl/serde/1.0.0/download", &one);
    origin.serve("/index/se/rd/serde", lines(&(line("1.0.0", &one) + &line("1.0.1", &two))));
    assert_second_from_first(&origin, (&a, &b), &[&index], "/dl/serde/1.0.1/download", &two);
    let unchanged = b.get(&index);
    assert!(unchanged.cache_status().contains("fwd-status=304"), "{}", unchanged.cache_status());
}

/// An archive with one package, as its index files are.
struct Archive {
    release: String,
    packages: String,
    by_hash: String,
}

impl Archive {
    /// Publishes these packages.
    fn publish(origin: &Origin, packages: &[(&str, &Script)], decorate: impl Fn(Script) -> Script) -> Self {
        let of = |(path, file): &(&str, &Script)| {
            let path = path.trim_start_matches('/');
            format!(
                "Package: x\nVersion: 1\nFilename: {path}\nSize: {}\nSHA256: {}\n\n",
                file.size,
                hex(file)
            )
        };
        let text: String = packages.iter().map(of).collect();
        let name = "main/binary-amd64/Packages";
        let sum = sha256(text.as_bytes());
        let folder = "main/binary-amd64/by-hash/SHA256";
        let release = format!("Origin: x\nAcquire-By-Hash: yes\nSHA256:\n {sum} {} {name}\n", text.len());
        let index = Script::of("text/plain", &text);
        origin.serve(&format!("/dists/sid/{folder}/{sum}"), index.clone());
        Self {
            packages: origin.serve(&format!("/dists/sid/{name}"), decorate(index)),
            release: origin.serve("/dists/sid/InRelease", decorate(Script::of("text/plain", release))),
            by_hash: origin.url(&format!("/dists/sid/{folder}/{sum}")),
        }
    }
}

#[test]
fn k02_a_package_comes_from_the_neighbour_and_so_does_its_index_by_hash() {
    let (origin, a, b) = two();
    let deb = Script::new(3 * MIB);
    let path = "/pool/main/g/g++/g++_1.0~rc1_amd64.deb";
    let archive = Archive::publish(&origin, &[(path, &deb)], |script| script.stale_at_once());
    // apt escapes what the index does not
    let asked = "/pool/main/g/g%2b%2b/g%2b%2b_1.0%7erc1_amd64.deb";
    assert_second_from_first(&origin, (&a, &b), &[&archive.release, &archive.by_hash], asked, &deb);
    let by_hash = archive.by_hash.replace(&origin.url(""), "");
    assert_eq!(origin.gets(&by_hash).len(), 1, "the index by hash came from the neighbour");
}

#[test]
fn k03_a_package_built_again_under_its_name_is_the_new_one() {
    let (origin, a, b) = two();
    let (old, new) = (Script::new(MIB), Script::new(MIB).seed(9));
    let path = "/pool/x_1_amd64.deb";
    for (round, deb) in [&old, &new].into_iter().enumerate() {
        let archive = Archive::publish(&origin, &[(path, deb)], |script| script.stale_at_once());
        let url = origin.serve(path, (*deb).clone());
        for node in [&a, &b] {
            node.get(&archive.release);
            node.get(&archive.by_hash);
            let is_told =
                || expectation(node, &url).is_some_and(|told| told["expected"] == deb.digest().as_str());
            wait_until("the package's new digest", is_told);
            // an hour of freshness is left, but the index says otherwise
            node.get(&url).assert_whole(deb);
            node.wait_for_blob(&deb.digest());
        }
        assert_eq!(origin.gets(path).len(), round + 1, "once from the origin, then from the neighbour");
    }
}

#[test]
fn k19_what_a_redirect_states_of_a_model_lets_the_neighbour_give_it() {
    let (origin, a, b) = two();
    let model = Script::new(3 * MIB);
    let target = origin.serve("/lfs/model.bin", model.clone());
    let resolve = "/x/y/resolve/da39a3ee5e6b4b0d3255bfef95601890afd80709/model.bin";
    let redirect = Script::redirect(&format!("{target}?X-Signature=s3cret"))
        .field("X-Linked-ETag", &format!("\"{}\"", hex(&model)))
        .field("X-Linked-Size", &model.size.to_string())
        .field("X-Repo-Commit", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    let resolve = origin.serve(resolve, redirect.clone());
    let led = |node: &Larder| -> Answer {
        let answer = node.get(&resolve);
        assert_eq!(answer.status, 302);
        for (name, value) in &redirect.fields {
            assert_eq!(answer.field(name), Some(value.as_str()), "{name} is given as it is");
        }
        node.get(answer.field("Location").unwrap())
    };
    led(&a).assert_whole(&model);
    a.wait_for_blob(&model.digest());
    led(&b).assert_whole(&model);
    let told = expectation(&b, &format!("{target}?X-Signature=s3cret")).unwrap();
    assert_eq!(told["expected_size"], model.size);
    assert!(!told.to_string().contains("s3cret"), "{told}");
}

#[test]
fn a_file_that_can_change_comes_from_the_neighbour_only_if_the_origin_names_the_same_version() {
    let site = Site::new();
    let origin = Origin::start();
    let (a, b) = (
        Larder::new("a").peers(&site).start(),
        Larder::new("b").peers(&site).set("peers.trust", "digest").start(),
    );
    a.meets(&b);
    let image = Script::new(6 * MIB).rate(4 * MIB);
    let sums = format!("{}  image.iso\n", hex(&image));
    let sums = origin.serve("/d/SHA256SUMS", Script::of("text/plain", sums));
    let url = origin.serve("/d/image.iso", image.clone());
    a.get(&url).assert_whole(&image);
    a.wait_for_blob(&image.digest());
    b.get(&sums);
    wait_for_expectation(&b, &url);
    let before = origin.bytes_sent("/d/image.iso");
    let answer = b.get(&url);
    answer.assert_whole(&image);
    assert!(answer.is_from_peer(), "{}", answer.cache_status());
    let more = origin.bytes_sent("/d/image.iso") - before;
    assert!(more < 3 * MIB, "{more}");
    // another version now, although list and neighbour say the old one
    let next = Script::new(6 * MIB).seed(3);
    origin.serve("/d/image.iso", next.clone());
    let c = Larder::new("c").peers(&site).set("peers.trust", "digest").start();
    a.meets(&c);
    c.get(&sums);
    wait_for_expectation(&c, &url);
    c.get(&url).assert_whole(&next);
    wait_until("the stale digest to be dropped", || expectation(&c, &url).is_none());
}
