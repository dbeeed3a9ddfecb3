//! `[[rule]]`: what the operator decides for URLs of a pattern.
//!
//! The first rule whose pattern matches holds; where none does, the plain rules of RFC 9111. A rule may make
//! things fresh longer and keep them out of the store or from neighbours, but never makes one user's answer
//! another's: `Authorization`, `Set-Cookie` and `private` are stronger than `force`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::glob;
use crate::http::Target;
use crate::unit::Span;

/// How the answers of a rule's URLs are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Caching {
    /// By RFC 9111.
    #[default]
    Default,
    /// Not at all.
    Never,
    /// Fresh for the rule's `ttl`, whatever the origin says of caching in general.
    Force,
}

/// A pattern on `scheme://host[:port]/path`, in which `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pattern(String);

/// Why a pattern is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It could match nothing, or it is not clear what.
    #[error("a pattern is a URL such as `https://*.example.org/*`, or begins with `*`")]
    Shape,
    /// The query is never looked at.
    #[error("a pattern ends before the `?`: the query is not matched (see `ignore_query`)")]
    Query,
}

/// One `[[rule]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which URLs it is for; "*" stands for any characters, on scheme://host[:port]/path.
    #[serde(rename = "match")]
    pub matches: Pattern,
    /// "default" (RFC 9111), "never" or "force".
    #[serde(default)]
    pub cache: Caching,
    /// How long things are fresh with "force" (1d where it is not given), or where the origin says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// How long 404 and 410 are kept where the origin says nothing.
    #[serde(default)]
    pub negative_ttl: Span,
    /// Whether neighbours may have it.
    #[serde(default = "yes")]
    pub share: bool,
    /// Names of query parameters that are not part of a URL's identity; "*" stands for any characters.
    #[serde(default)]
    pub ignore_query: Vec<String>,
}

/// All rules, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Rule>", into = "Vec<Rule>")]
pub struct Rules {
    list: Vec<Rule>,
    otherwise: Rule,
}

impl Rules {
    /// The rule for a target: the first that matches, else the plain one.
    pub fn for_target(&self, target: &Target) -> &Rule {
        self.list.iter().find(|rule| rule.matches.is_of(target)).unwrap_or(&self.otherwise)
    }

    /// The rules that were written, in their order.
    pub fn written(&self) -> &[Rule] {
        &self.list
    }
}

impl From<Vec<Rule>> for Rules {
    fn from(list: Vec<Rule>) -> Self {
        Self { list, otherwise: Rule::default() }
    }
}

impl From<Rules> for Vec<Rule> {
    fn from(rules: Rules) -> Self {
        rules.list
    }
}

impl Default for Rule {
    /// Everything, by RFC 9111.
    fn default() -> Self {
        Self {
            matches: Pattern("*".to_owned()),
            cache: Caching::Default,
            ttl: None,
            negative_ttl: Span::default(),
            share: true,
            ignore_query: Vec::new(),
        }
    }
}

impl Rule {
    /// How long its things are fresh whatever the origin says; none unless it says "force".
    pub(super) fn forced_ttl(&self) -> Option<Duration> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        (self.cache == Caching::Force).then(|| self.ttl.map_or(DAY, Duration::from))
    }
}

