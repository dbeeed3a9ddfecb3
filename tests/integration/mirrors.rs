//! Named mirrors: links that lead back, tags of our own, what stays private, what is refused.

use crate::support::{Answer, Ask, Ending, Larder, MIB, Origin, Script, Site, sha256, wait_until};

/// A node with one mirror of an origin.
fn mirror(preset: &str) -> (Origin, Larder) {
    let origin = Origin::start();
    let a = Larder::new("a").mirror(preset, preset, &origin.url("")).start();
    (origin, a)
}

/// The path of ours in a link that a document holds.
fn led<'a>(a: &Larder, link: &'a str) -> &'a str {
    let root = format!("http://{}", a.proxy());
    link.strip_prefix(&root).unwrap_or_else(|| panic!("{link} does not lead to {root}"))
}

fn json(answer: &Answer) -> serde_json::Value {
    assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

/// What is said of the upstream's bytes is not said of ours.
fn assert_own_representation(answer: &Answer, script: &Script) {
    for name in ["Repr-Digest", "Digest", "Content-MD5", "Accept-Ranges", "Content-Encoding"] {
        assert_eq!(answer.field(name), None, "{name}");
    }
    let tag = answer.field("ETag").unwrap();
    assert!(tag.starts_with("W/") && Some(tag) != script.etag_value().as_deref(), "{tag}");
    assert_eq!(answer.field("Content-Length"), Some(answer.body.len().to_string().as_str()));
}

#[test]
fn k07_a_python_page_leads_back_and_its_files_come_through_us() {
    let (origin, a) = mirror("pypi");
    let files = Origin::start();
    let wheel = Script::new(MIB);
    let hex = wheel.digest().replace("sha256:", "");
    files.serve("/packages/x-1-py3-none-any.whl", wheel.clone());
    files.serve("/packages/x-1-py3-none-any.whl.metadata", Script::new(900).seed(4));
    let link = format!("{}#sha256={hex}", files.url("/packages/x-1-py3-none-any.whl"));
    let page = format!(
        "<html><a href=\"{link}\" data-core-metadata=\"sha256=ab\">x</a><a href=\"/up\">y</a></html>"
    );
    let script =
        Script::of("text/html", page).negotiates().field("Digest", "md5=x").cache_control("max-age=600");
    origin.serve("/simple/x/", script.clone());
    let cold = a.door("/m/pypi/simple/x/").send();
    let text = cold.text();
    let root = format!("http://{}", a.proxy());
    let want = format!(
        "<html><a href=\"{root}/m/@/http/{}/packages/x-1-py3-none-any.whl#sha256={hex}\" \
         data-core-metadata=\"sha256=ab\">x</a><a href=\"/m/pypi/up\">y</a></html>",
        files.address()
    );
    assert_eq!(text, want);
    assert_own_representation(&cold, &script);
    assert_eq!(cold.field("Content-Security-Policy"), Some("sandbox"));
    assert_eq!(origin.gets("/simple/x/")[0].field("Accept-Encoding"), Some("gzip"), "a thin link is spared");
    let path = format!("/m/@/http/{}/packages/x-1-py3-none-any.whl", files.address());
    a.door(&path).send().assert_whole(&wheel);
    a.wait_for_blob(&wheel.digest());
    assert!(a.door(&path).send().assert_whole(&wheel).is_hit());
    assert_eq!(a.door(&format!("{path}.metadata")).send().body, Script::new(900).seed(4).body());
    let again = a.door("/m/pypi/simple/x/").send();
    assert!(again.is_hit() && again.text() == want, "{}", again.cache_status());
    assert_eq!(again.field("ETag"), cold.field("ETag"));
    assert_eq!(origin.gets("/simple/x/").len(), 1);
}

#[test]
fn a_python_index_in_json_leads_back() {
    let (origin, a) = mirror("pypi");
    let url = origin.url("/files/x.whl");
    let text = serde_json::json!({"meta": {"api-version": "1.0"}, "name": "x",
        "files": [{"filename": "x.whl", "url": url, "hashes": {"sha256": "ab"}, "core-metadata": true}]});
    let kind = "application/vnd.pypi.simple.v1+json";
    origin.serve("/simple/x/", Script::of(kind, text.to_string()));
    let index = json(&a.door("/m/pypi/simple/x/").field("Accept", kind).send());
    assert_eq!(led(&a, index["files"][0]["url"].as_str().unwrap()), "/m/pypi/files/x.whl");
    assert_eq!(index["files"][0]["hashes"], text["files"][0]["hashes"]);
}

#[test]
fn k10_a_packument_names_tarballs_here_and_scopes_stay_as_written() {
    let (origin, a) = mirror("npm");
    let tarball = Script::new(300_000);
    let url = origin.serve("/@s/n/-/n-1.0.0.tgz", tarball.clone());
    let text = serde_json::json!({"name": "@s/n", "versions": {"1.0.0": {"dist":
        {"tarball": url, "integrity": "sha512-x==", "shasum": "ab"}}}});
    origin.serve("/@s%2fn", Script::of("application/json", text.to_string()).negotiates());
    let packument = json(&a.door("/m/npm/@s%2fn").field("Accept-Encoding", "br").send());
    let dist = &packument["versions"]["1.0.0"]["dist"];
    assert_eq!(led(&a, dist["tarball"].as_str().unwrap()), "/m/npm/@s/n/-/n-1.0.0.tgz");
    assert_eq!(dist["integrity"], "sha512-x==");
    a.door("/m/npm/@s/n/-/n-1.0.0.tgz").send().assert_whole(&tarball);
    assert_eq!(origin.gets("/@s%2fn").len(), 1, "the scope's escape is kept");
}

#[test]
fn k12_a_registry_of_crates_names_its_downloads_here() {
    let (origin, a) = mirror("crates");
    let dl = Origin::start();
    let text = format!("{{\"dl\":\"{}\",\"api\":\"{}\"}}", dl.url("/crates"), origin.url(""));
    origin.serve("/config.json", Script::of("application/octet-stream", text));
    let config = json(&a.door("/m/crates/config.json").send());
    assert_eq!(led(&a, config["dl"].as_str().unwrap()), format!("/http/{}/crates", dl.address()));
    assert_eq!(led(&a, config["api"].as_str().unwrap()), "/m/crates");
    let line = Script::of("text/plain", "{\"name\":\"x\"}\n").stale_at_once();
    origin.serve("/x/x", line.clone());
    let first = a.door("/m/crates/x/x").send();
    first.assert_whole(&line);
    let tag = first.field("ETag").unwrap();
    assert_eq!(Some(tag), line.etag_value().as_deref(), "what is not rewritten keeps its tag");
    assert_eq!(a.door("/m/crates/x/x").field("If-None-Match", tag).send().status, 304);
}

#[test]
fn a_condition_on_a_rewritten_document_is_cheap() {
    let (origin, a) = mirror("npm");
    let url = origin.url("/n/-/n-1.0.0.tgz");
    let version = |number: u32| {
        let text = serde_json::json!({"n": number, "dist": {"tarball": url}});
        Script::of("application/json", text.to_string())
    };
    for (path, script) in [
        ("/fresh", version(1)),
        ("/stale", version(1).stale_at_once()),
        ("/never", version(1).cache_control("no-store")),
    ] {
        origin.serve(path, script.clone());
        let ours = format!("/m/npm{path}");
        let tag = a.door(&ours).send().field("ETag").unwrap().to_owned();
        let before = origin.bytes_sent(path);
        let same = a.door(&ours).field("If-None-Match", &format!("\"x\", {tag}")).send();
        assert_eq!((same.status, same.field("ETag")), (304, Some(tag.as_str())), "{path}");
        assert!(same.body.is_empty() && same.field("Repr-Digest").is_none());
        assert_eq!(origin.bytes_sent(path), before, "{path}: a 304 costs no document");
        // the upstream's own tag, and that of another name of ours, are of other representations
        let theirs = script.etag_value().unwrap();
        let other =
            Ask::new(a.proxy(), "GET", &ours).field("Host", "localhost").field("If-None-Match", &tag).send();
        assert_eq!(other.status, 200, "{path}");
        assert!(other.text().contains("http://localhost/m/npm/"), "{path}: {}", other.text());
        let whole = a
            .door(&ours)
            .field("If-None-Match", &theirs)
            .field("If-Modified-Since", "Mon, 30 Nov 2099 00:00:00 GMT");
        assert_eq!(whole.send().status, 200, "{path}");
        let ranged = a.door(&ours).range("0-3").send();
        assert_eq!(ranged.status, 200, "{path}: no parts of a rewritten document");
        let head = a.door(&ours).method("HEAD").send();
        assert_eq!((head.status, head.field("ETag")), (200, Some(tag.as_str())), "{path}");
        assert!(head.field("Content-Length").is_none() && head.body.is_empty());
    }
    origin.serve("/stale", version(2).stale_at_once());
    let tag = a.door("/m/npm/never").send().field("ETag").unwrap().to_owned();
    let new = a.door("/m/npm/stale").field("If-None-Match", &tag).send();
    assert_eq!((new.status, json(&new)["n"].as_u64()), (200, Some(2)));
}

#[test]
fn a_large_document_streams_and_a_broken_one_never_looks_whole() {
    let (origin, a) = mirror("npm");
    let tarball = origin.url("/n/-/n-1.0.0.tgz");
    let versions: Vec<_> =
        (0..60_000).map(|n| serde_json::json!({"dist": {"tarball": tarball, "n": n}})).collect();
    let text = serde_json::json!({"versions": versions}).to_string();
    assert!(text.len() as u64 > 4 * MIB);
    origin.serve("/large", Script::of("application/json", &text));
    let large = a.door("/m/npm/large").send();
    assert_eq!(large.field("Transfer-Encoding"), Some("chunked"));
    let want = text.replace(&origin.url(""), &format!("http://{}/m/npm", a.proxy()));
    assert!(json(&large) == serde_json::from_str::<serde_json::Value>(&want).unwrap());
    let old = a.door("/m/npm/large").http10().send();
    assert!(old.field("Transfer-Encoding").is_none() && old.body == want.as_bytes());
    origin.serve("/cut", Script::of("application/json", &text).cut_always(3 * MIB).no_etag());
    let cut = a.door("/m/npm/cut").send();
    assert_eq!(cut.ending, Ending::Truncated, "{} of {} bytes", cut.body.len(), want.len());
    origin.serve("/wrong", Script::of("application/json", "no gzip").field("Content-Encoding", "gzip"));
    let wrong = a.door("/m/npm/wrong").send();
    assert_eq!(
        (wrong.status, wrong.ending),
        (502, Ending::Complete),
        "nothing went out yet: {}",
        wrong.text()
    );
    origin.serve("/other", Script::of("application/json", &text[..100]).field("Content-Encoding", "br"));
    assert_eq!(a.door("/m/npm/other").send().body, &text.as_bytes()[..100], "what cannot be unpacked stays");
}

#[test]
fn redirects_lead_back_and_credentials_stay_with_their_server() {
    let origin = Origin::start();
    let a = Larder::new("a").mirror("own", "generic", &origin.url("/base")).start();
    let cdn = Origin::start();
    let host = cdn.address();
    cdn.serve("/blob", Script::echo());
    origin.serve("/base/there", Script::redirect(&format!("{}?sig=a%2Fb", cdn.url("/blob"))).cookie());
    origin.serve("/base/near", Script::redirect("/base/there"));
    origin.serve("/base/beside", Script::redirect("/outside"));
    origin.serve("/outside", Script::echo());
    let ask = |path: &str| a.door(path).field("Authorization", "Bearer secret").field("Cookie", "c=secret");
    let there = ask("/m/own/there").send();
    assert_eq!(there.status, 302);
    assert_eq!(
        there.field("Set-Cookie"),
        Some("sid=1; Path=/http/".to_owned() + &origin.address().to_string() + "/").as_deref()
    );
    let location = led(&a, there.field("Location").unwrap()).to_owned();
    assert_eq!(location, format!("/m/@/http/{host}/blob?sig=a%2Fb"));
    assert!(!ask(&location).send().text().contains("secret"), "another server sees no credentials");
    assert_eq!(origin.requests("/base/there")[0].field("Authorization"), Some("Bearer secret"));
    // relative stays relative: some programs tell a redirect on one server from one to another by it
    assert_eq!(ask("/m/own/near").send().field("Location"), Some("/m/own/there"));
    let beside = ask("/m/own/beside").send();
    let beside = beside.field("Location").unwrap();
    assert_eq!(beside, format!("/http/{}/outside", origin.address()));
    assert!(ask(beside).send().text().contains("Bearer secret"), "the same server is still the same");
}

#[test]
fn k13_k14_a_registry_behind_v2() {
    let site = Site::new();
    let (origin, cdn) = (Origin::start(), Origin::start());
    let start = |name| Larder::new(name).peers(&site).mirror("oci", "oci", &origin.url("")).start();
    let (a, b) = (start("a"), start("b"));
    a.meets(&b);
    let realm = "Bearer realm=\"https://auth.example/token\",service=\"r\",scope=\"repository:x:pull\"";
    origin.serve("/v2/", Script::of("application/json", "{}").status(401).field("WWW-Authenticate", realm));
    for _ in 0..2 {
        let refused = a.door("/v2/").send();
        assert_eq!((refused.status, refused.field("WWW-Authenticate")), (401, Some(realm)));
    }
    assert_eq!(origin.gets("/v2/").len(), 2, "a 401 is nobody else's");
    // a blob that the registry gives itself
    let blob = Script::new(2 * MIB);
    let path = format!("/v2/x/blobs/{}", blob.digest());
    origin.serve(&path, blob.clone());
    a.door(&format!("{path}?ns=docker.io")).send();
    assert!(origin.gets(&path).is_empty(), "another registry is meant");
    let ns = format!("{path}?ns={}", origin.address());
    a.door(&path).send().assert_whole(&blob);
    a.wait_for_blob(&blob.digest());
    assert!(a.door(&ns).send().assert_whole(&blob).is_hit(), "with and without ns= it is one thing");
    assert!(b.door(&path).send().assert_whole(&blob).is_from_peer());
    assert_eq!(origin.gets(&path).len(), 1);
    // one that lies elsewhere, under a new signature each time, for clients with tokens
    let layer = Script::new(3 * MIB).seed(9);
    let path = format!("/v2/x/blobs/{}", layer.digest());
    cdn.serve("/layer", layer.clone().signed());
    origin.serve(&path, Script::redirect_signed(&cdn.url("/layer")).authorization("Bearer good"));
    for (node, from_cdn) in [(&a, 1), (&a, 1), (&b, 1)] {
        assert_eq!(node.door(&path).field("Authorization", "Bearer bad").send().status, 401);
        let moved = node.door(&path).field("Authorization", "Bearer good").send();
        if moved.status == 200 {
            // the registry let this client in, and the layer is here
            moved.assert_whole(&layer);
        } else {
            let location = led(node, moved.field("Location").unwrap()).to_owned();
            assert!(location.starts_with(&format!("/m/@{}/http/", layer.digest())), "{location}");
            node.door(&location).field("Authorization", "Bearer good").send().assert_whole(&layer);
        }
        node.wait_for_blob(&layer.digest());
        assert_eq!(cdn.gets("/layer").len(), from_cdn);
    }
    assert!(cdn.gets("/layer")[0].field("Authorization").is_none());
}

#[test]
fn k19_a_model_is_found_where_its_redirect_says() {
    let (origin, a) = mirror("huggingface");
    let cdn = Origin::start();
    let model = Script::new(MIB);
    let target = cdn.serve("/signed/model", model.clone());
    let hex = model.digest().replace("sha256:", "");
    let moved = Script::redirect(&target)
        .field("X-Linked-ETag", &format!("\"{hex}\""))
        .field("X-Linked-Size", &MIB.to_string())
        .field("X-Xet-Hash", "ab")
        .field("X-Repo-Commit", "abc");
    origin.serve("/org/model/resolve/main/model.bin", moved);
    let path = "/m/huggingface/org/model/resolve/main/model.bin";
    let (answer, head) = (a.door(path).send(), a.door(path).method("HEAD").send());
    assert_eq!((answer.status, head.status), (302, 200));
    for answer in [&answer, &head] {
        for (name, value) in [("X-Linked-ETag", format!("\"{hex}\"")), ("X-Repo-Commit", "abc".into())] {
            assert_eq!(answer.field(name), Some(value.as_str()));
        }
        assert_eq!(answer.field("X-Xet-Hash"), None, "what goes around us is not offered");
    }
    assert_eq!(head.field("Content-Length"), Some(MIB.to_string().as_str()));
    assert_eq!(head.field("Location"), None, "seen from here it is no other server");
    let location = led(&a, answer.field("Location").unwrap()).to_owned();
    a.door(&location).send().assert_whole(&model);
}

#[test]
fn what_no_mirror_is_for_says_what_there_is() {
    let origin = Origin::start();
    let a = Larder::new("a").mirror("own", "generic", &origin.url("/base")).start();
    let unknown = a.door("/m/nope/x").send();
    assert_eq!((unknown.status, unknown.field("Content-Type")), (404, Some("application/problem+json")));
    assert!(unknown.text().contains("apt, crates, huggingface, npm, oci, own, pypi"), "{}", unknown.text());
    assert_eq!(a.door("/m/own/../secret").send().status, 400);
    origin.serve("/base/page", Script::of("text/html", "<a href=\"/x\">"));
    let page = a.door("/m/own/page").send();
    assert_eq!(
        (page.text().as_str(), page.field("Content-Security-Policy")),
        ("<a href=\"/x\">", Some("sandbox"))
    );
    for (name, value) in [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site")] {
        assert_eq!(a.door("/m/own/page").field(name, value).send().status, 403);
    }
    for path in ["/m/own/page", "/m/@/http/h/", "/v2/", "/proxy.pac"] {
        let foreign = Ask::new(a.proxy(), "GET", path).field("Host", "evil.test").send();
        assert_eq!(foreign.status, 403, "{path}");
    }
    assert_eq!(origin.all_requests().len(), 1);
}

#[test]
fn mirrors_come_and_go_with_a_reload() {
    let origin = Origin::start();
    let script = Script::new(5000);
    origin.serve("/f", script.clone());
    let a = Larder::new("a").mirror("npm", "generic", &origin.url("")).start();
    a.door("/m/npm/f").send().assert_whole(&script);
    let text = std::fs::read_to_string(a.config_file()).unwrap();
    std::fs::write(a.config_file(), text.replace("preset = \"generic\"", "enabled = false")).unwrap();
    a.signal(rustix::process::Signal::HUP);
    wait_until("the mirror to go", || a.door("/m/npm/f").send().status == 404);
    assert!(a.door("/m/npm/f").send().text().contains("pypi"));
}

#[test]
fn a_proxy_script_has_a_way_out() {
    let (_origin, a) = mirror("pypi");
    let script = a.door("/proxy.pac").send();
    assert_eq!(script.field("Content-Type"), Some("application/x-ns-proxy-autoconfig"));
    let text = script.text();
    assert!(text.contains(&format!("\"PROXY {}; DIRECT\"", a.proxy())), "{text}");
    assert_eq!(sha256(&script.body), sha256(&a.door("/proxy.pac").send().body));
}

#[test]
fn a_program_may_have_us_as_its_proxy_and_a_door_as_its_address() {
    let origin = Origin::start();
    let a = Larder::new("a").mirror("own", "generic", &origin.url("")).start();
    let script = Script::new(5000);
    let url = origin.serve("/f", script.clone());
    let here = format!("http://{}", a.proxy());
    let inside = url.replace("http://", "/http/");
    // some programs write the colon of a path percent-encoded
    for path in [
        "/m/own/f".to_owned(),
        inside.clone(),
        inside.replace(':', "%3A"),
        inside.replace("/http", "/m/%40/http"),
    ] {
        a.get(&format!("{here}{path}")).assert_whole(&script);
        a.door(&path).send().assert_whole(&script);
    }
    assert_eq!(a.get(&format!("{here}/f")).status, 508);
    assert_eq!(a.get(&format!("{here}/http/{}/f", a.proxy())).status, 508);
}
