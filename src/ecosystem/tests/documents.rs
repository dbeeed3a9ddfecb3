//! What documents say, and what they may not.

use std::fmt::Write as _;
use std::io::Write as _;

use proptest::prelude::*;

use super::{HEX, target};
use crate::ecosystem::{Document, Passing, Statement, Unread};
use crate::http::StoredHead;

fn head(fields: &[(&str, &str)]) -> StoredHead {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    StoredHead { status: 200, fields: fields.collect() }
}

/// What a document says, a line each: URL, digest, size.
fn said(url: &str, kind: &str, body: &[u8], companion: Option<&str>) -> Vec<String> {
    let (target, head) = (target(url), head(&[("content-type", kind)]));
    let passing = Passing { target: &target, head: &head, is_packument: false };
    let document = Document::of(passing).unwrap_or_else(|| panic!("{url} is no document"));
    let (found, result) = read(document, passing, body, companion);
    result.unwrap();
    let mut lines: Vec<String> = found.iter().map(line).collect();
    lines.sort();
    lines
}

fn read(
    document: Document,
    passing: Passing<'_>,
    body: &[u8],
    companion: Option<&str>,
) -> (Vec<Statement>, Result<(), Unread>) {
    let mut found = Vec::new();
    let mut hear = |statement| {
        found.push(statement);
        true
    };
    let result =
        document.read(passing, body, companion.map(|text| (passing.head, text.as_bytes())), &mut hear);
    (found, result)
}

fn line(statement: &Statement) -> String {
    let size = statement.size.map_or_else(String::new, |size| format!(" {size}"));
    let hex = statement.digest.to_string().replace(HEX, "{hex}");
    format!("{} {hex}{size}", statement.target.url())
}

fn hexed(text: &str) -> String {
    text.replace("{hex}", HEX).replace("{sha1}", "da39a3ee5e6b4b0d3255bfef95601890afd80709")
}