impl Pattern {
    /// Reads a pattern; scheme and host in any case.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.contains('?') {
            return Err(PatternError::Query);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return if text.starts_with('*') { Ok(Self(text.to_owned())) } else { Err(PatternError::Shape) };
        };
        if scheme.is_empty() || rest.is_empty() || scheme.contains('/') {
            return Err(PatternError::Shape);
        }
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        Ok(Self(format!("{}://{}{path}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())))
    }

    /// The pattern as it is matched.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a target is of this pattern, with or without its port written.
    pub fn is_of(&self, target: &Target) -> bool {
        let path = target.path().split('?').next().unwrap_or("/");
        let scheme = target.scheme().as_str();
        glob::matches(&self.0, &format!("{}{path}", target.origin()))
            || glob::matches(&self.0, &format!("{scheme}://{}:{}{path}", target.host(), target.port()))
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Deserialize)]
    struct File {
        #[serde(default)]
        rule: Rules,
    }

    fn rules(toml: &str) -> Rules {
        toml::from_str::<File>(toml).unwrap().rule
    }

    fn target(url: &str) -> Target {
        Target::from_uri(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn patterns_match_scheme_host_port_and_path() {
        for (pattern, url, want) in [
            ("https://*.example.org/*", "https://a.example.org/x?y", true),
            ("https://*.example.org/*", "https://example.org/x", false),
            ("https://*.example.org/*", "http://a.example.org/x", false),
            ("HTTPS://A.Example.ORG/X*", "https://a.example.org/X1", true),
            ("https://a/x", "https://a/X", false),
            ("https://a/*", "https://a:443/x", true),
            ("https://a:443/*", "https://a/x", true),
            ("https://a/*", "https://a:444/x", false),
            ("https://a:*/*", "https://a:444/x", true),
            ("*://a/*", "http://a/", true),
            ("*", "http://a/", true),
            ("*.deb", "http://a/pool/x.deb?y", true),
            ("http://a/x", "http://a/x?query", true),
            ("http://[::1]:80/*", "http://[::1]/x", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().is_of(&target(url)), want, "{pattern} {url}");
        }
    }

    #[test]
    fn a_pattern_is_shown_as_it_is_matched() {
        assert_eq!(Pattern::new("HTTPS://A.Example.ORG/X*").unwrap().as_str(), "https://a.example.org/X*");
        assert_eq!(Pattern::new("*.Deb").unwrap().as_str(), "*.Deb");
    }

    #[test]
    fn patterns_that_could_match_nothing_are_refused() {
        for (pattern, want) in [
            ("", PatternError::Shape),
            ("example.org/*", PatternError::Shape),
            ("/pool/*", PatternError::Shape),
            ("://a", PatternError::Shape),
            ("http://", PatternError::Shape),
            ("http://a/x?*", PatternError::Query),
        ] {
            assert_eq!(Pattern::new(pattern), Err(want), "{pattern}");
        }
    }

    #[test]
    fn the_first_match_holds_and_the_rest_is_plain() {
        let rules = rules(
            r#"
            [[rule]]
            match = "http://a/never/*"
            cache = "never"
            [[rule]]
            match = "http://a/*"
            cache = "force"
            ttl = "7d"
            negative_ttl = "10s"
            share = false
            ignore_query = ["sig", "X-Amz-*"]
            "#,
        );
        assert_eq!(rules.for_target(&target("http://a/never/x")).cache, Caching::Never);
        let forced = rules.for_target(&target("http://a/x"));
        assert_eq!(forced.forced_ttl(), Some(Duration::from_secs(7 * 86_400)));
        assert_eq!(forced.negative_ttl.0, Duration::from_secs(10));
        assert!(!forced.share);
        assert_eq!(forced.ignore_query, ["sig", "X-Amz-*"]);
        assert_eq!(rules.for_target(&target("http://b/x")), &Rule::default());
        assert_eq!(rules.written().len(), 2);
    }

    #[test]
    fn a_bare_rule_has_the_defaults() {
        let rules = rules("[[rule]]\nmatch = \"*\"");
        assert_eq!(rules.written(), [Rule::default()]);
        assert_eq!(Rule::default().forced_ttl(), None);
        let forced = Rule { cache: Caching::Force, ..Rule::default() };
        assert_eq!(forced.forced_ttl(), Some(Duration::from_secs(86_400)));
    }

    #[test]
    fn what_a_rule_does_not_know_is_refused() {
        for wrong in [
            "[[rule]]\nmatch = \"*\"\ntll = \"1d\"",
            "[[rule]]\ncache = \"never\"",
            "[[rule]]\nmatch = \"*\"\ncache = \"always\"",
            "[[rule]]\nmatch = \"*\"\nttl = \"soon\"",
            "[[rule]]\nmatch = \"a\"",
        ] {
            assert!(toml::from_str::<File>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_survive_serde() {
        let rules = rules("[[rule]]\nmatch = \"http://a/*\"\nttl = \"1d\"\nignore_query = [\"a\"]");
        let json = serde_json::to_string(&rules).unwrap();
        assert_eq!(serde_json::from_str::<Rules>(&json).unwrap(), rules);
    }

    proptest! {
        #[test]
        fn no_pattern_panics(text: String) {
            let _unused = Pattern::new(&text).map(|pattern| pattern.is_of(&target("http://a/b")));
        }
    }
}
