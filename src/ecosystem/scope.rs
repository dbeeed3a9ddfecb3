//! Whose word counts for which URL, and the spelling under which it is looked up.

use crate::http::{Scheme, Target};

/// An index and the hosts its files are on, both run by one operator; all of them https at its own port. A name that
/// begins with a dot stands for every host below it.
const PAIRS: [(&str, &[&str]); 8] = [
    ("pypi.org", &["files.pythonhosted.org"]),
    ("test.pypi.org", &["test-files.pythonhosted.org"]),
    ("index.crates.io", &["static.crates.io", "crates.io"]),
    ("registry.yarnpkg.com", &["registry.npmjs.org"]),
    ("huggingface.co", &[".huggingface.co", ".hf.co"]),
    ("registry-1.docker.io", &["production.cloudflare.docker.com"]),
    ("ghcr.io", &["pkg-containers.githubusercontent.com"]),
    ("quay.io", &[".quay.io"]),
];

/// Whether what `by` states may speak for `of`: the same origin (RFC 6454), or a pair of the table.
pub fn speaks_for(by: &Target, of: &Target) -> bool {
    let same = by.scheme() == of.scheme() && by.host() == of.host() && by.port() == of.port();
    let plain_https =
        |target: &Target| target.scheme() == Scheme::Https && target.port() == Scheme::Https.default_port();
    same || (plain_https(by) && plain_https(of) && is_pair(by.host(), of.host()))
}

fn is_pair(index: &str, host: &str) -> bool {
    let is_host = |known: &&str| if known.starts_with('.') { host.ends_with(*known) } else { host == *known };
    PAIRS.iter().any(|(name, hosts)| *name == index && hosts.iter().any(is_host))
}

/// The spelling under which statements of a target are kept: what an index calls `a+b` is asked for as `a%2bb` by
/// one program and as it stands by another. Escapes of characters that need none are undone, the others in upper
/// case (RFC 3986 section 6.2.2), single dots taken out. Only statements are looked up so: what is stored has the URL
/// exactly as it came.
pub fn spelling(target: &Target) -> Target {
    let (path, query) = target.path().split_once('?').map_or((target.path(), None), |(p, q)| (p, Some(q)));
    let kept: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    let mut spelled = respelled(&kept.join("/"));
    if let Some(query) = query {
        spelled.push('?');
        spelled.push_str(query);
    }
    Target::new(target.scheme(), &target.authority(), &spelled).unwrap_or_else(|_unlikely| target.clone())
}

fn respelled(path: &str) -> String {
    let mut spelled = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        spelled.push_str(before);
        let byte = after.get(..2).filter(|hex| super::is_hex(hex, 2));
        match byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                if is_plain(byte) {
                    spelled.push(char::from(byte));
                } else {
                    spelled.push_str(&format!("%{byte:02X}"));
                }
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                spelled.push('%');
                rest = after;
            }
        }
    }
    spelled.push_str(rest);
    spelled
}

/// Whether a byte stands in a part of a path as it is (RFC 3986 section 3.3).
pub(super) const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
        )
}

/// The name of a file below a folder as a path: what cannot stand in one is escaped. None if the name leads out of
/// the folder.
pub(super) fn path_of_name(folder: &str, name: &str) -> Option<String> {
    let mut parts = name.split('/').filter(|part| *part != ".").peekable();
    let mut path = folder.to_owned();
    parts.peek()?;
    while let Some(part) = parts.next() {
        if part.is_empty() || part == ".." {
            return None;
        }
        for byte in part.bytes() {
            if is_plain(byte) {
                path.push(char::from(byte));
            } else {
                path.push_str(&format!("%{byte:02X}"));
            }
        }
        if parts.peek().is_some() {
            path.push('/');
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(url: &str) -> Target {
        Target::from_uri(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn who_speaks_for_whom() {
        for (by, of, speaks) in [
            ("http://h/a", "http://h/b", true),
            ("https://h/a", "https://h:443/b", true),
            ("https://h:444/a", "https://h:444/b", true),
            // in clear for https, and the other way round
            ("http://h/a", "https://h/a", false),
            ("https://h/a", "http://h/a", false),
            ("http://h:443/a", "https://h/a", false),
            // another host, another port
            ("https://h/a", "https://i/a", false),
            ("https://h/a", "https://h:444/a", false),
            ("https://h/a", "https://x.h/a", false),
            // the table
            ("https://pypi.org/simple/x/", "https://files.pythonhosted.org/packages/x.whl", true),
            ("https://files.pythonhosted.org/x", "https://pypi.org/simple/x/", false),
            ("http://pypi.org/simple/x/", "https://files.pythonhosted.org/packages/x.whl", false),
            ("http://pypi.org/simple/x/", "http://files.pythonhosted.org/packages/x.whl", false),
            ("https://pypi.org:444/simple/x/", "https://files.pythonhosted.org/packages/x.whl", false),
            ("https://evil.org/simple/x/", "https://files.pythonhosted.org/packages/x.whl", false),
            ("https://notpypi.org/x", "https://files.pythonhosted.org/x", false),
            ("https://index.crates.io/config.json", "https://static.crates.io/crates/x", true),
            ("https://huggingface.co/x", "https://cdn-lfs-us-1.hf.co/x", true),
            ("https://huggingface.co/x", "https://hf.co/x", false),
            ("https://huggingface.co/x", "https://evilhf.co/x", false),
        ] {
            assert_eq!(speaks_for(&target(by), &target(of)), speaks, "{by} of {of}");
        }
    }

    #[test]
    fn one_spelling_for_what_means_the_same() {
        for (one, spelled) in [
            ("http://h/a%2bb", "http://h/a+b"),
            ("http://h/a+b", "http://h/a+b"),
            ("http://h/%7Ex", "http://h/~x"),
            ("http://h/x_1%253a2.deb", "http://h/x_1%253a2.deb"),
            ("http://h/@s%2fn", "http://h/@s%2Fn"),
            ("http://h/./a/./b", "http://h/a/b"),
            ("http://h/a%20b%zz%4", "http://h/a%20b%zz%4"),
            ("http://h/a?x=%2b&./", "http://h/a?x=%2b&./"),
        ] {
            assert_eq!(spelling(&target(one)).url(), spelled, "{one}");
        }
    }

    #[test]
    fn names_become_paths_inside_their_folder() {
        for (name, path) in [
            ("a.iso", Some("/f/a.iso")),
            ("./a.iso", Some("/f/a.iso")),
            ("d/a b#?%.iso", Some("/f/d/a%20b%23%3F%25.iso")),
            ("x_1%3a2_all.deb", Some("/f/x_1%253a2_all.deb")),
            ("\u{e9}", Some("/f/%C3%A9")),
            ("../a", None),
            ("d/../../a", None),
            ("/etc/passwd", None),
            ("a//b", None),
            ("", None),
            ("..", None),
        ] {
            assert_eq!(path_of_name("/f/", name).as_deref(), path, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_spelling_is_spelled_like_itself(path in "/([a-z0-9./%~+]|%[0-9a-fA-F]{2}){0,40}") {
            let target = target(&format!("http://h{path}"));
            let once = spelling(&target);
            // an escape may become visible when another one is undone: never a slash or a question mark
            prop_assert_eq!(once.path().contains('?'), target.path().contains('?'));
            prop_assert_eq!(spelling(&once).origin(), once.origin());
        }

        #[test]
        fn no_name_leads_out(name in "[./a-z%\\\\]{0,20}") {
            if let Some(path) = path_of_name("/f/", &name) {
                prop_assert!(path.starts_with("/f/") && !path.split('/').any(|part| part == ".."));
            }
        }
    }
}
