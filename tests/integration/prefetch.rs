//! Fetching for later: a list, once for the site, behind those who wait.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Larder, MIB, Origin, Script, Site, wait_until};

fn list(node: &Larder, lines: &[String]) -> PathBuf {
    let file = node.home().join("list");
    std::fs::write(&file, format!("# for tomorrow\n\n{}\n", lines.join("\n"))).unwrap();
    file
}

/// What became of each thing.
fn prefetch(node: &Larder, lines: &[String], more: &[&str], code: i32) -> Vec<String> {
    let file = list(node, lines);
    let mut arguments = vec!["prefetch", file.to_str().unwrap(), "--json"];
    arguments.extend(more);
    let ran = node.cli(&arguments).assert_code(code);
    let view: Value = serde_json::from_str(&ran.stdout).unwrap();
    view["items"].as_array().unwrap().iter().map(|it| it["outcome"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_list_comes_once_to_the_site_and_is_there_in_the_morning() {
    let (site, origin) = (Site::new(), Origin::start());
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let scripts: Vec<_> = (1..=5).map(|seed| Script::new(MIB).seed(seed)).collect();
    let mut urls: Vec<_> =
        scripts.iter().map(|script| origin.serve(&format!("/{}.bin", script.seed), script.clone())).collect();
    let lines: Vec<_> = urls.iter().zip(&scripts).map(|(url, s)| format!("{}@{url}", s.digest())).collect();
    assert_eq!(prefetch(&a, &lines, &[], 0), ["origin"; 5]);
    let of_b = prefetch(&b, &lines, &[], 0);
    println!("the second node: {of_b:?}");
    assert!(of_b.iter().filter(|outcome| *outcome == "peer").count() >= 3, "{of_b:?}");
    assert_eq!(prefetch(&a, &lines, &[], 0), ["held"; 5]);
    // a redirect is followed, and leads to what is held
    urls.push(origin.serve("/to", Script::redirect(&urls[0])));
    assert_eq!(prefetch(&b, &urls[5..], &[], 0), ["held"]);
    for (url, script) in urls.iter().zip(&scripts) {
        a.get(url).assert_whole(script);
    }
    let said = a.cli(&["prefetch", list(&a, &lines).to_str().unwrap()]).assert_code(0).said();
    assert!(said.contains("5 were here already"), "{said}");
}

#[test]
fn what_cannot_be_had_is_told_line_by_line() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(1000);
    let good = origin.serve("/good?token=secret", script.clone());
    let never = origin.serve("/never", Script { cache_control: Some("no-store".into()), ..script.clone() });
    let wrong = origin.serve("/wrong", script.clone().seed(9));
    let lines =
        ["no url".to_owned(), good, never, origin.url("/missing"), format!("{}@{wrong}", script.digest())];
    assert_eq!(prefetch(&a, &lines, &[], 1), ["failed", "origin", "passed", "failed", "failed"]);
    let said = a.cli(&["prefetch", list(&a, &lines).to_str().unwrap()]).assert_code(1).said();
    assert!(said.contains("404") && said.contains("no [DIGEST@]URL") && !said.contains("secret"), "{said}");
    a.cli(&["prefetch", "/nowhere/list"]).assert_code(2);
    let refused = a.admin_ask("POST", "/api/v1/fetches").field("Content-Type", "application/json");
    assert_eq!(refused.body(br#"{"urls":[]}"#).send().status, 400);
}

#[test]
fn a_deadline_ends_it_and_the_rest_is_late() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(2 * MIB).hold_at(MIB);
    let held_up = origin.serve("/held.bin", script);
    assert_eq!(prefetch(&a, &[held_up], &["--deadline", "1s"], 1), ["late"]);
    origin.release("/held.bin");
}

#[test]
fn it_yields_to_those_who_wait_until_somebody_waits_for_it() {
    const RATE: u64 = 8 * MIB;
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let later = Script::new(24 * MIB).rate(RATE);
    let now = Script::new(16 * MIB).seed(2).rate(RATE);
    let (url_later, url_now) =
        (origin.serve("/later.bin", later.clone()), origin.serve("/now.bin", now.clone()));
    let received = || -> u64 {
        let status = a.status();
        let transfers = status["transfers"].as_array().unwrap();
        let later = transfers.iter().find(|it| it["url"].as_str().unwrap().contains("later"));
        later.map_or(0, |it| it["received"].as_u64().unwrap())
    };
    std::thread::scope(|scope| {
        let fetching = scope.spawn(|| prefetch(&a, std::slice::from_ref(&url_later), &[], 0));
        let mut waiting = a.ask(&url_now).open();
        waiting.read_to(2 * MIB);
        wait_until("the other to begin", || received() > 0);
        let before = received();
        let answer = waiting.rest();
        let meanwhile = received() - before;
        println!("{} bytes for a client beside {meanwhile} for later", answer.body.len() as u64 - 2 * MIB);
        answer.assert_whole(&now);
        assert!(meanwhile < 8 * MIB, "{meanwhile} of 14 MiB");
        // whoever waits for it gets it at full speed, from the same transfer
        a.get(&url_later).assert_whole(&later);
        assert_eq!(fetching.join().unwrap(), ["origin"]);
    });
    assert_eq!(origin.gets("/later.bin").len(), 1);
}
