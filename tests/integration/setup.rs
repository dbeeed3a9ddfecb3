//! `larder setup`: what is written holds, what is others' stays, what is taken out leaves no trace.

use crate::support::daemon::{bare_command, larder, run};
use crate::support::{Larder, Origin, Script, tools};

#[test]
fn settings_come_and_go_in_the_users_own_files() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("larder.toml"), "[proxy]\nlisten = [\"127.0.0.9:4711\"]\n").unwrap();
    let setup = |arguments: &[&str]| {
        larder(home.path(), &[&["setup"], arguments, &["--config", "larder.toml"]].concat())
    };
    let npmrc = home.path().join(".npmrc");
    let old = "@corp:registry=https://npm.example/\n//npm.example/:_authToken=x";
    std::fs::write(&npmrc, old).unwrap();
    let printed = setup(&["npm"]).assert_code(0);
    assert!(printed.stdout.contains("registry=http://127.0.0.9:4711/m/npm/\n"), "{}", printed.stdout);
    let dry = setup(&["npm", "--write", "--dry-run"]).assert_code(0);
    assert!(
        dry.stdout.contains("would put larder's lines into") && dry.stdout.contains("registry="),
        "{}",
        dry.stdout
    );
    assert_eq!(std::fs::read_to_string(&npmrc).unwrap(), old);
    let wrote = setup(&["npm", "--write"]).assert_code(0);
    assert!(wrote.stdout.contains(&npmrc.display().to_string()), "{}", wrote.stdout);
    assert!(wrote.stderr.contains("nothing answers at 127.0.0.9:4711"), "{}", wrote.stderr);
    assert!(wrote.stderr.contains("no second way"), "{}", wrote.stderr);
    let new = std::fs::read_to_string(&npmrc).unwrap();
    assert!(new.ends_with(old) && new.contains("registry=http://127.0.0.9:4711/m/npm/\n"), "{new}");
    assert!(setup(&["npm", "--write"]).assert_code(0).stdout.contains("has it already"));
    assert_eq!(std::fs::read_to_string(&npmrc).unwrap(), new);
    setup(&["npm", "--undo", "--dry-run"]).assert_code(0);
    assert_eq!(std::fs::read_to_string(&npmrc).unwrap(), new);
    setup(&["npm", "--undo"]).assert_code(0);
    assert_eq!(std::fs::read_to_string(&npmrc).unwrap(), old);
    assert!(setup(&["npm", "--undo"]).assert_code(0).stdout.contains("nothing of larder's"));
    for (program, file) in
        [("pip", ".config/pip/pip.conf"), ("cargo", ".cargo/config.toml"), ("env", ".profile")]
    {
        setup(&[program, "--write"]).assert_code(0);
        assert!(home.path().join(file).exists(), "{file}");
        setup(&[program, "--undo"]).assert_code(0);
        assert!(!home.path().join(file).exists(), "{file} was made for it");
    }
}

#[test]
fn the_settings_of_others_are_named_and_left() {
    let home = tempfile::tempdir().unwrap();
    for (program, file, text) in [
        ("pip", ".config/pip/pip.conf", "[global]\nindex-url = https://corp/simple\n"),
        ("npm", ".npmrc", "registry=https://corp/\n"),
        ("cargo", ".cargo/config.toml", "[source.crates-io]\nreplace-with = \"corp\"\n"),
        ("env", ".profile", "export http_proxy=http://corp:3128\n"),
        ("podman", ".config/containers/registries.conf.d/50-larder.conf", "# mine\n"),
        ("podman", ".config/containers/registries.conf", "[[registry]]\nprefix = \"docker.io\"\n"),
    ] {
        let path = home.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let refused = larder(home.path(), &["setup", program, "--write"]).assert_code(1);
        assert!(refused.stderr.contains(file) && refused.stderr.contains("hint:"), "{}", refused.stderr);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::remove_file(&path).unwrap();
    }
    let none = larder(home.path(), &["setup", "cargo", "--system", "--write"]).assert_code(1);
    assert!(none.stderr.contains("no settings for all users"), "{}", none.stderr);
    larder(home.path(), &["setup", "pip", "--write", "--undo"]).assert_code(2);
    larder(home.path(), &["setup", "gem"]).assert_code(2);
}

#[test]
fn a_shell_that_takes_the_settings_comes_through_the_node() {
    if !tools::installed("curl") {
        return;
    }
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let url = origin.serve("/f", Script::new(1000)).replace("127.0.0.1", "origin.test");
    a.cli(&["setup", "env", "--write"]).assert_code(0);
    let script = format!(". ./.profile; curl -sS -o /dev/null -w '%{{http_code}} %header{{via}}' {url}");
    let mut shell = bare_command("sh", a.home());
    shell.args(["-c", &script]).current_dir(a.home());
    let said = run(shell).assert_code(0).stdout;
    assert!(said.contains("larder-"), "the node answered, for it could not find the name: {said}");
}
