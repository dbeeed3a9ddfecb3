//! Carrying blobs to a site without a network, and what the node remembers of its traffic.

use std::path::Path;

use crate::support::{Larder, Origin, Script};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_bundle_brings_blobs_and_their_urls_to_another_site() {
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").start(), Larder::new("b").start());
    let scripts = [Script::new(5000), Script::new(70_000).seed(2), Script::new(0).seed(3)];
    let fresh = |script: &Script| script.clone().cache_control("max-age=3600");
    let urls: Vec<String> = scripts
        .iter()
        .enumerate()
        .map(|(at, script)| origin.serve(&format!("/f{at}"), fresh(script)))
        .collect();
    for (url, script) in urls.iter().zip(&scripts) {
        a.get(url).assert_whole(script);
    }
    for script in &scripts[..2] {
        a.wait_for_blob(&script.digest());
    }
    let bundle = a.home().join("all.bundle");
    let file = bundle.to_str().unwrap();
    let said = a.cli(&["export", "-o", file, "--json"]).assert_code(0).stdout;
    assert!(json(&said)["blobs"].as_u64().unwrap() >= 2, "{said}");
    a.cli(&["export", "-o", file]).assert_code(1);
    let done = json(&b.cli(&["import", file, "--json"]).assert_code(0).stdout);
    assert_eq!(done["stored"], json(&said)["blobs"], "{done}");
    let again = json(&b.cli(&["import", file, "--json"]).assert_code(0).stdout);
    assert_eq!((again["stored"].as_u64(), again["answers"].as_u64()), (Some(0), Some(0)), "{again}");
    for (url, script) in urls.iter().zip(&scripts).take(2) {
        let answer = b.get(url);
        assert!(answer.is_hit(), "{}", answer.cache_status());
        answer.assert_whole(script);
    }
    assert_eq!(origin.requests("/f1").len(), 1);
}

/// Cut anywhere, changed anywhere: what is whole is stored, the rest is said, nothing wrong is kept.
#[test]
fn a_damaged_bundle_gives_what_is_whole_and_says_what_is_not() {
    let origin = Origin::start();
    let (a, b, c) = (Larder::new("a").start(), Larder::new("b").start(), Larder::new("c").start());
    let scripts: Vec<Script> = (1..=4).map(|seed| Script::new(20_000).seed(seed)).collect();
    for (at, script) in scripts.iter().enumerate() {
        a.get(&origin.serve(&format!("/f{at}"), script.clone())).assert_whole(script);
        a.wait_for_blob(&script.digest());
    }
    let bundle = a.home().join("all.bundle");
    a.cli(&["export", "-o", bundle.to_str().unwrap()]).assert_code(0);
    let whole = std::fs::read(&bundle).unwrap();
    let cut = b.home().join("cut");
    std::fs::write(&cut, &whole[..whole.len() - 35_000]).unwrap();
    let said = b.cli(&["import", cut.to_str().unwrap(), "--json"]).assert_code(1);
    let said = json(&said.stdout);
    assert!(said["cut"].is_string() && said["stored"].as_u64().unwrap() >= 2, "{said}");
    assert_eq!(
        said["stored"].as_u64().unwrap() + said["missing"].as_array().unwrap().len() as u64,
        4,
        "{said}"
    );
    let rest = json(&b.cli(&["import", bundle.to_str().unwrap(), "--json"]).assert_code(0).stdout);
    assert_eq!(rest["there_already"], said["stored"], "{rest}");
    let mut wrong = whole.clone();
    let at = wrong.len() - 1024 - 10_000;
    wrong[at] ^= 1;
    let changed = c.home().join("changed");
    std::fs::write(&changed, wrong).unwrap();
    let said = json(&c.cli(&["import", changed.to_str().unwrap(), "--json"]).assert_code(4).stdout);
    assert_eq!((said["stored"].as_u64(), said["refused"].as_array().unwrap().len()), (Some(3), 1), "{said}");
    assert_eq!(c.count("/cache/blobs"), 3);
    // a part that a killed export left is gone on with
    let next = a.home().join("next.bundle");
    std::fs::write(a.home().join("next.bundle.part"), &whole[..whole.len() - 35_000]).unwrap();
    let resumed = json(&a.cli(&["export", "-o", next.to_str().unwrap(), "--json"]).assert_code(0).stdout);
    assert!(resumed["there_already"].as_u64().unwrap() >= 2, "{resumed}");
    assert_eq!(std::fs::read(&next).unwrap(), whole, "to the byte");
}

#[test]
fn a_plain_file_is_imported_as_one_blob() {
    let a = Larder::new("a").start();
    let script = Script::new(3_000_000);
    let file = a.home().join("plain.iso");
    std::fs::write(&file, script.body()).unwrap();
    a.cli(&["import", file.to_str().unwrap()]).assert_code(0);
    assert_eq!(std::fs::read(a.wait_for_blob(&script.digest())).unwrap(), std::fs::read(&file).unwrap());
    a.cli(&["import", Path::new("/nowhere").to_str().unwrap()]).assert_code(1);
    a.cli(&["export", "nothing-is-called-so", "-o", "/tmp/never"]).assert_code(3);
    let listed = a.cli(&["ls", "--sort", "size", "--limit", "1", "--json"]).assert_code(0).stdout;
    assert_eq!(json(&listed).as_array().unwrap().len(), 1);
}

#[test]
fn the_report_adds_up_over_a_restart() {
    let origin = Origin::start();
    let mut a = Larder::new("a").start();
    let script = Script::new(100_000);
    let url = origin.serve("/f", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    a.get(&url).assert_whole(&script);
    assert_eq!(a.count("/saved/ever"), 100_000);
    a.restart();
    let said = json(&a.cli(&["report", "--json"]).assert_code(0).stdout);
    assert_eq!(said["total"]["bytes_to_clients"], 200_000, "{said}");
    assert_eq!(said["total"]["bytes_saved"], 100_000, "{said}");
    assert_eq!(a.count("/saved/today"), 100_000);
    let csv = a.cli(&["report", "--csv", "--by", "hour", "--since", "1d"]).assert_code(0).stdout;
    assert!(csv.lines().count() >= 2 && csv.starts_with("at,requests,"), "{csv}");
    let table = a.cli(&["report"]).assert_code(0).stdout;
    assert!(table.contains("50 %") && table.lines().last().unwrap().starts_with("total"), "{table}");
}
