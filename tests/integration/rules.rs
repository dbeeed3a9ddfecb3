//! `[[rule]]`: each of its keys, from the file to the origin's counters, and what `larder info` says of it.

use crate::support::{Larder, MIB, Origin, Script, Site};

/// A rule from its lines of TOML.
fn rules(text: &str) -> toml::Value {
    let table: toml::Table = text.parse().unwrap();
    table["rule"].clone()
}

fn node(text: &str) -> Larder {
    Larder::new("a").set("rule", rules(text)).start()
}

#[test]
fn never_keeps_nothing_and_the_first_match_wins() {
    let origin = Origin::start();
    let a = node(
        "[[rule]]\nmatch = \"http://*/keep/*\"\n[[rule]]\nmatch = \"http://*\"\ncache = \"never\"\n\
         [[rule]]\nmatch = \"http://*/no/*\"\ncache = \"force\"",
    );
    let script = Script::new(50_000).cache_control("public, max-age=3600");
    for (path, kept) in [("/no/f.bin", false), ("/keep/f.bin", true)] {
        let url = origin.serve(path, script.clone());
        a.get(&url).assert_whole(&script);
        if kept {
            a.wait_for_blob(&script.digest());
        }
        assert_eq!(a.get(&url).assert_whole(&script).is_hit(), kept, "{path}");
        assert_eq!(origin.gets(path).len(), if kept { 1 } else { 2 }, "{path}");
    }
}

#[test]
fn force_outdoes_the_origin_but_never_what_is_one_users() {
    let origin = Origin::start();
    let a = node("[[rule]]\nmatch = \"http://*\"\ncache = \"force\"\nttl = \"1h\"");
    for (path, control) in [("/a", "no-cache"), ("/b", "no-store"), ("/c", "max-age=0, must-revalidate")] {
        let script = Script::new(30_000).seed(u64::from(path.as_bytes()[1])).cache_control(control);
        let url = origin.serve(path, script.clone());
        a.get(&url).assert_whole(&script);
        a.wait_for_blob(&script.digest());
        assert!(a.get(&url).assert_whole(&script).is_hit(), "{control}");
        assert_eq!(origin.gets(path).len(), 1, "{control}");
    }
    let blobs = a.blobs().len();
    for (path, script) in [
        ("/cookie", Script::new(30_000).seed(1).cookie()),
        ("/private", Script::new(30_000).seed(2).cache_control("private")),
        ("/mine", Script::new(30_000).seed(3).authorization("Bearer x")),
    ] {
        let url = origin.serve(path, script.clone());
        for _ in 0..2 {
            a.ask(&url).field("Authorization", "Bearer x").send().assert_whole(&script);
        }
        assert_eq!(origin.gets(path).len(), 2, "{path}");
    }
    assert_eq!(a.blobs().len(), blobs);
}

#[test]
fn ttl_counts_where_the_origin_says_nothing() {
    let origin = Origin::start();
    let a = node("[[rule]]\nmatch = \"http://*/ruled/*\"\nttl = \"1h\"\nnegative_ttl = \"1h\"");
    let silent = Script { cache_control: None, last_modified: None, ..Script::new(30_000) };
    for (path, hit) in [("/ruled/f", true), ("/plain/f", false)] {
        let url = origin.serve(path, silent.clone());
        a.get(&url).assert_whole(&silent);
        a.wait_for_blob(&silent.digest());
        assert_eq!(a.get(&url).assert_whole(&silent).is_hit(), hit, "{path}");
    }
    // the origin's own word is stronger than a ttl that does not force
    let said = Script::new(30_000).seed(2).cache_control("max-age=0");
    let url = origin.serve("/ruled/said", said.clone());
    for _ in 0..2 {
        assert!(!a.get(&url).assert_whole(&said).is_hit());
    }
    let missing = Script { cache_control: None, last_modified: None, ..Script::new(10) }.status(404);
    for (path, asked) in [("/ruled/none", 1), ("/plain/none", 2)] {
        let url = origin.serve(path, missing.clone());
        assert_eq!(a.get(&url).status, 404);
        if asked == 1 {
            a.wait_for_blob(&missing.digest());
        }
        assert_eq!(a.get(&url).status, 404);
        assert_eq!(origin.gets(path).len(), asked, "{path}");
    }
}

