//! What is read, what is refused and where, and what is shipped.

use std::path::Path;

use super::*;
use crate::fetch::{Release, Trust};
use crate::orm::FileKey;

fn environment() -> Environment {
    Environment::of([("HOME", "/home/me".to_owned())])
}

fn load_text(text: &str, environment: &Environment) -> Result<Loaded, Complaints> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("larder.toml");
    std::fs::write(&file, text).unwrap();
    load(Some(&file), environment)
}

/// Each complaint as `line:column key`.
fn places(complaints: &Complaints) -> Vec<String> {
    let shown = complaints.0.iter().map(|complaint| match &complaint.place {
        Some(Place::File { line, column, .. }) => format!("{line}:{column} {}", complaint.key),
        other => format!("{other:?} {}", complaint.key),
    });
    shown.collect()
}

#[test]
fn the_shipped_file_has_every_default() {
    let shipped: Config = toml::from_str(DEFAULT_FILE).unwrap();
    assert_eq!(shipped, Config::default());
    let written: toml::Table = DEFAULT_FILE.parse().unwrap();
    let mut known = toml::Table::try_from(Config::default()).unwrap();
    known.remove("rule");
    known.remove("limits");
    known.remove("mirror");
    for (name, value) in &known {
        match value.as_table() {
            None => assert!(written.contains_key(name), "{name}"),
            Some(section) => {
                for key in section.keys() {
                    assert!(written[name].as_table().unwrap().contains_key(key), "{name}.{key}");
                }
            }
        }
    }
}

/// The example of a list in the shipped file, its `#` taken off.
fn example(of: &str) -> Config {
    let first = format!("# [[{of}]]");
    let lines = DEFAULT_FILE.lines().skip_while(|line| *line != first).map_while(|l| l.strip_prefix("# "));
    let lines: Vec<_> = lines.filter(|line| !line.starts_with(' ')).collect();
    toml::from_str(&lines.join("\n")).unwrap()
}

#[test]
fn the_mirror_in_the_shipped_file_is_right() {
    let config = example("mirror");
    assert_eq!(config.mirror.names().len(), 7);
    let [mirror]: [crate::mirror::Config; 1] = Vec::from(config.mirror).try_into().unwrap();
    for key in toml::Table::try_from(mirror).unwrap().keys() {
        assert!(DEFAULT_FILE.contains(&format!("# {key} = ")), "{key}");
    }
}

#[test]
fn the_limits_in_the_shipped_file_are_right() {
    let config = example("limits");
    let [limit] = &config.limits[..] else { panic!("{:?}", config.limits) };
    for key in toml::Table::try_from(limit).unwrap().keys() {
        assert!(DEFAULT_FILE.contains(&format!("# {key} = ")), "{key}");
    }
    assert!(limit.upload_rate.is_some() && limit.download_rate.is_some());
}

#[test]
fn limits_that_say_nothing_useful_are_refused_where_they_stand() {
    let text = "[[limits]]\nat = \"8-18\"\nupload_rate = \"1MB\"\n\n[[limits]]\nat = \"sat,sun\"\n";
    let complaints = load_text(text, &environment()).unwrap_err();
    let shown = complaints.to_string();
    assert_eq!(places(&complaints).len(), 2, "{shown}");
    for part in ["08:00-18:00 mon-fri", "neither upload_rate nor download_rate", "limits"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn the_rule_in_the_shipped_file_is_right() {
    let config = example("rule");
    let rule = &config.rule.written()[0];
    for key in toml::Table::try_from(rule).unwrap().keys() {
        assert!(DEFAULT_FILE.contains(&format!("# {key} = ")), "{key}");
    }
    assert!(rule.share && rule.negative_ttl.0.is_zero());
}

#[test]
fn every_shipped_configuration_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    for name in ["larder.toml", "minimal.toml", "paranoid.toml"] {
        let loaded =
            load(Some(&folder.join(name)), &environment()).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(loaded.warnings.is_empty(), "{name}: {:?}", loaded.warnings);
    }
    let paranoid = load(Some(&folder.join("paranoid.toml")), &environment()).unwrap().config;
    assert_eq!((paranoid.peers.trust, paranoid.peers.release), (Trust::Digest, Release::Proven));
}

#[test]
fn every_client_file_names_the_proxy_port() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/clients");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("127.0.0.1:8098"), "{}", path.display());
        match path.extension().and_then(|ext| ext.to_str()) {
            Some("json") => drop(serde_json::from_str::<serde_json::Value>(&text).unwrap()),
            Some("toml") => drop(text.parse::<toml::Table>().unwrap()),
            _ => {}
        }
    }
}

