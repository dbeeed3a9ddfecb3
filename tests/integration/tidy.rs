//! The house in order: plain tests over our own sources, as a broom in the hall.
//!
//! Rooms use only what stands above them in `src/lib.rs`; every file introduces itself and stays short;
//! nothing unfinished is left lying about; README, configuration and fixtures keep up with the code; what we
//! depend on is what we said we would (see also `deny.toml`).

mod dependencies;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::chaos::files_under;
use crate::support::daemon::larder;

/// The longest a file may be, its tests aside.
const LONGEST: usize = 600;

/// A source file of ours.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// The path below the top of the project.
    fn name(&self) -> String {
        self.path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string()
    }

    fn is_test(&self) -> bool {
        let name = self.name();
        name.starts_with("tests/") || name.ends_with("/tests.rs") || name.contains("/tests/")
    }

    /// The text without comments and without its inline test module, which stands last.
    fn code(&self) -> String {
        let own = self.without_tests();
        own.lines().map(without_comment).collect::<Vec<_>>().join("\n")
    }

    fn without_tests(&self) -> &str {
        let inline = self.text.match_indices("#[cfg(test)]").find(|(at, _)| {
            let next = self.text[*at..].lines().find(|line| !line.starts_with("#["));
            next.is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
        });
        inline.map_or(self.text.as_str(), |(at, _)| &self.text[..at])
    }

    /// The modules on the way from the crate to this file.
    fn modules(&self) -> Vec<String> {
        let name = self.name();
        let inside = name.trim_start_matches("src/").trim_end_matches(".rs");
        inside.split('/').map(str::to_owned).collect()
    }
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let files = folders.iter().flat_map(|folder| files_under(&top().join(folder)));
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files.map(|path| Source { text: std::fs::read_to_string(&path).unwrap(), path }).collect()
}

/// A line up to its comment; the slashes of a URL are none.
fn without_comment(line: &str) -> &str {
    let comment = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// The rooms, bottom-up.
fn rooms() -> Vec<String> {
    let lib = std::fs::read_to_string(top().join("src/lib.rs")).unwrap();
    lib.lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';').map(str::to_owned))
        .collect()
}

