//! Checksum files beside a download: asked for where they can help, believed where they belong to the file.

use crate::support::{Answer, Larder, MIB, Origin, Script, Site, wait_until};

const OLD: &str = "Mon, 02 Nov 2026 08:00:00 GMT";
const NEW: &str = "Tue, 03 Nov 2026 08:00:00 GMT";

/// A file that is large enough to be worth a question.
fn image() -> Script {
    Script::new(20 * MIB).last_modified(OLD)
}

fn list(of: &Script, date: &str) -> Script {
    let line = format!("{}  image.iso\n", of.digest().trim_start_matches("sha256:"));
    Script::of("text/plain", line).last_modified(date)
}

/// One mirror that the first node has read the image from, another one for the second node.
struct Mirrors {
    site: Site,
    a: Larder,
    other: Origin,
}

impl Mirrors {
    fn start() -> Self {
        let (site, one, other) = (Site::new(), Origin::start(), Origin::start());
        let a = Larder::new("a").peers(&site).start();
        a.get(&one.serve("/pub/image.iso", image())).assert_whole(&image());
        a.wait_for_blob(&image().digest());
        Self { site, a, other }
    }

    fn node(&self, name: &str) -> Larder {
        // whoever is asked answers, however late: a busy machine must not make it nobody
        let node = Larder::new(name).peers(&self.site).set("peers.wait_max", "2s").start();
        self.a.meets(&node);
        node
    }

    /// The file as the other mirror has it: it stops in the middle, until it is released.
    fn serve(&self, path: &str, script: Script) -> String {
        self.other.serve(path, script.hold_at(2 * MIB))
    }

    /// A download that ends once the mirror sends on.
    fn get_once_asked(&self, node: &Larder, url: &str, path: &str, asked: &[&str]) -> Answer {
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| node.get(url));
            for file in asked {
                wait_until(&format!("a question for {file}"), || !self.other.gets(file).is_empty());
            }
            self.other.release(path);
            answer.join().unwrap()
        })
    }
}

#[test]
fn a_list_beside_the_file_leads_to_a_neighbour_that_has_it_from_another_mirror() {
    let mirrors = Mirrors::start();
    let b = mirrors.node("b");
    let url = mirrors.serve("/d/image.iso", image());
    mirrors.other.serve("/d/SHA256SUMS", list(&image(), NEW));
    let client = b.ask(&url).field("Referer", "http://secret.example/").field("User-Agent", "fetcher/1");
    // the mirror itself never sends the rest
    client.send().assert_whole(&image());
    assert!(b.count("/traffic/bytes_from_peers") > 15 * MIB, "{}", b.status());
    assert!(b.count("/traffic/bytes_sidecars") > 64);
    let asked = mirrors.other.gets("/d/SHA256SUMS");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].field("Referer"), None, "nothing of the client's own");
    assert_eq!(asked[0].field("User-Agent"), Some("fetcher/1"));
    assert!(mirrors.other.gets("/d/image.iso.sha256").is_empty());
}

#[test]
fn the_checksum_of_the_file_itself_does_as_well() {
    let mirrors = Mirrors::start();
    let b = mirrors.node("b");
    let url = mirrors.serve("/d/image.iso", image());
    let bare = Script::of("text/plain", image().digest().trim_start_matches("sha256:")).last_modified(OLD);
    mirrors.other.serve("/d/image.iso.sha256", bare);
    b.get(&url).assert_whole(&image());
    assert!(b.count("/traffic/bytes_from_peers") > 15 * MIB, "{}", b.status());
}

#[test]
fn a_list_that_is_older_than_the_file_is_not_believed() {
    let mirrors = Mirrors::start();
    let b = mirrors.node("b");
    // published anew: the list still speaks of the earlier file, which a neighbour holds
    let next = image().seed(5).last_modified(NEW);
    let url = mirrors.serve("/d/image.iso", next.clone());
    mirrors.other.serve("/d/SHA256SUMS", list(&image(), OLD));
    let asked = ["/d/SHA256SUMS", "/d/image.iso.sha256"];
    mirrors.get_once_asked(&b, &url, "/d/image.iso", &asked).assert_whole(&next);
    assert_eq!(b.count("/traffic/bytes_from_peers"), 0);
}

#[test]
fn a_list_that_is_wrong_costs_time_and_blames_nobody() {
    let mirrors = Mirrors::start();
    let b = mirrors.node("b");
    let next = image().seed(5);
    let url = mirrors.serve("/d/image.iso", next.clone());
    mirrors.other.serve("/d/SHA256SUMS", list(&image(), NEW));
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| b.get(&url));
        // the neighbour's rest does not belong to this beginning: the mirror is asked for the rest
        wait_until("the rest is asked of the mirror", || mirrors.other.gets("/d/image.iso").len() > 1);
        mirrors.other.release("/d/image.iso");
        answer.join().unwrap()
    });
    answer.assert_whole(&next);
    assert!(b.log().contains("does not belong to what the origin sends"), "{}", b.log());
    assert!(!b.log().contains("a neighbour sent wrong bytes"), "{}", b.log());
    // and is not asked again for the next file of the folder
    mirrors.other.serve("/d/second.iso", image().seed(6));
    b.get(&mirrors.other.url("/d/second.iso")).assert_whole(&image().seed(6));
    assert_eq!(mirrors.other.gets("/d/SHA256SUMS").len(), 1);
}

#[test]
fn nobody_is_asked_where_it_is_switched_off_or_of_no_use() {
    let mirrors = Mirrors::start();
    let off = Larder::new("off").peers(&mirrors.site).set("origin.sidecars", false).start();
    mirrors.a.meets(&off);
    let alone = Larder::new("alone").start();
    let b = mirrors.node("b");
    let serve = |path: &str, script: Script| mirrors.other.serve(path, script);
    serve("/d/SHA256SUMS", list(&image(), NEW));
    let of_off = serve("/d/a.iso", image());
    off.get(&of_off).assert_whole(&image());
    let of_alone = serve("/d/b.iso", image().seed(2));
    alone.get(&of_alone).assert_whole(&image().seed(2));
    let small = Script::new(MIB).last_modified(OLD);
    b.get(&serve("/d/small.iso", small.clone())).assert_whole(&small);
    b.get(&serve("/d/page.html", image().seed(3))).assert_whole(&image().seed(3));
    let queried = b.get(&(serve("/d/c.iso", image().seed(4)) + "?token=s3cret"));
    queried.assert_whole(&image().seed(4));
    let private = b.ask(&serve("/d/d.iso", image().seed(7))).field("Cookie", "a=b").send();
    private.assert_whole(&image().seed(7));
    assert!(mirrors.other.gets("/d/SHA256SUMS").is_empty());
}

#[test]
fn what_is_not_there_is_asked_for_once() {
    let mirrors = Mirrors::start();
    let b = mirrors.node("b");
    for number in 1..=3 {
        let path = format!("/d/{number}.iso");
        let url = mirrors.serve(&path, image().seed(10 + number));
        let asked: &[&str] = if number == 1 { &["/d/SHA256SUMS", "/d/1.iso.sha256"] } else { &[] };
        mirrors.get_once_asked(&b, &url, &path, asked).assert_whole(&image().seed(10 + number));
    }
    let asked: Vec<String> = mirrors.other.all_requests().iter().map(|seen| seen.path().to_owned()).collect();
    assert_eq!(
        asked.iter().filter(|path| path.contains("SUMS") || path.ends_with(".sha256")).count(),
        2,
        "{asked:?}"
    );
}
