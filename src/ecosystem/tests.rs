//! A row a URL: what its shape promises. A document each: what it says.

mod documents;
mod heads;

use super::*;
use crate::digest::Digest;
use proptest::prelude::*;

const HEX: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn target(url: &str) -> Target {
    let url = url.replace("{hex}", HEX).replace("{60}", HEX.strip_prefix("ba78").unwrap());
    Target::from_uri(&url.parse().unwrap()).unwrap()
}

fn kind(url: &str) -> Kind {
    classify(&target(url))
}

#[test]
fn k02_k13_k15_urls_that_contain_their_digest() {
    for (url, name) in [
        ("http://deb/debian/dists/sid/main/binary-amd64/by-hash/SHA256/{hex}", "apt"),
        ("http://deb/by-hash/SHA256/{hex}", "apt"),
        ("https://r/v2/library/debian/blobs/sha256:{hex}", "oci"),
        ("https://r/v2/a/blobs/sha256:{hex}?ns=docker.io", "oci"),
        ("https://r/v2/a/b/c/manifests/sha256:{hex}", "oci"),
        ("https://r/v2/a/blobs/sha256%3A{hex}", "oci"),
        ("https://r/v2/a/blobs/sha256%3a{hex}", "oci"),
        ("https://r/proxy/v2/a/blobs/sha256:{hex}", "oci"),
    ] {
        let want = Kind::of_digest(name, Digest::from_hex(HEX).unwrap().into());
        assert_eq!(kind(url), want, "{url}");
    }
    let digest = Digest::from_hex(HEX).unwrap();
    assert_eq!(
        kind(&format!("http://d/by-hash/SHA256/{}", HEX.to_uppercase())).digest.unwrap(),
        digest.into()
    );
}

#[test]
fn k02_an_index_by_its_sha_512_is_bound_like_one_by_its_sha_256() {
    let named = kind("http://deb/dists/sid/by-hash/SHA512/{hex}{hex}");
    let digest: Stated = format!("sha512:{HEX}{HEX}").parse().unwrap();
    assert_eq!(named, Kind::of_digest("apt", digest));
    assert!(digest.is_strong() && named.lasts == Lasts::Content);
}

#[test]
fn urls_made_from_content_that_is_no_sha_256() {
    for url in [
        "https://files.pythonhosted.org/packages/ba/78/{60}/x-1-py3-none-any.whl",
        "http://files.pythonhosted.org/packages/ba/78/{60}/x-1.tar.gz",
        "https://test-files.pythonhosted.org/packages/ba/78/{60}/x-1.zip#sha256=0",
    ] {
        let kind = kind(url);
        assert!(kind.lasts == Lasts::Content && kind.digest.is_none(), "{url}");
    }
}

#[test]
fn urls_that_name_a_version() {
    for (url, name) in [
        ("http://deb/debian/pool/main/b/bash/bash_5.2-1_amd64.deb", "apt"),
        ("http://deb/flat/./x_1%253a2_all.udeb", "apt"),
        ("http://h/wheels/x-1.0-py3-none-any.whl", "pypi"),
        ("https://mirror/packages/ba/78/{60}/x-1-1-py3-none-any.whl", "pypi"),
        ("https://files.pythonhosted.org/packages/ba/78/{60}/x-1-py3-none-any.whl.metadata", "pypi"),
        ("https://npm.example/@s/n/-/n-1.0.0.tgz", "npm"),
        ("https://registry.npmjs.org/n/-/n-1.0.0.tgz", "npm"),
        ("https://static.crates.io/crates/serde/serde-1.0.0.crate", "cargo"),
        ("https://crates.io/api/v1/crates/serde/1.0.0/download", "cargo"),
        ("https://registry/dl/serde/1.0.0-rc.1+x/download", "cargo"),
        ("https://proxy.golang.org/github.com/!burnt!sushi/toml/@v/v1.0.0.zip", "go"),
        ("https://proxy/x/y/@v/v0.0.0-20200101000000-abcdefabcdef.mod", "go"),
        ("https://proxy/x/y/@v/v1.2.3.info", "go"),
        ("https://cache.nixos.org/nar/1b8m03r63zqhnjf7l5wnldhh7c134ap5vpj0850ymkq1iyzicy5s.nar.xz", "nix"),
        ("https://repo1.maven.org/maven2/org/slf4j/slf4j-api/2.0.9/slf4j-api-2.0.9.jar", "maven"),
        ("https://m/org/slf4j/slf4j-api/2.0.9/slf4j-api-2.0.9-sources.jar", "maven"),
        (
            "https://huggingface.co/a/b/resolve/da39a3ee5e6b4b0d3255bfef95601890afd80709/model.bin",
            "huggingface",
        ),
        ("https://cdn-lfs-us-1.hf.co/repos/x/y?X-Amz-Signature=1", "huggingface"),
    ] {
        assert_eq!(kind(url), Kind::new(name, Lasts::Version), "{url}");
        assert!(kind(url).lasts.outlives_questions());
    }
}

