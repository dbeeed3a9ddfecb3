//! Credentials: what they were answered with is for those the origin lets in, each time anew.

use crate::support::{Answer, Larder, Origin, Script, Site};

const USERS: &str = "Bearer anna|Bearer ben|Bearer cleo";

/// A registry with one private blob, and its path.
fn registry() -> (Origin, Script, String) {
    let origin = Origin::start();
    let script = Script::new(300_000).authorization(USERS).cache_control("max-age=3600");
    let path = format!("/v2/team/app/blobs/{}", script.digest());
    origin.serve(&path, script.clone());
    (origin, script, path)
}

fn as_user(node: &Larder, origin: &Origin, path: &str, user: &str) -> Answer {
    let ask = node.ask(&origin.url(path));
    if user.is_empty() { ask.send() } else { ask.field("Authorization", user).send() }
}

#[test]
fn three_users_of_one_blob_and_the_one_whom_the_registry_refuses() {
    let (origin, script, path) = registry();
    let a = Larder::new("a").start();
    as_user(&a, &origin, &path, "Bearer anna").assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let sent = origin.bytes_sent(&path);
    let second = as_user(&a, &origin, &path, "Bearer ben");
    second.assert_whole(&script);
    assert!(second.is_hit(), "{}", second.cache_status());
    println!("ben: {} {}", second.status, second.cache_status());
    assert_eq!(origin.bytes_sent(&path), sent, "the registry was asked, and sent nothing");
    let asked = origin.requests(&path);
    let last = asked.last().unwrap();
    assert_eq!((last.method.as_str(), last.field("Authorization")), ("HEAD", Some("Bearer ben")));
    for user in ["Bearer mallory", ""] {
        let refused = as_user(&a, &origin, &path, user);
        println!("{user:?}: {} {}", refused.status, refused.cache_status());
        assert_eq!(refused.status, 401, "{user}");
        assert!(refused.field("WWW-Authenticate").is_some(), "the registry's own answer");
        assert!(refused.body.len() < 100);
    }
    // not by any other way into this node either
    let digest = script.digest();
    let own = Script::new(10);
    origin.serve(&format!("/v2/mine/blobs/{digest}"), own);
    for path in
        [format!("/@{digest}/http/{}{path}", origin.address()), format!("/http/{}{path}", origin.address())]
    {
        assert_eq!(a.door(&path).send().status, 401, "{path}");
    }
    let elsewhere = a.ask(&origin.url(&format!("/v2/mine/blobs/{digest}"))).send();
    assert!(!elsewhere.is_success(), "another URL that names the digest: {}", elsewhere.cache_status());
}

#[test]
fn a_range_of_a_guarded_blob_is_cut_from_what_is_held() {
    let (origin, script, path) = registry();
    let a = Larder::new("a").start();
    as_user(&a, &origin, &path, "Bearer anna").assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let sent = origin.bytes_sent(&path);
    let ask = |user: &str| a.ask(&origin.url(&path)).field("Authorization", user).range("1000-1999").send();
    ask("Bearer ben").assert_slice(&script, 1000, 2000);
    assert_eq!(origin.bytes_sent(&path), sent);
    assert_eq!(ask("Bearer mallory").status, 401);
}

#[test]
fn a_neighbour_gives_a_guarded_blob_by_its_digest_to_whom_the_registry_lets_in() {
    let (origin, script, path) = registry();
    let site = Site::new();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    as_user(&a, &origin, &path, "Bearer anna").assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let sent = origin.bytes_sent(&path);
    assert_eq!(as_user(&b, &origin, &path, "Bearer mallory").status, 401);
    assert_eq!(as_user(&b, &origin, &path, "").status, 401);
    assert!(b.blobs().is_empty());
    let answer = as_user(&b, &origin, &path, "Bearer ben");
    answer.assert_whole(&script);
    println!("ben at the second node: {}", answer.cache_status());
    if answer.is_from_peer() {
        assert_eq!(origin.bytes_sent(&path), sent);
    }
    b.wait_for_blob(&script.digest());
    // what came from a neighbour is as guarded as what came from the registry
    assert_eq!(as_user(&b, &origin, &path, "").status, 401);
    assert_eq!(as_user(&b, &origin, &path, "Bearer mallory").status, 401);
    let third = as_user(&b, &origin, &path, "Bearer cleo");
    third.assert_whole(&script);
    assert!(third.is_hit(), "{}", third.cache_status());
}

