//! Documents in, documents out: a row a kind of link, and the same in pieces of any size.

use proptest::prelude::*;

use super::*;
use crate::http::Target;
use crate::mirror::{Config, Mirrors};

fn links(path: &str) -> Links {
    let entry = Mirrors::default().enter(path).unwrap().unwrap();
    entry.place.links("box:8098", &entry.target)
}

/// Rewritten in pieces of this size.
fn rewritten(document: Document, links: Links, text: &str, piece: usize) -> String {
    let (mut rewriter, mut out) = (Rewriter::new(document, links), Vec::new());
    text.as_bytes().chunks(piece).for_each(|piece| rewriter.push(piece, &mut out));
    rewriter.finish(&mut out);
    String::from_utf8(out).unwrap()
}

fn rows(document: Document, path: &str, rows: &[(&str, &str)]) {
    for (text, want) in rows {
        for piece in [1, 2, 7, 4096] {
            assert_eq!(&rewritten(document, links(path), text, piece), want, "in pieces of {piece}");
        }
    }
}

#[test]
fn pages() {
    let files = "http://box:8098/m/@/https/files.pythonhosted.org";
    rows(
        Document::Html,
        "/m/pypi/simple/pip/",
        &[
            (
                "<!DOCTYPE html><a href=\"https://files.pythonhosted.org/p/a.whl#sha256=ab\" data-core-metadata=\"sha256=cd\" data-requires-python=\"&gt;=3.8\">a &lt; b</a>",
                &format!(
                    "<!DOCTYPE html><a href=\"{files}/p/a.whl#sha256=ab\" data-core-metadata=\"sha256=cd\" data-requires-python=\"&gt;=3.8\">a &lt; b</a>"
                ),
            ),
            (
                "<A\n data-x='>' HREF = 'https://files.pythonhosted.org/p?a=1&amp;b=2'>x</A>",
                &format!("<A\n data-x='>' HREF = \"{files}/p?a=1&amp;b=2\">x</A>"),
            ),
            ("<a href=https://files.pythonhosted.org/p>x", &format!("<a href=\"{files}/p\">x")),
            ("<a class=x href=\"../../p/a.whl\">x</a>", "<a class=x href=\"../../p/a.whl\">x</a>"),
            ("<a href=/p/a.whl>x</a>", "<a href=\"/m/pypi/p/a.whl\">x</a>"),
            (
                "<!-- <a href=\"https://h/\"> --><b href=\"https://h/\">",
                "<!-- <a href=\"https://h/\"> --><b href=\"https://h/\">",
            ),
            ("1 < 2 <a href=\"/p\">", "1 < 2 <a href=\"/m/pypi/p\">"),
            (
                "<abbr href=\"https://h/\"><a name=x><a href><a href=>",
                "<abbr href=\"https://h/\"><a name=x><a href><a href=>",
            ),
            ("<a href=\"https://h", "<a href=\"https://h"),
            ("<a href='\"https://h/'>", "<a href='\"https://h/'>"),
            (
                "<base href=\"https://files.pythonhosted.org/d/\"><a href=\"a.whl\"><a href=\"/b.whl\">",
                &format!(
                    "<base href=\"{files}/d/\"><a href=\"a.whl\"><a href=\"/m/@/https/files.pythonhosted.org/b.whl\">"
                ),
            ),
        ],
    );
}

#[test]
fn pypi_json() {
    rows(
        Document::PypiJson,
        "/m/pypi/simple/pip/",
        &[
            (
                r#"{"meta":{"api-version":"1.1"},"files":[{"filename":"a.whl","url":"https://files.pythonhosted.org/a.whl","hashes":{"sha256":"ab"},"core-metadata":{"sha256":"cd"}}]}"#,
                r#"{"meta":{"api-version":"1.1"},"files":[{"filename":"a.whl","url":"http://box:8098/m/@/https/files.pythonhosted.org/a.whl","hashes":{"sha256":"ab"},"core-metadata":{"sha256":"cd"}}]}"#,
            ),
            (
                r#"{"info":{"url":"https://h/"},"url":"https://h/"}"#,
                r#"{"info":{"url":"https://h/"},"url":"https://h/"}"#,
            ),
            (
                r#"{ "releases" : {"1.0":[{"url" : "https:\/\/pypi.org\/a"}]} }"#,
                r#"{ "releases" : {"1.0":[{"url" : "http://box:8098/m/pypi/a"}]} }"#,
            ),
        ],
    );
}