#[test]
fn k01_index_files_of_an_archive_are_a_set() {
    for url in [
        "http://deb/debian/dists/sid/InRelease",
        "http://deb/debian/dists/sid/Release",
        "http://deb/debian/dists/sid/main/binary-amd64/Packages.gz",
        "http://deb/debian/dists/sid/main/i18n/Translation-en.xz",
        "http://deb/flat/./Packages",
        "http://deb/flat/InRelease",
        "http://deb/flat/Sources.zst",
    ] {
        assert_eq!(kind(url), Kind::new("apt", Lasts::Set), "{url}");
    }
}

#[test]
fn k14_tokens_are_for_one_client() {
    for url in [
        "https://auth.docker.io/token?service=registry.docker.io&scope=repository:library/debian:pull",
        "https://quay.io/v2/auth?scope=x",
        "https://gitlab/jwt/auth?service=container_registry",
    ] {
        assert_eq!(kind(url), Kind::new("oci", Lasts::Moment), "{url}");
    }
}

#[test]
fn k01_k03_everything_else_can_change() {
    for (url, name) in [
        ("http://deb/by-hash/SHA256/{hex}0", "generic"),
        ("http://deb/by-hash/SHA256/zz", "generic"),
        ("http://deb/by-hash/SHA1/da39a3ee5e6b4b0d3255bfef95601890afd80709", "apt"),
        ("http://deb/by-hash/MD5Sum/d41d8cd98f00b204e9800998ecf8427e", "apt"),
        ("http://deb/by-hash/SHA512/{hex}", "generic"),
        ("http://deb/google-chrome-stable_current.deb", "apt"),
        ("http://deb/by-hash/SHA256/{hex}/x", "generic"),
        ("http://deb/x?/by-hash/SHA256/{hex}", "generic"),
        ("http://deb/Packages.html", "generic"),
        ("https://r/v2/", "oci"),
        ("https://r/v2/a/manifests/latest", "oci"),
        ("https://r/v2/a/manifests/sha256:abc", "oci"),
        ("https://r/v2/a/manifests/sha512:{hex}{hex}", "oci"),
        ("https://r/v2/a/tags/list", "oci"),
        ("https://r/v2/a/blobs/uploads/1-2-3", "oci"),
        ("https://r/v2/blobs/sha256:{hex}", "generic"),
        ("https://r/a/blobs/sha256:{hex}", "generic"),
        ("https://r/v1/a/blobs/sha256:{hex}", "generic"),
        ("https://r/token", "generic"),
        ("https://r/token?x=scope", "generic"),
        ("https://pypi.org/simple/pip/", "pypi"),
        ("https://pypi.org/pypi/pip/json", "pypi"),
        ("https://files.pythonhosted.org/packages/ba/78/{60}/x.whl.metadata", "pypi"),
        ("https://files.pythonhosted.org/packages/ba/78/{60}/x.whl.provenance", "pypi"),
        ("https://files.pythonhosted.org/packages/ba/78/{hex}/x.whl", "generic"),
        ("https://files.pythonhosted.org/packages/source/p/pip/pip-1.tar.gz", "generic"),
        ("https://index.crates.io/se/rd/serde", "cargo"),
        ("https://index.crates.io/config.json", "cargo"),
        ("https://registry.npmjs.org/@scope%2fname", "npm"),
        ("https://git/x.git/info/refs?service=git-upload-pack", "git"),
        ("https://git/x.git/git-upload-pack", "git"),
        ("https://proxy/x/y/@v/list", "go"),
        ("https://proxy/x/y/@latest", "go"),
        ("https://cache/1b8m03r63zqhnjf7l5wnldhh7c134ap5.narinfo", "nix"),
        ("https://cache/nar/latest.nar", "nix"),
        ("https://m/a/b/1.0-SNAPSHOT/b-1.0-SNAPSHOT.jar", "maven"),
        ("https://m/a/b/maven-metadata.xml", "generic"),
        ("https://m/a/b/latest/b-latest.jar", "generic"),
        ("https://huggingface.co/a/b/resolve/main/model.bin", "huggingface"),
        ("http://h/file.tar.gz", "generic"),
        ("http://h/a/latest/download", "generic"),
        ("http://h/", "generic"),
    ] {
        assert_eq!(kind(url), Kind::mutable(name), "{url}");
        assert!(!kind(url).lasts.outlives_questions());
    }
}

proptest! {
    #[test]
    fn no_path_panics(path in "/[a-z0-9/:%?-]{0,60}|(/(v2|blobs|by-hash|SHA256|packages|-|sha256:|@v|nar|resolve|1|a))*") {
        if let Ok(target) = Target::new(crate::http::Scheme::Http, "h", &path) {
            let _unused = (classify(&target), spelling(&target), Document::Crate.companion(&target));
        }
    }
}