#[test]
fn all_complaints_come_at_once_with_their_places() {
    let text = "site = 5\nsecret_fiel = \"x\"\n\n[cache]\nmax_size = \"lots\"\nmin_free = \"120%\"\n\n[proxy]\n\
                listen = [\"127.0.0.1:8098\", \"nowhere\"]\n\n[peers]\ntrust = \"blind\"\nseeds = [\"srv:_x\"]\n\
                port = 70000\n\n[nonsense]\na = 1\n\n[[rule]]\nmatch = \"*\"\ncahe = \"never\"\n\n[index]\n\
                catalogue = \"postgres://db\"\n";
    let complaints = load_text(text, &environment()).unwrap_err();
    let mut places = places(&complaints);
    places.sort();
    assert_eq!(
        places,
        [
            "12:9 peers.trust",
            "13:9 peers.seeds",
            "14:8 peers.port",
            "16:2 nonsense",
            "1:8 site",
            "21:1 rule.cahe",
            "24:1 index.catalogue",
            "2:1 secret_fiel",
            "5:12 cache.max_size",
            "6:12 cache.min_free",
            "9:29 proxy.listen",
        ]
    );
    let hint = |key: &str| complaints.0.iter().find(|c| c.key == key).unwrap().hint.clone();
    assert_eq!(hint("secret_fiel"), "did you mean `secret_file`?");
    assert_eq!(hint("rule.cahe"), "did you mean `cache`?");
    assert_eq!(hint("site"), "write the value in quotes");
    assert!(complaints.to_string().contains("larder.toml:5:12: cache.max_size: `lots` is not a size"));
}

#[test]
fn broken_toml_has_a_place() {
    for (text, place) in
        [("site = \n", "1:8 "), ("[cache\nmax_size = \"1\"\n", "1:7 "), ("a = 1\na = 2\n", "2:1 ")]
    {
        let complaints = load_text(text, &environment()).unwrap_err();
        assert_eq!(places(&complaints)[0], place, "{text:?}: {complaints}");
    }
}

#[test]
fn clashes_are_refused_where_they_stand() {
    for (text, place) in [
        ("[proxy]\nlisten = [\"127.0.0.1:8097\"]", "None admin.listen"),
        ("[admin]\nlisten = [\"127.0.0.1:8098\"]", "2:1 admin.listen"),
        ("[admin]\nlisten = [\"0.0.0.0:8098\"]\ntls_cert = \"c\"\ntls_key = \"k\"", "2:1 admin.listen"),
        ("[proxy]\nlisten = [\"10.0.0.1:8096\"]", "2:1 proxy.listen"),
        ("[admin]\nlisten = [\"10.0.0.1:8097\"]", "2:1 admin.listen"),
        ("[admin]\ntls_cert = \"c\"", "None admin.tls_key"),
        ("[peers]\ntls = \"off\"\nrelease = \"stream\"", "3:1 peers.release"),
        ("[peers]\nwitnesses = 0", "2:1 peers.witnesses"),
        ("[peers]\nadvertise = \"me\"", "2:13 peers.advertise"),
        ("[cache]\nmin_free = \"100%\"", "2:12 cache.min_free"),
        ("[cache]\nmax_size = \"0\"", "2:1 cache.max_size"),
        ("[bans]\nduration = \"2h\"", "None bans.max_duration"),
        ("[origin]\nproxy = \"http://127.0.0.1:8098\"", "2:1 origin.proxy"),
        ("[origin]\nproxy = \"proxy\"", "2:9 origin.proxy"),
        ("[log]\nlevel = \"inof\"", "2:1 log.level"),
        ("[[mirror]]\nname = \"x\"\nurl = \"http://localhost:8098/m/y\"", "1:3 mirror"),
        ("[[mirror]]\nname = \"X\"", "2:8 mirror.name"),
        ("[[mirror]]\nname = \"x\"", "1:1 mirror"),
        ("[[rule]]\ncache = \"never\"", "1:1 rule"),
        ("[[rule]]\nmatch = \"nowhere\"", "2:9 rule.match"),
        ("site = \" \"", "1:1 site"),
    ] {
        let complaints = load_text(text, &environment()).unwrap_err();
        assert!(places(&complaints).contains(&place.to_owned()), "{text}: {:?}", places(&complaints));
    }
}

