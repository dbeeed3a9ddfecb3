//! What package managers and other clients do, where no document has to be understood for it.

use crate::support::{Larder, MIB, Origin, Ranges, Script, Site, at_once, daemon, sha256, tools, wait_until};

#[test]
fn k04_apt_reaches_an_https_source_through_the_tunnel() {
    if !tools::installed("apt-get") {
        return;
    }
    let origin = Origin::start_tls();
    let a = Larder::new("a").set("proxy.connect_ports", vec![i64::from(origin.address().port())]).start();
    let package = Script::new(300_000);
    origin.serve("/repo/./x_1_all.deb", package.clone());
    origin.serve("/repo/x_1_all.deb", package.clone());
    let index = format!(
        "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: n\nFilename: ./x_1_all.deb\nSize: 300000\nSHA256: {}\n\
         Description: x\n\n",
        sha256(&package.body())
    );
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", index.len());
    for path in ["/repo/Packages", "/repo/./Packages"] {
        origin.serve(path, Script::raw([head.as_bytes(), index.as_bytes()].concat().as_slice()));
    }
    let home = a.home();
    let at = |name: &str| home.join(name).display().to_string();
    for folder in ["lists/partial", "archives/partial"] {
        std::fs::create_dir_all(home.join(folder)).unwrap();
    }
    std::fs::write(home.join("ca.pem"), origin.certificate()).unwrap();
    std::fs::write(home.join("sources.list"), format!("deb [trusted=yes] {} ./\n", origin.url("/repo")))
        .unwrap();
    std::fs::write(home.join("status"), "").unwrap();
    let settings = [
        format!("Dir::Etc::sourcelist={}", at("sources.list")),
        "Dir::Etc::sourceparts=-".to_owned(),
        "Dir::Etc::main=/dev/null".to_owned(),
        "Dir::Etc::parts=/nonexistent".to_owned(),
        format!("Dir::State::lists={}", at("lists")),
        format!("Dir::State::status={}", at("status")),
        format!("Dir::Cache::archives={}", at("archives")),
        "Dir::Cache::pkgcache=".to_owned(),
        "Dir::Cache::srcpkgcache=".to_owned(),
        format!("Acquire::http::Proxy=http://{}", a.proxy()),
        format!("Acquire::https::CAInfo={}", at("ca.pem")),
        "APT::Sandbox::User=root".to_owned(),
    ];
    for words in [&["update"][..], &["download", "x"]] {
        let mut command = daemon::bare_command("apt-get", home);
        for setting in &settings {
            command.args(["-o", setting]);
        }
        command.args(words).current_dir(home);
        daemon::run(command).assert_code(0);
    }
    assert!(std::fs::read(home.join("x_1_all.deb")).unwrap() == package.body());
    assert!(a.count("/traffic/bytes_tunnelled") > 300_000 && a.blobs().is_empty());
}

#[test]
fn k08_a_file_cut_at_ninety_per_cent_is_whole_at_the_next_try() {
    let (origin, a) = (Origin::start(), Larder::new("a").start());
    for ranges in [Ranges::Ignored, Ranges::Honoured] {
        let wheel = Script::new(MIB).ranges(ranges).cut_once(MIB * 9 / 10);
        let url = origin.serve(&format!("/{ranges:?}/x-1.0-py3-none-any.whl"), wheel.clone());
        let first = a.get(&url);
        assert!(!first.is_success() || first.body == wheel.body(), "{ranges:?}");
        a.get(&url).assert_whole(&wheel);
        a.wait_for_blob(&wheel.digest());
        a.get(&url).assert_whole(&wheel);
    }
}

#[test]
fn k21_three_nodes_want_one_large_model_at_once() {
    let (site, origin) = (Site::new(), Origin::start());
    let nodes: Vec<_> = ["a", "b", "c"].map(|name| Larder::new(name).peers(&site).start()).into();
    nodes[0].meets(&nodes[1]);
    nodes[1].meets(&nodes[2]);
    nodes[0].meets(&nodes[2]);
    let model = Script::new(64 * MIB);
    let url = origin.serve("/resolve/main/model.safetensors", model.clone());
    let before: Vec<u64> = nodes.iter().map(Larder::rss).collect();
    at_once(3, |node| nodes[node].get(&url).assert_whole(&model).took);
    let grown = nodes.iter().zip(before).map(|(node, before)| node.rss().saturating_sub(before) >> 20);
    let grown: Vec<u64> = grown.collect();
    let sent = origin.bytes_sent("/resolve/main/model.safetensors");
    println!(
        "three nodes at once: the origin sent {:.2} of the file, {grown:?} MiB more resident",
        sent as f64 / model.size as f64
    );
    assert!(grown.iter().all(|grown| *grown < 100), "{grown:?} MiB");
    assert!(sent as f64 <= 1.05 * model.size as f64, "{sent}");
    nodes.iter().for_each(|node| wait_until("no transfer left", || node.transfers() == 0));
    nodes[0].get(&url).assert_whole(&model);
}

#[test]
fn k22_name_type_and_date_of_a_release_stay_with_it() {
    let (site, origin) = (Site::new(), Origin::start());
    let nodes: Vec<_> = ["a", "b"].map(|name| Larder::new(name).peers(&site).start()).into();
    nodes[0].meets(&nodes[1]);
    let release = Script::new(100_000)
        .last_modified("Tue, 01 Sep 2026 08:00:00 GMT")
        .field("Content-Type", "application/x-gtar")
        .field("Content-Disposition", "attachment; filename=tool-1.0.tgz");
    let url = origin.serve("/download", release.clone());
    let told = |answer: &crate::support::Answer| {
        ["Last-Modified", "Content-Type", "Content-Disposition", "ETag", "Content-Length"]
            .map(|name| answer.field(name).map(str::to_owned))
    };
    let cold = told(nodes[0].get(&url).assert_whole(&release));
    assert!(cold.iter().all(Option::is_some), "{cold:?}");
    nodes[0].wait_for_blob(&release.digest());
    assert_eq!(told(nodes[0].get(&url).assert_whole(&release)), cold, "held");
    let asked = nodes[1].ask(&url).field("Larder-Digest", &release.digest()).send();
    assert_eq!(told(asked.assert_whole(&release)), cold, "from the neighbour");
    if tools::installed("wget") {
        let ran = tools::with_proxy(
            nodes[1].proxy(),
            nodes[1].home(),
            "wget",
            &["-q", "--content-disposition", &url],
        );
        ran.assert_code(0);
        let file = nodes[1].home().join("tool-1.0.tgz");
        let age = file.metadata().unwrap().modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(age.as_secs(), 1_788_249_600);
    }
}