#[test]
fn which_answers_are_documents() {
    let json = "application/json";
    for (url, kind, document) in [
        ("http://d/dists/sid/InRelease", "text/plain", Some(Document::Release)),
        ("http://d/dists/sid/Release", "", Some(Document::Release)),
        ("http://d/dists/sid/Release.gpg", "", None),
        ("http://d/flat/./Packages.gz", "application/gzip", Some(Document::Packages)),
        ("http://d/flat/Sources.xz", "", Some(Document::Packages)),
        ("http://d/dists/sid/main/binary-amd64/Packages.zst", "", Some(Document::Packages)),
        ("http://d/dists/sid/main/by-hash/SHA256/{hex}", "", Some(Document::Packages)),
        ("http://d/Packages.html", "text/html", None),
        ("https://pypi.org/simple/pip/", "text/html; charset=utf-8", Some(Document::SimplePage)),
        ("https://pypi.org/simple/pip/", "application/vnd.pypi.simple.v1+json", Some(Document::SimpleJson)),
        ("https://p/x", "Application/vnd.pypi.simple.v1+HTML", Some(Document::SimplePage)),
        ("https://p/x", "text/html", None),
        ("https://pypi.org/pypi/pip/json", json, Some(Document::Project)),
        ("https://registry.npmjs.org/left-pad", json, Some(Document::Packument)),
        ("https://n/left-pad", "application/vnd.npm.install-v1+json", Some(Document::Packument)),
        ("https://n/left-pad", json, None),
        ("https://index.crates.io/se/rd/serde", "text/plain", Some(Document::Crate)),
        ("https://i/idx/3/a/abc", "", Some(Document::Crate)),
        ("https://i/idx/1/a", "", Some(Document::Crate)),
        ("https://i/idx/2/ab", "", Some(Document::Crate)),
        ("https://i/idx/se/rd/other", "", None),
        ("https://i/config.json", json, None),
        (
            "https://r/v2/a/manifests/latest",
            "application/vnd.oci.image.index.v1+json",
            Some(Document::Manifest),
        ),
        ("https://c/abc.narinfo", "text/x-nix-narinfo", Some(Document::NarInfo)),
        ("https://h/SHA256SUMS", "", Some(Document::Checksums)),
        ("https://h/sha512sums.txt", "", Some(Document::Checksums)),
        ("https://h/Fedora-42-x86_64-CHECKSUM", "", Some(Document::Checksums)),
        ("https://h/tool_1.0_checksums.txt", "", Some(Document::Checksums)),
        ("https://h/x.tar.gz.sha256", "", Some(Document::Checksums)),
        ("https://h/SHASUMS256.txt.asc", "", Some(Document::Checksums)),
        ("https://h/.sha256", "", None),
        ("https://h/SHA256SUMS.gpg", "", None),
        ("https://h/x.tar.gz", "", None),
        ("https://h/", "text/html", None),
    ] {
        let (target, head) = (target(url), head(&[("content-type", kind)]));
        let passing = Passing { target: &target, head: &head, is_packument: false };
        assert_eq!(Document::of(passing), document, "{url} {kind}");
        let not_found = StoredHead { status: 404, ..head.clone() };
        assert_eq!(Document::of(Passing { head: &not_found, ..passing }), None, "{url}");
    }
    let (target, head) = (target("https://n/left-pad"), head(&[("content-type", json)]));
    let passing = Passing { target: &target, head: &head, is_packument: true };
    assert_eq!(Document::of(passing), Some(Document::Packument));
    for (name, value, asks) in [
        ("accept", "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*", true),
        ("pacote-req-type", "packument", true),
        ("pacote-req-type", "tarball", false),
        ("accept", "application/json", false),
    ] {
        let request = [(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect();
        assert_eq!(crate::ecosystem::asks_for_packument(&request), asks, "{name}: {value}");
    }
}

#[test]
fn a_release_states_its_index_files() {
    let release = hexed(
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOrigin: x\nMD5Sum:\n d41d8cd98f00b204e9800998ecf8427e 5 \
         main/binary-amd64/Packages\n d41d8cd98f00b204e9800998ecf8427e 0 old\nSHA256: \n {hex}  5 main/binary-amd64/Packages\n \
         {hex} 9 ../../escape\n {hex} 9 /etc/passwd\n nonsense\n zz 1 x\nAcquire-By-Hash: yes\n {hex} 7 no/list\n\
         -----BEGIN PGP SIGNATURE-----\nSHA256:\n {hex} 6 forged\n",
    );
    const BY_HASH: &str = "http://d/debian/dists/sid/main/binary-amd64/by-hash/SHA256/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad sha256:{hex} 5";
    let want = [
        "http://d/debian/dists/sid/main/binary-amd64/Packages sha256:{hex} 5",
        BY_HASH,
        "http://d/debian/dists/sid/old md5:d41d8cd98f00b204e9800998ecf8427e 0",
    ];
    assert_eq!(said("http://d/debian/dists/sid/InRelease", "", release.as_bytes(), None), want);
    let flat = said("http://d/f/./Release", "", hexed("SHA256:\n {hex} 5 Packages\n").as_bytes(), None);
    assert_eq!(flat, ["http://d/f/Packages sha256:{hex} 5"]);
}

#[test]
fn packages_state_their_files_however_they_are_packed() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/packed");
    let want = ["g++-fake_4%253a14.2-1", "hello_2.10-3", "tilde_1.0~rc1"];
    for file in ["Packages", "Packages.gz", "Packages.xz", "Packages.zst"] {
        let body = std::fs::read(format!("{fixtures}/{file}")).unwrap();
        for name in [file.to_owned(), format!("by-hash/SHA256/{HEX}")] {
            let found = said(&format!("http://d/r/dists/sid/main/binary-amd64/{name}"), "", &body, None);
            assert_eq!(found.len(), 3, "{file}: {found:?}");
            for (line, want) in found.iter().zip(want) {
                assert!(
                    line.starts_with("http://d/r/pool/main/")
                        && line.contains(&format!("/{want}_amd64.deb sha256:")),
                    "{line}"
                );
            }
        }
        if file != "Packages" {
            assert!(
                said(&format!("http://d/dists/sid/{file}"), "", b"Package: x\n\nSize: 1\n", None).is_empty()
            );
        }
    }
}

#[test]
fn archives_without_dists_begin_beside_or_above_their_index() {
    let one = |name: &str| hexed(&format!("Package: x\nFilename: {name}\nSize: 7\nSHA256: {{hex}}\n"));
    for (url, name, want) in [
        ("http://d/debs/./Packages", "./x_1_all.deb", vec!["http://d/debs/x_1_all.deb sha256:{hex} 7"]),
        ("http://d/debs/Packages", "x_1_all.deb", vec!["http://d/debs/x_1_all.deb sha256:{hex} 7"]),
        (
            "http://d/r/debs/Packages",
            "debs/x_1_all.deb",
            vec![
                "http://d/r/debs/debs/x_1_all.deb sha256:{hex} 7",
                "http://d/r/debs/x_1_all.deb sha256:{hex} 7",
            ],
        ),
        ("http://d/r/debs/Packages", "../other/x_1_all.deb", vec![]),
        ("http://d/Packages", "x_1_all.deb", vec!["http://d/x_1_all.deb sha256:{hex} 7"]),
        ("http://d/f/by-hash/SHA256/{hex}", "./x_1_all.deb", vec!["http://d/f/x_1_all.deb sha256:{hex} 7"]),
        // a line that is too long is none
        ("http://d/Packages", &"x".repeat(70_000), vec![]),
    ] {
        assert_eq!(said(url, "", one(name).as_bytes(), None), want, "{url} {name}");
    }
}

#[test]
fn sources_state_the_files_of_each_package() {
    let sources = hexed(
        "Package: x\nDirectory: pool/x\nFiles:\n d41d8cd98f00b204e9800998ecf8427e 7 x_1.dsc\nChecksums-Sha256:\n \
         {hex} 7 x_1.dsc\n {hex} 8 x_1.tar.xz\n\nPackage: y\nDirectory: .\nChecksums-Sha256:\n {hex} 9 y_1.dsc",
    );
    let want = ["http://d/pool/x/x_1.dsc sha256:{hex} 7", "http://d/pool/x/x_1.tar.xz sha256:{hex} 8"];
    let found = said("http://d/dists/sid/main/source/Sources", "", sources.as_bytes(), None);
    assert_eq!(found.get(..2).unwrap(), want);
}

#[test]
fn a_page_of_an_index_states_its_links() {
    let page = hexed(
        r#"<!DOCTYPE html><html><body><h1>x</h1>
        <a href="../../packages/x-1-py3-none-any.whl#sha256={hex}" data-dist-info-metadata="sha256={hex}">x</a>
        <A class=a HREF='https://files.pythonhosted.org/packages/y-1.tar.gz#sha256={hex}&amp;egg=y'>y</a>
        <a href="https://evil.example/z.whl#sha256={hex}" data-core-metadata="true">z</a>
        <a href="/packages/md5.whl#md5=d41d8cd98f00b204e9800998ecf8427e">old</a>
        <a href="/packages/none.whl">none</a><a>no</a>
        <!-- <a href="/commented.whl#sha256={hex}"> --><script>"<a href='/s.whl#sha256={hex}'>"</script>
        <a href="/q.whl?a=b#sha256={hex}" data-core-metadata="sha256={hex}">q"#,
    );
    let found = said("https://pypi.org/simple/x/", "text/html", page.as_bytes(), None);
    let want = [
        "https://files.pythonhosted.org/packages/y-1.tar.gz sha256:{hex}",
        "https://pypi.org/packages/md5.whl md5:d41d8cd98f00b204e9800998ecf8427e",
        "https://pypi.org/packages/x-1-py3-none-any.whl sha256:{hex}",
        "https://pypi.org/packages/x-1-py3-none-any.whl.metadata sha256:{hex}",
    ];
    let found: Vec<_> =
        found.iter().filter(|line| !line.contains("/s.whl") && !line.contains("q.whl")).collect();
    assert_eq!(found, want);
    // an index in a folder of a host speaks for that folder alone, and for no file host of another index
    let found = said("https://host/evil/simple/x/", "text/html", page.as_bytes(), None);
    assert_eq!(
        found,
        [
            "https://host/evil/packages/x-1-py3-none-any.whl sha256:{hex}",
            "https://host/evil/packages/x-1-py3-none-any.whl.metadata sha256:{hex}"
        ]
    );
    let based = hexed(r#"<base href="/files/"><a href="x.whl#sha256={hex}">"#);
    assert_eq!(
        said("http://h/simple/x/", "text/html", based.as_bytes(), None),
        ["http://h/files/x.whl sha256:{hex}"]
    );
}

#[test]
fn a_page_of_an_index_as_json() {
    let page = hexed(
        r#"{"meta":{"api-version":"1.1"},"name":"x","files":[
        {"filename":"x.whl","url":"/p/x.whl","hashes":{"sha256":"{hex}","md5":"d41d8cd98f00b204e9800998ecf8427e"},"size":7,
         "core-metadata":{"sha256":"{hex}"},"yanked":false},
        {"filename":"y.whl","url":"y.whl","hashes":{},"dist-info-metadata":false,"yanked":"because"},
        {"filename":"z.whl","url":"z.whl","hashes":{"crc":"00","sha512":"zz"},"core-metadata":true}]}"#,
    );
    let kind = "application/vnd.pypi.simple.v1+json";
    let want = ["http://h/p/x.whl sha256:{hex} 7", "http://h/p/x.whl.metadata sha256:{hex}"];
    assert_eq!(said("http://h/simple/x/", kind, page.as_bytes(), None), want);
    let project = hexed(
        r#"{"info":{},"urls":[],"releases":{"1":[{"url":"https://files.pythonhosted.org/x.whl","size":7,
        "digests":{"blake2b_256":"00","sha256":"{hex}"}}],"2":[]}}"#,
    );
    let found = said("https://pypi.org/pypi/x/json", "application/json", project.as_bytes(), None);
    assert_eq!(found, ["https://files.pythonhosted.org/x.whl sha256:{hex} 7"]);
}