#[test]
fn signed_links_of_one_object_are_one_resource() {
    let (site, origin) = (Site::new(), Origin::start());
    let rule = "[[rule]]\nmatch = \"http://*\"\nignore_query = [\"X-Amz-*\", \"sig\"]";
    let make = |name: &str| Larder::new(name).peers(&site).set("rule", rules(rule)).start();
    let (a, b) = (make("a"), make("b"));
    a.meets(&b);
    let script = Script::new(2 * MIB).rate(4 * MIB);
    let url = origin.serve("/bucket/object", script.clone());
    let link =
        |number: u32| format!("{url}?version=3&X-Amz-Signature={number}&sig=s{number}&X-Amz-Date=d{number}");
    a.get(&link(1)).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    for number in 2..5 {
        let answer = a.get(&link(number));
        assert!(answer.assert_whole(&script).is_hit(), "{}", answer.cache_status());
    }
    assert_eq!(origin.gets("/bucket/object").len(), 1);
    assert!(
        !a.get(&link(1).replace("version=3", "version=4")).is_hit(),
        "another parameter is another object"
    );
    let from_neighbour = b.get(&link(9));
    from_neighbour.assert_whole(&script);
    println!("another link at the second node: {}", from_neighbour.cache_status());
    let last = origin.gets("/bucket/object").pop().unwrap();
    assert!(last.target.contains("X-Amz-Signature=9"), "the origin sees the link as it is: {}", last.target);
    let told = a.cli(&["info", &link(77)]).assert_code(0).stdout;
    assert!(!told.contains("s77") && told.contains("X-Amz-"), "{told}");
}

#[test]
fn what_is_not_shared_is_given_by_no_name() {
    let (site, origin) = (Site::new(), Origin::start());
    let rule = rules("[[rule]]\nmatch = \"http://*\"\nshare = false");
    let a = Larder::new("a").peers(&site).set("rule", rule).start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    for answer in [b.ask(&url).field("Larder-Digest", &script.digest()).send(), b.get(&url)] {
        answer.assert_whole(&script);
        assert!(!answer.is_from_peer(), "{}", answer.cache_status());
    }
    assert_eq!(a.count("/traffic/bytes_to_peers"), 0);
}

#[test]
fn info_says_which_rule_holds_and_why_something_was_kept_or_not() {
    let origin = Origin::start();
    let a = node(
        "[[rule]]\nmatch = \"http://*/never/*\"\ncache = \"never\"\n[[rule]]\nmatch = \"http://*/signed/*\"\n\
         ignore_query = [\"sig\"]",
    );
    for (path, script, rule, kept, why) in [
        ("/never/f", Script::new(20_000), Some(1), false, "a rule says never"),
        ("/cookie", Script::new(20_000).seed(2).cookie(), None, false, "the response sets a cookie"),
        ("/private", Script::new(20_000).seed(3).cache_control("private"), None, false, "private"),
        ("/no-store", Script::new(20_000).seed(4).cache_control("no-store"), None, false, "no-store"),
        ("/vary", Script::new(20_000).seed(5).field("Vary", "*"), None, false, "varies on everything"),
        ("/signed/f", Script::new(20_000).seed(6), Some(2), true, "stored, from origin"),
    ] {
        let url = origin.serve(path, script.clone()) + "?sig=secret";
        a.get(&url).assert_whole(&script);
        if kept {
            a.wait_for_blob(&script.digest());
        }
        let json = a.cli(&["info", &url, "--json"]).assert_code(0).stdout;
        let told: serde_json::Value = serde_json::from_str(&json).unwrap();
        println!("{path}: rule {:?}: {}", told["rule_number"], told["last_why"]);
        assert_eq!(told["rule_number"].as_u64(), rule, "{told}");
        assert_eq!(told["last_kept"].as_bool(), Some(kept), "{told}");
        assert!(told["last_why"].as_str().unwrap().contains(why), "{told}");
        assert_eq!(told["digest"].is_string(), kept, "{told}");
        assert!(!json.contains("secret"), "{json}");
        let text = a.cli(&["info", &url]).assert_code(0).stdout;
        assert!(text.contains(why) && text.contains("last_why"), "{text}");
    }
    let script = Script::new(20_000).seed(8).stale_at_once();
    let url = origin.serve("/stale", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    a.get(&url).assert_whole(&script);
    let text = a.cli(&["info", &url]).assert_code(0).stdout;
    assert!(text.contains("confirmed by the origin (304), and kept"), "{text}");
    let script = Script::new(20_000).seed(9);
    let (url, tag) = (origin.serve("/theirs", script.clone()), script.etag_value().unwrap());
    assert_eq!(a.ask(&url).field("If-None-Match", &tag).send().status, 304);
    let text = a.cli(&["info", &url]).assert_code(0).stdout;
    assert!(text.contains("the client had it already"), "{text}");
    a.cli(&["info", &origin.url("/unheard-of")]).assert_code(3);
    let refused = a.admin_ask("GET", "/api/v1/explanation?url=nonsense").send();
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(a.admin_ask_without_token("GET", "/api/v1/explanation?url=http://h/").send().status, 401);
}
