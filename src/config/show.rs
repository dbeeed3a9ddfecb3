//! The effective configuration as text: every value, and where it came from. Passwords in URLs are cut out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::load::Loaded;
use super::{Config, Source};

/// The configuration as TOML, each line with its source as a comment.
pub fn show(loaded: &Loaded) -> Result<String, toml::ser::Error> {
    let text = toml::to_string(&redacted(&loaded.config))?;
    let mut out = String::new();
    let (mut section, mut listed) = (String::new(), BTreeMap::<&str, usize>::new());
    let width = text.lines().map(|line| line.chars().count()).max().unwrap_or_default().min(56);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]")) {
            let at = listed.entry(name).or_default();
            section = format!("{name}[{at}].");
            *at += 1;
        } else if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{name}.");
        }
        let source = line.split_once(" = ").map(|(key, _)| loaded.sources.of(&format!("{section}{key}")));
        let written = match source {
            Some(source @ (Source::At(_) | Source::Found(_))) => writeln!(out, "{line:width$}  # {source}"),
            Some(Source::Default) => writeln!(out, "{line:width$}  # default"),
            None => writeln!(out, "{line}"),
        };
        // A String takes everything.
        written.unwrap_or_default();
    }
    Ok(out)
}

/// A configuration without the passwords its URLs may hold.
pub fn redacted(config: &Config) -> Config {
    let mut config = config.clone();
    // The parent proxy hides its password by itself.
    for user in config.admin.users.iter_mut().filter(|user| !user.password.is_empty()) {
        user.password = "…".to_owned();
    }
    config.index.catalogue = without_password(&config.index.catalogue);
    config
}

fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let path = path.split_once('?').map_or(path.to_owned(), |(path, _)| format!("{path}?…"));
    match authority.rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split_once(':').map_or(user, |(name, _)| name);
            format!("{scheme}://{name}:…@{host}{path}")
        }
        None => format!("{scheme}://{authority}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_cut_out() {
        for (url, shown) in [
            ("http://proxy:3128", "http://proxy:3128"),
            ("http://me:geheim@proxy:3128/", "http://me:…@proxy:3128/"),
            ("http://me:ge@heim@proxy:3128", "http://me:…@proxy:3128"),
            ("postgres://db/larder?password=geheim", "postgres://db/larder?…"),
            ("", ""),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