#[test]
fn variables_override_keys() {
    let environment = Environment::of([
        ("HOME", "/home/me".to_owned()),
        ("LARDER_CACHE__MAX_SIZE", "1GiB".to_owned()),
        ("LARDER_BANS__NEVER", "[]".to_owned()),
        ("LARDER_PEERS__ENABLED", "false".to_owned()),
        ("LARDER_PEERS__PORT", "9000".to_owned()),
        ("LARDER_SITE", "7".to_owned()),
        ("LARDER_RULE", "[{match = \"*\", cache = \"never\"}]".to_owned()),
        ("LARDER_SECRET", "never a key".to_owned()),
        ("LARDER_SERVICE_HOST", "10.0.0.1".to_owned()),
    ]);
    let loaded = load_text("site = \"lab\"\n[bans]\nstrikes = 9\n", &environment).unwrap();
    let config = loaded.config;
    assert_eq!(config.cache.max_size.bytes(), 1 << 30);
    assert!(config.bans.never.is_empty() && config.bans.strikes == 9);
    assert!(!config.peers.enabled && config.peers.port == 9000 && config.site == "7");
    assert_eq!(config.rule.written().len(), 1);
    assert_eq!(loaded.sources.of("site").to_string(), "$LARDER_SITE");
    assert_eq!(loaded.warnings.len(), 1, "a variable of a container's platform is no error");
    for (name, value) in
        [("LARDER_PEERS__PORT", "many"), ("LARDER_BANS__NEVER", "[1]"), ("LARDER_CACHE", "x")]
    {
        let environment = Environment::of([("HOME", "/home/me".to_owned()), (name, value.to_owned())]);
        let answer = load_text("", &environment);
        if name == "LARDER_CACHE" {
            assert_eq!(answer.unwrap().warnings.len(), 1, "a section is no key");
        } else {
            assert!(answer.unwrap_err().to_string().starts_with(&format!("${name}: ")));
        }
    }
}

#[test]
fn folders_depend_on_who_runs_it() {
    let user = load_text("", &environment()).unwrap().config;
    assert_eq!(user.state_dir, Path::new("/home/me/.local/state/larder"));
    assert_eq!(user.cache.dir, Path::new("/home/me/.cache/larder"));
    assert_eq!(user.admin.socket, Path::new("/home/me/.local/state/larder/admin.sock"));
    assert_eq!(user.node_name, "host");
    let unit = Environment::of([
        ("STATE_DIRECTORY", "/var/lib/larder:/var/lib/other".to_owned()),
        ("CACHE_DIRECTORY", "/var/cache/larder".to_owned()),
        ("RUNTIME_DIRECTORY", "/run/larder".to_owned()),
    ]);
    let unit = load_text("", &unit).unwrap().config;
    assert_eq!(unit.state_dir, Path::new("/var/lib/larder"));
    assert_eq!(unit.admin.socket, Path::new("/run/larder/admin.sock"));
    let nowhere = load_text("", &Environment::default()).unwrap_err();
    assert_eq!(places(&nowhere), ["None state_dir", "None cache.dir"]);
}

#[test]
fn relative_paths_are_read_from_the_files_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("larder.toml");
    std::fs::write(&file, "state_dir = \"state\"\naccept_secret_files = [\"old\"]\n").unwrap();
    let environment =
        Environment::of([("HOME", "/home/me".to_owned()), ("LARDER_CACHE__DIR", "c".to_owned())]);
    let config = load(Some(&file), &environment).unwrap().config;
    assert_eq!(config.state_dir, folder.path().join("state"));
    assert_eq!(config.accept_secret_files, [folder.path().join("old")]);
    assert_eq!(config.cache.dir, Path::new("c"));
}

#[test]
fn the_named_file_must_be_there() {
    let missing = load(Some(Path::new("/nonexistent/larder.toml")), &environment()).unwrap_err();
    assert!(missing.to_string().starts_with("/nonexistent/larder.toml: cannot read the configuration"));
    let variable =
        Environment::of([("HOME", "/".to_owned()), ("LARDER_CONFIG", "/nonexistent/other.toml".to_owned())]);
    assert!(load(None, &variable).is_err());
}

#[test]
fn shows_where_each_value_came_from() {
    let environment =
        Environment::of([("HOME", "/home/me".to_owned()), ("LARDER_CACHE__MAX_SIZE", "1GiB".to_owned())]);
    let text = "site = \"lab\"\n[origin]\nproxy = \"http://me:geheim@proxy:3128\"\n[[rule]]\nmatch = \"*\"\n";
    let shown = show(&load_text(text, &environment).unwrap()).unwrap();
    let line =
        |start: &str| shown.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(line("site").ends_with("larder.toml:1:1"), "{shown}");
    assert!(line("max_size").contains("# $LARDER_CACHE__MAX_SIZE"), "{shown}");
    assert!(line("match").ends_with("larder.toml:5:1"), "{shown}");
    assert!(line("witnesses").ends_with("# default"), "{shown}");
    assert!(!shown.contains("geheim"));
    assert!(toml::from_str::<Config>(&shown).is_ok(), "what is shown can be read");
}

