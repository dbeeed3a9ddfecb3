//! The `[intercept]` settings, and the host names in them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which https connections are opened, and what happens where a client does not like it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The hosts; none: every connection is a blind tunnel.
    pub hosts: Vec<HostPattern>,
    /// What a client that does not trust the authority gets the next time.
    pub on_refusal: OnRefusal,
}

/// What becomes of a client that refuses this machine's authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRefusal {
    /// The next time it gets the blind tunnel, so that it works.
    #[default]
    Tunnel,
    /// The next time it is asked again, so that it does not work until it trusts.
    Refuse,
}

/// A host name, `example.org`, or all names below one, `*.example.org`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPattern {
    domain: String,
    below: bool,
}

/// A text that is no [`HostPattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Every host there is.
    #[error(
        "\"*\" would be every site, and an authority for every site is what this must never be: name the hosts, such as \"*.example.org\""
    )]
    Everything,
    /// A star somewhere else than at the front.
    #[error("\"{0}\": a star stands at the front and for whole labels only, as in \"*.example.org\"")]
    Star(String),
    /// More than a host.
    #[error("\"{0}\" is more than a host: leave out scheme, port and path")]
    More(String),
    /// An address.
    #[error("\"{0}\" is an address, for which no certificate is made: name the host")]
    Address(String),
    /// A name in other letters than DNS has.
    #[error("\"{0}\": write the name as DNS has it, with xn-- for other letters")]
    Letters(String),
    /// No host name.
    #[error("\"{0}\" is no host name")]
    Name(String),
}

impl Config {
    /// The domains an authority has to vouch for, sorted, each once.
    pub fn domains(&self) -> Vec<String> {
        let mut domains: Vec<String> = self.hosts.iter().map(|host| host.domain.clone()).collect();
        domains.sort();
        domains.dedup();
        domains
    }

    /// The pattern that names this host (in lower case).
    pub fn named(&self, host: &str) -> Option<&HostPattern> {
        self.hosts.iter().find(|pattern| pattern.matches(host))
    }
}

impl HostPattern {
    /// Whether it names this host (in lower case).
    pub fn matches(&self, host: &str) -> bool {
        match host.strip_suffix(self.domain.as_str()) {
            Some("") => !self.below,
            Some(left) => self.below && left.len() > 1 && left.ends_with('.'),
            None => false,
        }
    }

    /// Whether it names everything below a single label, as `*.org` does.
    pub fn is_top_level(&self) -> bool {
        self.below && !self.domain.contains('.')
    }
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let own = || text.to_owned();
        if text == "*" || text == "*." {
            return Err(PatternError::Everything);
        }
        let (below, domain) = text.strip_prefix("*.").map_or((false, text), |domain| (true, domain));
        if domain.contains('*') {
            return Err(PatternError::Star(own()));
        }
        if domain.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return Err(PatternError::Address(own()));
        }
        if domain.contains([':', '/', '?', '@']) {
            return Err(PatternError::More(own()));
        }
        if !domain.is_ascii() {
            return Err(PatternError::Letters(own()));
        }
        let is_name = domain.len() <= 253 && domain.split('.').all(is_label);
        // A last label of digits makes it an address to many programs (WHATWG URL section 3.5).
        let last = domain.rsplit('.').next().unwrap_or_default();
        if !is_name || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(PatternError::Name(own()));
        }
        Ok(Self { domain: domain.to_ascii_lowercase(), below })
    }
}

/// One label of a name (RFC 1123 section 2.1), with the underscore that some sites have.
fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=63).contains(&label.len())
        && label.bytes().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.domain)
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_names_a_host_or_what_is_below() {
        for (text, host, names) in [
            ("example.org", "example.org", true),
            ("example.org", "a.example.org", false),
            ("example.org", "notexample.org", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "b.a.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("*.example.org", "notexample.org", false),
            ("*.Example.ORG", "a.example.org", true),
            ("localhost", "localhost", true),
            ("a_b.example.org", "a_b.example.org", true),
        ] {
            assert_eq!(pattern(text).matches(host), names, "{text} {host}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_told_why() {
        for (text, why) in [
            ("*", "every site"),
            ("*.", "every site"),
            ("a.*.org", "at the front"),
            ("*example.org", "at the front"),
            ("**.example.org", "at the front"),
            ("10.0.0.1", "address"),
            ("[::1]", "address"),
            ("::1", "address"),
            ("*.10.0.0.1", "address"),
            ("https://example.org", "leave out"),
            ("example.org:443", "leave out"),
            ("example.org/x", "leave out"),
            ("u@example.org", "leave out"),
            ("büro.example", "xn--"),
            ("", "no host name"),
            ("a..b", "no host name"),
            ("example.org.", "no host name"),
            ("-a.org", "no host name"),
            ("a b.org", "no host name"),
            ("127.1", "no host name"),
        ] {
            let error = text.parse::<HostPattern>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(format!("{}.org", "a".repeat(64)).parse::<HostPattern>().is_err());
        assert!(pattern("*.org").is_top_level() && !pattern("org").is_top_level());
    }

    #[test]
    fn the_authority_is_made_for_each_domain_once() {
        let hosts = ["*.b.org", "b.org", "a.org"].map(pattern).to_vec();
        let config = Config { hosts, ..Config::default() };
        assert_eq!(config.domains(), ["a.org", "b.org"]);
        assert_eq!(config.named("x.b.org").map(ToString::to_string).as_deref(), Some("*.b.org"));
        assert_eq!(config.named("c.org"), None);
    }

    proptest! {
        #[test]
        fn a_pattern_can_be_printed_and_read_again(text in "(\\*\\.)?[a-z][a-z0-9_-]{0,5}(\\.[a-z]{1,4}){0,3}") {
            if let Ok(pattern) = text.parse::<HostPattern>() {
                prop_assert_eq!(pattern.to_string().parse::<HostPattern>().unwrap(), pattern);
            }
        }

        #[test]
        fn no_text_panics(text: String, host: String) {
            if let Ok(pattern) = text.parse::<HostPattern>() {
                let _unused = pattern.matches(&host);
            }
        }
    }
}