#[test]
fn a_packument_states_its_tarballs() {
    let sha512 = "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==";
    let packument = hexed(&format!(
        r#"{{"name":"@s/n","dist-tags":{{"latest":"2"}},"versions":{{
        "1":{{"dist":{{"tarball":"http://h/r/@s/n/-/n-1.tgz","shasum":"{{sha1}}"}}}},
        "2":{{"dist":{{"tarball":"http://h/r/@s/n/-/n-2.tgz","shasum":"{{sha1}}","integrity":"sha1-AAAA sha512-{sha512}?x"}}}},
        "3":{{"dist":{{"tarball":"http://h/other/-/n-3.tgz","shasum":"{{sha1}}"}}}},
        "4":{{"dist":{{"tarball":"https://evil/n-4.tgz","shasum":"{{sha1}}"}}}},
        "5":{{}}}}}}"#
    ));
    let kind = "application/vnd.npm.install-v1+json";
    for url in ["http://h/r/@s%2fn", "http://h/r/@s%2Fn", "http://h/r/@s/n"] {
        let found = said(url, kind, packument.as_bytes(), None);
        let [one, two] = found.as_slice() else { panic!("{url}: {found:?}") };
        assert_eq!(*one, hexed("http://h/r/@s/n/-/n-1.tgz sha1:{sha1}"));
        assert!(two.starts_with("http://h/r/@s/n/-/n-2.tgz sha512:cf83e1357eefb8bd"), "{two}");
    }
}