#[test]
fn an_origin_that_cannot_be_reached_lets_nobody_in() {
    let (mut origin, script, path) = registry();
    let a = Larder::new("a").start();
    as_user(&a, &origin, &path, "Bearer anna").assert_whole(&script);
    a.wait_for_blob(&script.digest());
    origin.stop();
    assert_eq!(as_user(&a, &origin, &path, "Bearer anna").status, 502);
    assert_eq!(as_user(&a, &origin, &path, "").status, 502);
}

#[test]
fn the_mark_outlives_a_restart_and_a_public_answer_takes_it_off() {
    let (origin, script, path) = registry();
    let mut a = Larder::new("a").start();
    as_user(&a, &origin, &path, "Bearer anna").assert_whole(&script);
    a.wait_for_blob(&script.digest());
    a.restart();
    assert_eq!(as_user(&a, &origin, &path, "").status, 401);
    // the same bytes, given to everybody
    let open = format!("/v2/public/blobs/{}", script.digest());
    origin.serve(&open, Script { authorization: None, ..script.clone() });
    as_user(&a, &origin, &open, "").assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let answer = as_user(&a, &origin, &open, "");
    answer.assert_whole(&script);
    assert!(answer.is_hit(), "{}", answer.cache_status());
}

#[test]
fn what_a_rule_keeps_at_home_is_not_kept_for_credentials_either() {
    let (origin, script, path) = registry();
    let site = Site::new();
    let mut rule = toml::Table::new();
    rule.insert("match".into(), "http://*/v2/*".into());
    rule.insert("share".into(), false.into());
    let rule = toml::Value::Array(vec![rule.into()]);
    let a = Larder::new("a").peers(&site).set("rule", rule).start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    as_user(&a, &origin, &path, "Bearer anna").assert_whole(&script);
    let answer = as_user(&b, &origin, &path, "Bearer ben");
    answer.assert_whole(&script);
    assert!(!answer.is_from_peer(), "{}", answer.cache_status());
}

#[test]
fn k14_tokens_and_refusals_of_a_registry_are_never_kept() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let token = Script::new(200).cache_control("public, max-age=300");
    let url = origin.serve("/token", token.clone()) + "?service=registry&scope=repository:team/app:pull";
    let private = origin.serve("/v2/", Script::new(20).authorization("Bearer anna"));
    for turn in 1..=3 {
        a.get(&url).assert_whole(&token);
        assert_eq!(a.get(&private).status, 401);
        assert_eq!((origin.gets("/token").len(), origin.gets("/v2/").len()), (turn, turn));
    }
    assert!(a.blobs().is_empty());
}

#[test]
fn a_private_blob_behind_a_signed_link_is_for_those_whom_the_registry_lets_in() {
    let (origin, storage, site) = (Origin::start(), Origin::start(), Site::new());
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let blob = Script::new(300_000);
    let path = format!("/v2/team/app/blobs/{}", blob.digest());
    storage.serve("/blob", blob.clone().signed());
    origin.serve(&path, Script::redirect_signed(&storage.url("/blob")).authorization(USERS));
    // as a program does: credentials for the registry alone, the link as it was given
    let pull = |node: &Larder, user: &str| {
        let moved = as_user(node, &origin, &path, user);
        match moved.field("Location") {
            Some(link) => node.ask(link).send(),
            None => moved,
        }
    };
    pull(&a, "Bearer anna").assert_whole(&blob);
    a.wait_for_blob(&blob.digest());
    let digest = blob.digest();
    let elsewhere = Origin::start();
    elsewhere.serve(&format!("/v2/mine/blobs/{digest}"), Script::new(10));
    let mine = elsewhere.url(&format!("/v2/mine/blobs/{digest}"));
    for node in [&a, &b] {
        for user in ["Bearer mallory", ""] {
            let refused = pull(node, user);
            println!("{user:?}: {} {}", refused.status, refused.cache_status());
            assert_eq!(refused.status, 401, "{user}");
        }
        // who knows the digest alone has nothing of it, by no door
        let stated = node.ask(&storage.url("/blob")).field("Larder-Digest", &digest).send();
        assert_eq!(stated.status, 403, "{}", stated.cache_status());
        let own = elsewhere.serve("/own", Script::new(10));
        assert!(
            !node.ask(&own).field("Larder-Digest", &digest).send().body.starts_with(&blob.body()[..1000])
        );
        assert_eq!(node.door(&format!("/@{digest}/http/{}{path}", origin.address())).send().status, 401);
        pull(node, "Bearer ben").assert_whole(&blob);
    }
    assert!(!a.ask(&mine).send().is_success(), "another registry's word is none");
    assert_eq!(b.count("/traffic/bytes_to_peers"), 0);
}
