//! The site's secret in the hands of an operator: changed while everybody goes on, refused where it protects nothing.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Larder, Origin, Script, Site, wait_until};

/// Gives a node a secret to send with and others to understand, and starts it again.
fn rotate(node: &mut Larder, send: &str, accept: &[&str]) {
    let write = |name: &str, secret: &str| {
        let path = node.home().join(name);
        std::fs::write(&path, format!("{secret}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let mut table: toml::Table = std::fs::read_to_string(node.config_file()).unwrap().parse().unwrap();
    table.insert("secret_file".into(), write("sends", send).into());
    let accepted = accept.iter().enumerate().map(|(n, secret)| write(&format!("accepts-{n}"), secret).into());
    table.insert("accept_secret_files".into(), toml::Value::Array(accepted.collect()));
    std::fs::write(node.config_file(), toml::to_string(&table).unwrap()).unwrap();
    node.restart();
}

#[test]
fn a_secret_is_changed_node_by_node_and_nobody_is_lost() {
    let (site, origin) = (Site::new(), Origin::start());
    let mut nodes = [Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start()];
    let (old, new) = (site.secret().to_owned(), "another secret of the same site".to_owned());
    let (old, new) = (old.as_str(), new.as_str());
    let steps = [(old, vec![new]), (new, vec![old]), (new, vec![])];
    let mut seed = 0;
    for (send, accept) in &steps {
        for turn in 0..2 {
            rotate(&mut nodes[turn], send, accept);
            let [a, b] = &nodes;
            a.meets(b);
            for (giver, asker) in [(a, b), (b, a)] {
                // who has just started has not been heard by everybody yet
                wait_until(&format!("a file from the neighbour with {send:?} and {accept:?}"), || {
                    seed += 1;
                    let script = Script::new(50_000).seed(seed);
                    let url = origin.serve(&format!("/{seed}.bin"), script.clone());
                    giver.get(&url).assert_whole(&script);
                    giver.wait_for_blob(&script.digest());
                    let answer = asker.ask(&url).field("Larder-Digest", &script.digest()).send();
                    answer.assert_whole(&script).is_from_peer()
                });
            }
        }
    }
    // Who still has only the old one is a stranger now.
    let late = Larder::new("late").peers(&site).start();
    let script = Script::new(50_000).seed(1_000_000);
    let url = origin.serve("/late.bin", script.clone());
    nodes[0].get(&url).assert_whole(&script);
    let answer = late.ask(&url).field("Larder-Digest", &script.digest()).send();
    assert!(!answer.assert_whole(&script).is_from_peer());
    assert!(late.peers().is_empty() && !nodes[0].peers().contains(&"late".to_owned()));
}

#[test]
fn a_secret_that_protects_nothing_stops_the_start_and_is_not_shown() {
    for (secret, word) in
        [("too brief", "16 bytes"), ("change-me-change-me", "sample"), ("aaaaaaaaaaaaaaaaaaaa", "sample")]
    {
        let site = Site::new();
        let mut a = Larder::new("a").peers(&site).ready_to_start();
        std::fs::write(a.home().join("secret"), format!("{secret}\n")).unwrap();
        a.spawn();
        assert_eq!(a.wait_exit().code(), Some(78), "{}", a.log());
        let log = a.log();
        assert!(log.contains(word) && log.contains("larder secret new"), "{log}");
        assert!(!log.contains(secret), "{log}");
    }
}