#[test]
fn secrets_come_from_file_variable_or_credential() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("larder.secret");
    let (long, short) = ("a long enough passphrase", "tiny");
    std::fs::write(&file, long).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let with = |variable: &'static str, value: &str| Environment::of([(variable, value.to_owned())]);
    let none = load_secrets(&Config::default(), &Environment::default()).unwrap();
    assert!(none.secrets.is_empty());
    let named = Config { secret_file: file.clone(), ..Config::default() };
    let found = load_secrets(&named, &with("LARDER_SECRET", long)).unwrap();
    assert_eq!(
        (found.secrets.len(), found.warnings.len()),
        (1, 2),
        "readable by all, and the variable is ignored"
    );
    let variable = load_secrets(&Config::default(), &with("LARDER_SECRET", long)).unwrap();
    assert_eq!(variable.from, "$LARDER_SECRET");
    let credential = with("CREDENTIALS_DIRECTORY", &folder.path().display().to_string());
    let found = load_secrets(&Config::default(), &credential).unwrap();
    assert_eq!((found.secrets.len(), found.warnings.len()), (1, 0));
    let service = Environment::default().of_service(Some(Path::new(SYSTEM_FILE)));
    assert_eq!(service.get("CREDENTIALS_DIRECTORY"), Some("/etc/credstore"), "as the unit has it");
    let service = credential.of_service(Some(Path::new(SYSTEM_FILE)));
    assert_ne!(service.get("CREDENTIALS_DIRECTORY"), Some("/etc/credstore"), "systemd goes before");
    let weak = load_secrets(&Config::default(), &with("LARDER_SECRET", short)).unwrap_err();
    assert!(weak.to_string().starts_with("$LARDER_SECRET: ") && !weak.to_string().contains(short), "{weak}");
    let lost = Config { accept_secret_files: vec![folder.path().join("gone"), file], ..Config::default() };
    let lost = load_secrets(&lost, &Environment::default()).unwrap_err();
    assert!(lost.to_string().contains("cannot read the secret"), "{lost}");
}

#[test]
fn the_key_of_the_index_comes_from_a_file_or_a_credential() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("larder.index-key");
    let credential = Environment::of([("CREDENTIALS_DIRECTORY", folder.path().display().to_string())]);
    let named = Config {
        index: IndexConfig { key_file: file.clone(), ..IndexConfig::default() },
        ..Config::default()
    };
    let by_file = || load_index_key(&named, &Environment::default());
    let by_credential = || load_index_key(&Config::default(), &credential);
    assert_eq!(by_credential(), Ok(None), "none is no error");
    assert_eq!(by_file().unwrap_err().key, "index.key_file", "a file that is named must be there");
    std::fs::write(&file, format!("{}\n", "5a".repeat(32))).unwrap();
    let ways = [by_file(), by_credential()];
    if FileKey::IS_OF_USE {
        assert!(
            ways.iter().all(|found| matches!(found, Ok(Some((key, _))) if *key == FileKey::new(&[0x5a; 32])))
        );
        std::fs::write(&file, "5a5a").unwrap();
        for wrong in [by_file(), by_credential()] {
            let wrong = wrong.unwrap_err().to_string();
            assert!(wrong.contains("64 hexadecimal digits") && !wrong.contains("5a5a"), "{wrong}");
        }
    } else {
        for refused in ways {
            assert!(refused.unwrap_err().to_string().contains("this build cannot encrypt"));
        }
    }
}

#[test]
fn a_proxy_open_to_the_world_is_a_warning() {
    let open = "[proxy]\nlisten = [\"0.0.0.0:8098\"]\nallow = [\"0.0.0.0/0\"]\n";
    assert_eq!(load_text(open, &environment()).unwrap().warnings[0].key, "proxy.allow");
    let useless = "[proxy]\nlisten = [\"0.0.0.0:8098\"]\n";
    assert_eq!(load_text(useless, &environment()).unwrap().warnings[0].key, "proxy.allow");
}

#[test]
fn files_that_hold_something_else_are_complained_of() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "no PEM\n").unwrap();
    let mut config = Config::default();
    assert!(check_files(&config).is_empty());
    config.origin.ca_file = text.clone();
    (config.admin.tls_cert, config.admin.tls_key) = (text.clone(), text);
    let all: Vec<String> = check_files(&config).iter().map(ToString::to_string).collect();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].starts_with("origin.ca_file: ") && all[0].contains("certificate authority"), "{all:?}");
    assert!(all[1].starts_with("admin.tls_cert: ") && all[1].contains("certificate"), "{all:?}");
}
