//! Settings of others that say the same thing already: they are named, and left as they are.

/// pip: an index of its own, in whatever section.
pub(super) fn pip(text: &str) -> Option<String> {
    let key = |line: &str| {
        line.split(['=', ':']).next().unwrap_or("").trim().to_ascii_lowercase().replace('_', "-")
    };
    let taken = text.lines().filter(|line| !is_comment(line)).map(key);
    let taken = taken.into_iter().find(|key| key == "index-url" || key == "trusted-host");
    taken.map(|key| format!("it sets `{key}` already"))
}

/// npm: a registry of its own. One for a scope is another matter.
pub(super) fn npm(text: &str) -> Option<String> {
    let is_it = |line: &&str| line.split('=').next().is_some_and(|key| key.trim() == "registry");
    text.lines()
        .find(|line| !is_comment(line) && is_it(line))
        .map(|_| "it sets `registry` already".to_owned())
}

/// cargo: another source in the place of crates.io.
pub(super) fn cargo(text: &str) -> Option<String> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(_) => return Some("it is no valid TOML, so that nothing can be added safely".to_owned()),
    };
    let sources = table.get("source")?.as_table();
    let taken = ["crates-io", "larder"]
        .into_iter()
        .find(|name| sources.is_none_or(|table| table.contains_key(*name)));
    taken.map(|name| format!("it has a [source.{name}] already"))
}

/// Shells: the same variables.
pub(super) fn env(text: &str) -> Option<String> {
    sets(text, "http_proxy")
}

/// Shells: the same variables.
pub(super) fn hf(text: &str) -> Option<String> {
    sets(text, "HF_ENDPOINT")
}

fn sets(text: &str, variable: &str) -> Option<String> {
    let start = format!("{variable}=");
    let words = text.lines().filter(|line| !is_comment(line)).flat_map(str::split_whitespace);
    words.into_iter().find(|word| word.starts_with(&start)).map(|_| format!("it sets `{variable}` already"))
}

/// podman: another entry for the same registry, which ours would replace.
pub(super) fn podman(text: &str, registry: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let entries = table.get("registry")?.as_array()?;
    let is_it = |entry: &&toml::Value| {
        ["prefix", "location"]
            .iter()
            .any(|key| entry.get(key).and_then(toml::Value::as_str) == Some(registry))
    };
    entries.iter().find(is_it).map(|_| format!("it has an entry for {registry}, which would no longer hold"))
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['#', ';']) || line.trim_start().starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_others_are_seen() {
        type Look = fn(&str) -> Option<String>;
        let rows: [(Look, &str, bool); 17] = [
            (pip, "[global]\ncert = /x\n", false),
            (pip, "[global]\n# index-url = x\nextra-index-url = x\n", false),
            (pip, "[install]\nindex_url: x\n", true),
            (pip, "[global]\nTrusted-Host = x\n", true),
            (npm, "@corp:registry=https://x\n//x/:_authToken=y\n", false),
            (npm, "registry = https://x\n", true),
            (npm, "; registry=x\n", false),
            (cargo, "[net]\noffline = true\n", false),
            (cargo, "[source.vendored]\ndirectory = \"x\"\n", false),
            (cargo, "[source.crates-io]\nreplace-with = \"x\"\n", true),
            (cargo, "source = 1\n", true),
            (cargo, "[", true),
            (env, "# http_proxy=x\nno_proxy=x\n", false),
            (env, "export http_proxy=x\n", true),
            (env, "if true; then http_proxy=x; fi\n", true),
            (hf, "export HF_ENDPOINT=x\n", true),
            (
                |text| podman(text, "docker.io"),
                "[[registry]]\nprefix = \"docker.io\"\nlocation = \"m\"\n",
                true,
            ),
        ];
        for (look, text, seen) in rows {
            assert_eq!(look(text).is_some(), seen, "{text}");
        }
        assert!(podman("[[registry]]\nlocation = \"quay.io\"\n", "docker.io").is_none());
    }
}