#[test]
fn npm_json() {
    rows(
        Document::NpmJson,
        "/m/npm/@s%2fn",
        &[
            (
                r#"{"name":"@s/n","versions":{"1.0.0":{"dist":{"tarball":"https://registry.npmjs.org/@s/n/-/n-1.0.0.tgz","integrity":"sha512-x=="},"readme":"\"dist\":{\"tarball\":\"https://h/\"}"}}}"#,
                r#"{"name":"@s/n","versions":{"1.0.0":{"dist":{"tarball":"http://box:8098/m/npm/@s/n/-/n-1.0.0.tgz","integrity":"sha512-x=="},"readme":"\"dist\":{\"tarball\":\"https://h/\"}"}}}"#,
            ),
            (
                r#"{"dist":{"signatures":[{"sig":"tarball"}],"tarball":"https://elsewhere/n.tgz"},"tarball":"https://h/"}"#,
                r#"{"dist":{"signatures":[{"sig":"tarball"}],"tarball":"http://box:8098/m/@/https/elsewhere/n.tgz"},"tarball":"https://h/"}"#,
            ),
            (
                r#"{"dist":{"tarball":["https://h/"],"tarball":{"a":"https://h/"}}}"#,
                r#"{"dist":{"tarball":["https://h/"],"tarball":{"a":"https://h/"}}}"#,
            ),
            (r#"{"dist":{"tarball":"https://h/"#, r#"{"dist":{"tarball":"https://h/"#),
        ],
    );
}

#[test]
fn crates_json() {
    rows(
        Document::CratesJson,
        "/m/crates/config.json",
        &[
            (
                r#"{"dl":"https://static.crates.io/crates","api":"https://crates.io"}"#,
                r#"{"dl":"http://box:8098/https/static.crates.io/crates","api":"http://box:8098/https/crates.io"}"#,
            ),
            (
                r#"{"dl":"https://index.crates.io/dl/{crate}/{version}/x","api":null,"auth-required":true}"#,
                r#"{"dl":"http://box:8098/m/crates/dl/{crate}/{version}/x","api":null,"auth-required":true}"#,
            ),
        ],
    );
}

#[test]
fn what_is_too_long_or_too_deep_goes_through() {
    let long = "x".repeat(3 * LONGEST);
    let deep = format!("{}{{\"dist\":{{\"tarball\":\"https://h/\"}}}}{}", "[".repeat(200), "]".repeat(200));
    for text in [
        format!("{{\"dist\":{{\"tarball\":\"https://h/{long}\"}}}}"),
        format!("{{\"{long}\":1,\"a\":\"{long}\"}}"),
        deep,
    ] {
        assert_eq!(rewritten(Document::NpmJson, links("/m/npm/x"), &text, 1000), text);
    }
    let text = format!("<a href=\"https://h/{long}\">");
    assert_eq!(rewritten(Document::Html, links("/m/pypi/x/"), &text, 1000), text);
    // and what follows is looked into again
    let text = format!("{{\"{long}\":1,\"dist\":{{\"tarball\":\"https://h/\"}}}}");
    assert!(rewritten(Document::NpmJson, links("/m/npm/x"), &text, 1000).ends_with("/m/@/https/h/\"}}"));
}

proptest! {
    #[test]
    fn pieces_make_no_difference(text in "\\PC{0,200}|(<a |<|>|href=|\"|'|https://h/|\\{|\\}|\\[|\\]|\"dist\":|\"tarball\":|\"url\":|\"files\":|:|,|\\\\| )*", piece in 1usize..9) {
        for document in [Document::Html, Document::PypiJson, Document::NpmJson, Document::CratesJson] {
            let whole = rewritten(document, links("/m/pypi/simple/x/"), &text, usize::MAX);
            prop_assert_eq!(&rewritten(document, links("/m/pypi/simple/x/"), &text, piece), &whole);
            if !text.contains("h/") {
                prop_assert_eq!(&whole, &text, "without a link nothing changes");
            }
        }
    }

    #[test]
    fn json_stays_json(urls in prop::collection::vec("https?://[a-z]{1,5}/[ -~]{0,20}", 0..5)) {
        let files: Vec<_> = urls.iter().map(|url| serde_json::json!({"url": url, "x": [url]})).collect();
        let text = serde_json::json!({"files": files, "more": {"files": files}}).to_string();
        let out = rewritten(Document::PypiJson, links("/m/pypi/simple/x/"), &text, 3);
        let out: serde_json::Value = serde_json::from_str(&out).unwrap();
        prop_assert_eq!(&out["more"], &serde_json::from_str::<serde_json::Value>(&text).unwrap()["more"]);
        for file in out["files"].as_array().unwrap() {
            prop_assert!(file["url"].as_str().unwrap().starts_with("http://box:8098/"));
        }
    }
}

#[test]
fn a_mirror_of_ones_own_leads_to_itself() {
    let config = Config {
        name: "own".parse().unwrap(),
        preset: Some(crate::mirror::Preset::Pypi),
        url: Some("http://index:81/root".parse().unwrap()),
        registry: None,
        enabled: true,
    };
    let entry = Mirrors::new(vec![config]).unwrap().enter("/m/own/simple/x/").unwrap().unwrap();
    assert_eq!(entry.target, Target::new(crate::http::Scheme::Http, "index:81", "/root/simple/x/").unwrap());
    let links = entry.place.links("box:8098", &entry.target);
    let out = rewritten(Document::Html, links, "<a href=\"http://index:81/root/f/a.whl\">", 5);
    assert_eq!(out, "<a href=\"http://box:8098/m/own/f/a.whl\">");
}