/// The names a path like `crate::` is followed by: one, or those of a group.
fn heads(rest: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = rest.strip_prefix('{') else { return vec![word(rest)] };
    let (mut depth, mut names, mut start) = (0, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(word(group[start..at].trim()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(word(group[start..at].trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

/// The rooms that a file reaches for, through `crate::` or by climbing with `super::`.
fn reaches(code: &str, depth: usize) -> BTreeSet<String> {
    let climb = "super::".repeat(depth);
    let paths = code.match_indices("crate::").map(|(at, found)| at + found.len());
    let climbs = code.match_indices(&climb).map(|(at, found)| at + found.len());
    let climbs = climbs.filter(|end| !code[..*end - climb.len()].ends_with("super::"));
    paths.chain(climbs).flat_map(|end| heads(&code[end..])).collect()
}

#[test]
fn a_room_uses_only_rooms_above_it_in_lib_rs() {
    let rooms = rooms();
    let floor = |room: &str| rooms.iter().position(|name| name == room);
    let mut wrong = Vec::new();
    for source in sources(&["src"]).iter().filter(|source| !source.is_test()) {
        let modules = source.modules();
        let Some(own) = floor(&modules[0]) else { continue };
        for used in reaches(&source.code(), modules.len()) {
            if floor(&used).is_some_and(|used| used > own) {
                wrong.push(format!(
                    "{}: `{}` uses `{used}`, which stands below it in src/lib.rs",
                    source.name(),
                    modules[0]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_stands_in_lib_rs() {
    let rooms = rooms();
    for source in sources(&["src"]) {
        let room = source.modules()[0].clone();
        assert!(["lib", "main"].contains(&room.as_str()) || rooms.contains(&room), "{}", source.name());
    }
    assert!(rooms.len() > 10);
}

#[test]
fn every_file_introduces_itself_and_stays_short() {
    let mut wrong = Vec::new();
    for source in sources(&["src", "tests", "benches"]) {
        let first = source.text.lines().next().unwrap_or_default();
        if !first.starts_with("//! ") {
            wrong.push(format!("{}: the first line does not say what the file is", source.name()));
        }
        let length = source.without_tests().lines().count();
        if length > LONGEST {
            wrong.push(format!("{}: {length} lines", source.name()));
        }
        if source.path.ends_with("mod.rs") {
            wrong.push(format!("{}: write foo.rs beside foo/", source.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_unfinished_is_left_lying_about() {
    // Put together here, so that this file does not find itself.
    let leftovers = [
        concat!("to", "do!("),
        concat!("db", "g!("),
        concat!("unimplemented", "!("),
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("XX", "X"),
        concat!("#[all", "ow("),
        concat!("#![all", "ow("),
        concat!("#[ign", "ore]"),
    ];
    let mut wrong = Vec::new();
    for source in sources(&["src", "tests", "benches"]) {
        for (number, line) in source.text.lines().enumerate() {
            for leftover in leftovers.iter().filter(|leftover| line.contains(*leftover)) {
                wrong.push(format!("{}:{}: {leftover}", source.name(), number + 1));
            }
        }
        for number in commented_out(&source.text) {
            wrong.push(format!("{}:{number}: code in a comment", source.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The lines where two comment lines in a row look like code.
fn commented_out(text: &str) -> Vec<usize> {
    let is_code = |line: &str| {
        let comment = line.trim().strip_prefix("//").filter(|rest| !rest.starts_with(['/', '!']));
        comment.map(str::trim).is_some_and(|code| code.ends_with([';', '{']) || code == "}")
    };
    let lines: Vec<_> = text.lines().collect();
    let pairs = lines.windows(2).enumerate();
    pairs.filter(|(_, pair)| pair.iter().all(|line| is_code(line))).map(|(number, _)| number + 1).collect()
}

#[test]
fn the_readme_names_every_command() {
    let home = tempfile::tempdir().unwrap();
    let help = larder(home.path(), &["--help"]).assert_code(0).stdout;
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let listed = listed.take_while(|line| !line.trim().is_empty());
    // A command stands two columns in; what is further in is the rest of its description.
    let commands = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let commands: Vec<_> =
        commands.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect();
    assert!(commands.len() >= 9, "{help}");
    let readme = std::fs::read_to_string(top().join("README.md")).unwrap();
    let unknown: Vec<_> =
        commands.iter().filter(|name| !readme.contains(&format!("larder {name}"))).collect();
    assert!(unknown.is_empty(), "README.md does not name {unknown:?}");
}

#[test]
fn every_fixture_is_loaded_by_a_test() {
    let Ok(entries) = std::fs::read_dir(top().join("tests/fixtures")) else { return };
    let texts: String = sources(&["src", "tests"]).into_iter().map(|source| source.text).collect();
    for entry in entries {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(texts.contains(&format!("fixtures/{name}")), "no test loads tests/fixtures/{name}");
    }
}

#[test]
fn every_attack_in_the_security_page_has_its_test() {
    let page = std::fs::read_to_string(top().join("SECURITY.md")).unwrap();
    let (_, table) = page.split_once("## Attacks, what stops them").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let names = rows
        .filter_map(|row| row.trim_end_matches(" |").rsplit_once("| "))
        .flat_map(|(_, last)| last.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    let all: String = sources(&["src", "tests"]).iter().map(|source| source.text.clone()).collect();
    let missing: Vec<_> = names.filter(|name| !all.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "no such test: {missing:?}");
}

#[test]
fn the_broom_sweeps() {
    assert_eq!(heads("store::Blob"), ["store"]);
    assert_eq!(heads("{cache::{Cache, Put}, unit, index::Index};"), ["cache", "unit", "index"]);
    let found = reaches("use super::super::peer::X;\nlet a = super::b;\nuse crate::net;", 2);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["net", "peer"]);
    assert_eq!(without_comment("let a = \"http://x\"; // crate::cli"), "let a = \"http://x\"; ");
    assert_eq!(commented_out("// let a = 1;\n// a.b();\n// prose, and an end.\n"), [1]);
    assert_eq!(commented_out("/// let a = 1;\n/// b();\n//! c;\n//! d;\n"), Vec::<usize>::new());
    let inline = "fn a() {}\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod more {\n}\n";
    let source = Source { path: top().join("src/x/y.rs"), text: inline.into() };
    assert_eq!(source.without_tests().lines().count(), 3);
    assert_eq!(source.modules(), ["x", "y"]);
    assert!(rooms().contains(&"proxy".to_owned()));
}