#[test]
fn a_crate_states_its_versions() {
    let lines = hexed(
        "{\"name\":\"serde\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"{hex}\",\"features\":{},\"yanked\":false}\n\
         not json\n{\"name\":\"serde\",\"vers\":\"1.0.1\",\"cksum\":\"zz\"}\n\n\
         {\"name\":\"serde\",\"vers\":\"2.0.0+x\",\"cksum\":\"{hex}\",\"yanked\":true}",
    );
    let at = |url: &str, config: Option<&str>| said(url, "text/plain", lines.as_bytes(), config);
    assert_eq!(
        at("https://index.crates.io/se/rd/serde", None),
        [
            "https://static.crates.io/crates/serde/1.0.0/download sha256:{hex}",
            "https://static.crates.io/crates/serde/2.0.0+x/download sha256:{hex}"
        ]
    );
    assert!(at("http://h/index/se/rd/serde", None).is_empty());
    for (dl, first) in [
        (r#"{"dl":"http://h/dl"}"#, Some("http://h/dl/serde/1.0.0/download sha256:{hex}")),
        (
            r#"{"dl":"http://h/{prefix}/{lowerprefix}/{crate}-{version}.crate","api":null}"#,
            Some("http://h/se/rd/se/rd/serde-1.0.0.crate sha256:{hex}"),
        ),
        // another operator's host: nothing may be said of it
        (r#"{"dl":"https://static.crates.io/crates"}"#, None),
        (r#"{"dl":"http://h:81/dl"}"#, None),
        (r#"{"dl":"https://h/dl"}"#, None),
    ] {
        assert_eq!(at("http://h/index/se/rd/serde", Some(dl)).first().map(String::as_str), first, "{dl}");
    }
    // an index in somebody's folder speaks for what stands beside it, not for other people's folders
    let config = r#"{"dl":"http://h/good/dl"}"#;
    assert!(at("http://h/evil/index/se/rd/serde", Some(config)).is_empty());
}

#[test]
fn a_manifest_states_its_parts() {
    let manifest = hexed(
        r#"{"schemaVersion":2,"config":{"digest":"sha256:{hex}","size":7},"layers":[{"digest":"sha256:{hex}","size":8},
        {"digest":"sha256:../../x","size":8},{"digest":"nonsense"}],
        "manifests":[{"digest":"sha256:{hex}","size":9,"platform":{}}]}"#,
    );
    let kind = "application/vnd.oci.image.manifest.v1+json";
    assert_eq!(
        said("https://r/v2/a/b/manifests/latest?ns=docker.io", kind, manifest.as_bytes(), None),
        [
            format!("https://r/v2/a/b/blobs/sha256:{HEX}?ns=docker.io sha256:{{hex}} 7"),
            format!("https://r/v2/a/b/blobs/sha256:{HEX}?ns=docker.io sha256:{{hex}} 8"),
            format!("https://r/v2/a/b/manifests/sha256:{HEX}?ns=docker.io sha256:{{hex}} 9"),
        ]
    );
}

#[test]
fn a_narinfo_states_its_archive() {
    let info = "StorePath: /nix/store/x\nURL: nar/1b8.nar.xz\nCompression: xz\nFileHash: \
                sha256:1b8m03r63zqhnjf7l5wnldhh7c134ap5vpj0850ymkq1iyzicy5s\nFileSize: 77\nNarHash: sha256:0\n";
    let found = said("https://cache.nixos.org/abc.narinfo", "", info.as_bytes(), None);
    assert_eq!(found, ["https://cache.nixos.org/nar/1b8.nar.xz sha256:{hex} 77"]);
    let elsewhere = info.replace("nar/1b8", "https://evil/1b8");
    assert!(said("https://cache.nixos.org/abc.narinfo", "", elsewhere.as_bytes(), None).is_empty());
}

#[test]
fn lists_of_checksums_in_every_form() {
    let sums = hexed(
        "# a comment\n{hex}  a.iso\n{hex} *b.iso\nSHA256 (c d.iso) = {hex}\nMD5 (e.iso) = d41d8cd98f00b204e9800998ecf8427e\n\
         \\{hex}  new\\nline\\\\.iso\n\\{hex}  bad\\x.iso\n{hex}  ./sub/f.iso\n{hex}  ../up.iso\n{hex}  /abs.iso\n\
         {sha1}  g.iso\nzz  h.iso\n{hex}\nSHA256 (broken = {hex}\nNOPE (i.iso) = {hex}\r\n{hex}  j.iso\r\n",
    );
    assert_eq!(
        said("http://h/d/SHA256SUMS", "", sums.as_bytes(), None),
        [
            "http://h/d/a.iso sha256:{hex}",
            "http://h/d/b.iso sha256:{hex}",
            "http://h/d/c%20d.iso sha256:{hex}",
            "http://h/d/e.iso md5:d41d8cd98f00b204e9800998ecf8427e",
            "http://h/d/g.iso sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "http://h/d/j.iso sha256:{hex}",
            "http://h/d/new%0Aline%5C.iso sha256:{hex}",
            "http://h/d/sub/f.iso sha256:{hex}",
        ]
    );
    let signed = hexed(
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# x.iso: 7 bytes\nSHA256 (x.iso) = {hex}\n\
         -----BEGIN PGP SIGNATURE-----\n{hex}  forged.iso\n",
    );
    let found = said("http://h/d/Fedora-42-CHECKSUM", "", signed.as_bytes(), None);
    assert_eq!(found, ["http://h/d/x.iso sha256:{hex}"]);
}

#[test]
fn the_checksum_of_one_file_stands_beside_it() {
    let sha512 = "0a".repeat(64);
    for (url, text, want) in [
        ("http://h/x.iso.sha256", "{hex}\n", "http://h/x.iso sha256:{hex}"),
        ("http://h/x.iso.sha256", "{hex}  x.iso", "http://h/x.iso sha256:{hex}"),
        ("http://h/x.iso.sha256", "{hex}  -", "http://h/x.iso sha256:{hex}"),
        ("http://h/x.iso.sha256sum", "{hex} *./x.iso", "http://h/x.iso sha256:{hex}"),
        (
            "http://h/m/a/1/a-1.jar.sha1",
            "{sha1}",
            "http://h/m/a/1/a-1.jar sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
        ),
        (
            "http://h/x.md5",
            "d41d8cd98f00b204e9800998ecf8427e x",
            "http://h/x md5:d41d8cd98f00b204e9800998ecf8427e",
        ),
        ("http://h/x.b3sum", "{hex}  x", "http://h/x blake3:{hex}"),
        ("http://h/a%2bb.sha256", "{hex}", "http://h/a+b sha256:{hex}"),
    ] {
        assert_eq!(said(url, "", hexed(text).as_bytes(), None), [want], "{url} {text}");
    }
    let found = said("http://h/x.b2sum", "", format!("{sha512}  x").as_bytes(), None);
    assert_eq!(found, [format!("http://h/x blake2b:{sha512}")]);
    assert!(said("http://h/x.sha256", "", b"<html>not found</html>", None).is_empty());
}

#[test]
fn whoever_has_heard_enough_hears_no_more() {
    let mut sums = String::new();
    for n in 0..100 {
        writeln!(sums, "{HEX}  {n}.iso").unwrap();
    }
    let (target, head) = (target("http://h/SHA256SUMS"), head(&[]));
    let passing = Passing { target: &target, head: &head, is_packument: false };
    let mut heard = 0;
    let mut hear = |_statement| {
        heard += 1;
        heard < 10
    };
    let result = Document::Checksums.read(passing, sums.as_bytes(), None, &mut hear);
    assert!(matches!(result, Err(Unread::Enough)) && heard == 10);
}

#[test]
fn an_index_without_end_is_left() {
    let mut sums = String::new();
    for n in 0..100_100 {
        writeln!(sums, "{HEX}  {n}.iso").unwrap();
    }
    let (target, head) = (target("http://h/SHA256SUMS"), head(&[]));
    let passing = Passing { target: &target, head: &head, is_packument: false };
    let (found, result) = read(Document::Checksums, passing, sums.as_bytes(), None);
    assert!(matches!(result, Err(Unread::Enough)) && found.len() == 100_000);
    // a bomb: 600 MB of nothing in half a megabyte
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..600 {
        bomb.write_all(&[b'x'; 1 << 20]).unwrap();
    }
    let (found, result) = read(Document::Packages, passing, &bomb.finish().unwrap(), None);
    assert!(matches!(result, Err(Unread::Bytes(_))) && found.is_empty(), "{result:?}");
    // a line without end
    let line = vec![b'a'; 5_000_000];
    let (found, result) = read(Document::Checksums, passing, &line, None);
    assert!(result.is_ok() && found.is_empty());
    // brackets without end
    let brackets = "[".repeat(1_000_000);
    let (found, result) = read(Document::Packument, passing, brackets.as_bytes(), None);
    assert!(matches!(result, Err(Unread::Form(_))) && found.is_empty());
}

const ALL: [Document; 10] = [
    Document::Release,
    Document::Packages,
    Document::SimplePage,
    Document::SimpleJson,
    Document::Project,
    Document::Packument,
    Document::Crate,
    Document::Manifest,
    Document::NarInfo,
    Document::Checksums,
];

proptest! {
    #[test]
    fn no_document_panics_or_speaks_for_others(
        text in "(SHA256:\n|Filename: |Directory: |URL: |FileHash: sha256:|\\{\"dl\":|<a href=|#sha256=|[a-f0-9]{64}| |\n|\\PC{0,9}){0,30}",
        path in "/([a-z./%]|simple|dists|manifests){0,20}",
    ) {
        let Ok(target) = crate::http::Target::new(crate::http::Scheme::Http, "h", &path) else { return Ok(()) };
        let head = head(&[("content-type", "x")]);
        let passing = Passing { target: &target, head: &head, is_packument: false };
        for document in ALL {
            let (found, _) = read(document, passing, text.as_bytes(), Some(&text));
            prop_assert!(found.iter().all(|statement| statement.target.origin() == "http://h"));
            prop_assert!(found.iter().all(|statement| statement.digest.value().len() == statement.digest.algorithm().length()));
        }
    }

    #[test]
    fn a_list_of_names_is_read_back(names in prop::collection::btree_set("[a-z0-9+~][a-z0-9 ._+~\\\\\n-]{0,9}[a-z]", 1..8)) {
        let mut text = String::new();
        for name in &names {
            let escaped = name.replace('\\', "\\\\").replace('\n', "\\n");
            let mark = if escaped == *name { "" } else { "\\" };
            writeln!(text, "{mark}{HEX}  {escaped}").unwrap();
        }
        let path = |name: &String| crate::ecosystem::scope::path_of_name("/", name).unwrap();
        let mut wanted: Vec<_> = names.iter().map(|name| format!("http://h{} sha256:{{hex}}", path(name))).collect();
        wanted.sort();
        prop_assert_eq!(said("http://h/SHA256SUMS", "", text.as_bytes(), None), wanted);
    }
}
