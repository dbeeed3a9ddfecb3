//! Where an answer came from, and how the links in it lead back to us.

use std::fmt::Write as _;

use super::preset::Preset;
use super::tag::Stamp;
use crate::digest::Digest;
use crate::http::Target;

/// The path below which requests for other servers come in, without the client's credentials.
pub(super) const ELSEWHERE: &str = "/m/@";

/// The part of a server that a door leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What the upstream speaks.
    pub(super) preset: Preset,
    /// Where the upstream's paths begin; none behind `/m/@/`, where nothing is one's own.
    pub(super) base: Option<Target>,
    /// The path of ours in its stead.
    pub(super) here: String,
    /// The digest that the thing must have, wherever it turns out to lie.
    pub(super) digest: Option<Digest>,
}

/// The way back for one client, who knows us by one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    pub(super) place: Place,
    /// `http://host[:port]`.
    pub(super) root: String,
    /// What relative references of the document are seen from.
    pub(super) from: Target,
}

impl Place {
    /// What the upstream speaks.
    pub const fn preset(&self) -> Preset {
        self.preset
    }

    /// Whether links inside the answer for this target may have to be led back.
    pub fn may_hold_links(&self, target: &Target) -> bool {
        self.inside(target).is_some_and(|path| self.preset.may_hold_links(path))
    }

    /// For a client that knows us by this host name, from this target.
    pub fn links(&self, host: &str, from: &Target) -> Links {
        Links { place: self.clone(), root: format!("http://{host}"), from: from.clone() }
    }

    /// The path seen from the base, where the target lies in it.
    fn inside<'a>(&self, target: &'a Target) -> Option<&'a str> {
        let base = self.base.as_ref().filter(|base| base.origin() == target.origin())?;
        let rest = target.path().strip_prefix(base.path().trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with(['/', '?'])).then_some(rest)
    }

    /// The path of ours that leads to a target.
    fn path_to(&self, to: &Target) -> String {
        if let Some(rest) = self.inside(to) {
            return format!("{}{rest}", self.here);
        }
        let beyond = format!("{}/{}{}", to.scheme().as_str(), to.authority(), to.path());
        let same_server = self.base.as_ref().is_some_and(|base| base.origin() == to.origin());
        if same_server || self.preset.sends_credentials_on() {
            return format!("/{beyond}");
        }
        let digest = self.digest.map_or_else(String::new, |digest| digest.to_string());
        format!("{ELSEWHERE}{digest}/{beyond}")
    }
}

impl Links {
    /// What to write in the place of a reference; none where it may stay as it is.
    pub fn lead(&self, reference: &str) -> Option<String> {
        let trimmed = reference.trim();
        let has_scheme = trimmed.split(['/', '?', '#']).next().is_some_and(|first| first.contains(':'));
        if trimmed.is_empty() || trimmed.starts_with('#') || (has_scheme && !is_web(trimmed)) {
            return None;
        }
        let to = self.from.join(trimmed).ok()?;
        let mut led = self.place.path_to(&to);
        let ends_with_host =
            trimmed.split_once("//").is_some_and(|(_, rest)| !rest.contains(['/', '?', '#']));
        if ends_with_host {
            // programs put paths behind it
            led.truncate(led.trim_end_matches('/').len());
        }
        if !has_scheme && !trimmed.starts_with("//") {
            let seen = self.seen_from_here(trimmed);
            if seen.as_deref() == Some(led.as_str()) {
                return None;
            }
        } else {
            led.insert_str(0, &self.root);
        }
        if let Some((_, fragment)) = trimmed.split_once('#') {
            // a String takes everything
            write!(led, "#{fragment}").unwrap_or_default();
        }
        Some(led)
    }

    /// What tags of documents rewritten this way carry.
    pub fn stamp(&self) -> Stamp {
        let base = self.place.base.as_ref().map(Target::url).unwrap_or_default();
        Stamp::new(&self.root, &self.place.here, &base)
    }

    /// The same with references seen from another address, as `<base href>` says.
    pub(super) fn seen_from(&mut self, reference: &str) {
        if let Ok(from) = self.from.join(reference.trim()) {
            self.from = from;
        }
    }

    /// The path that a client makes of a relative reference by itself.
    fn seen_from_here(&self, reference: &str) -> Option<String> {
        let own = Target::new(self.from.scheme(), "here", &self.place.path_to(&self.from)).ok()?;
        own.join(reference).ok().map(|target| target.path().to_owned())
    }

    /// A `Link` value (RFC 8288) with its targets led back; none where nothing changes.
    pub fn lead_link_field(&self, value: &str) -> Option<String> {
        let mut led = String::with_capacity(value.len());
        let (mut rest, mut changed) = (value, false);
        while let Some((before, behind)) = rest.split_once('<') {
            let (reference, after) = behind.split_once('>')?;
            let new = self.lead(reference);
            changed |= new.is_some();
            led.push_str(before);
            led.push('<');
            led.push_str(new.as_deref().unwrap_or(reference));
            led.push('>');
            rest = after;
        }
        led.push_str(rest);
        changed.then_some(led)
    }

    /// A `WWW-Authenticate` value whose token service is named by a relative `realm`: seen from us that would be
    /// another service. One that is absolute stays: no password shall come through us that need not.
    pub fn lead_realm(&self, value: &str) -> Option<String> {
        let (before, behind) = value.split_once("realm=\"")?;
        let (realm, after) = behind.split_once('"')?;
        let is_bearer =
            value.trim_start().get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer "));
        if !is_bearer || realm.contains("://") || !realm.starts_with('/') {
            return None;
        }
        let to = self.from.join(realm).ok()?;
        Some(format!("{before}realm=\"{}{}\"{after}", self.root, self.place.path_to(&to)))
    }

    /// A `Set-Cookie` value that stays with this mirror: its path is led back, and it is for no other host.
    pub fn keep_cookie(&self, value: &str) -> String {
        let mut parts = value.split(';');
        let mut kept = parts.next().unwrap_or("").trim().to_owned();
        let mut path = None;
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "domain" => {}
                "path" => path = Some(value.trim()),
                _ => write!(kept, "; {}", part.trim()).unwrap_or_default(),
            }
        }
        let path = path.filter(|path| path.starts_with('/')).and_then(|path| self.from.join(path).ok());
        let led = path.map_or_else(|| self.place.path_to(&self.from), |to| self.place.path_to(&to));
        let led = led.split('?').next().unwrap_or("/").to_owned();
        // without a path of its own, a cookie is for the folder it was set from (RFC 6265 section 5.1.4)
        write!(kept, "; Path={}", if led.is_empty() { "/" } else { &led }).unwrap_or_default();
        kept
    }
}

fn is_web(reference: &str) -> bool {
    let scheme = reference.split(':').next().unwrap_or("");
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    web && reference.get(scheme.len()..).is_some_and(|rest| rest.starts_with("://"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(url: &str) -> Target {
        Target::from_uri(&url.parse().unwrap()).unwrap()
    }

    fn links(preset: Preset, base: &str, here: &str, from: &str) -> Links {
        let base = target(base);
        let base = Target::new(base.scheme(), &base.authority(), base.path().trim_end_matches('/')).unwrap();
        let place = Place { preset, base: Some(base), here: here.into(), digest: None };
        place.links("box:8098", &target(from))
    }

    #[test]
    fn links_lead_back_or_stay() {
        let page = "https://pypi.org/simple/pip/";
        for (reference, want) in [
            (
                "https://files.pythonhosted.org/packages/a.whl#sha256=00",
                Some("http://box:8098/m/@/https/files.pythonhosted.org/packages/a.whl#sha256=00"),
            ),
            ("https://pypi.org/simple/x/", Some("http://box:8098/m/pypi/simple/x/")),
            ("HTTPS://PyPI.org:443/simple/x/", Some("http://box:8098/m/pypi/simple/x/")),
            ("http://pypi.org/simple/x/", Some("http://box:8098/m/@/http/pypi.org/simple/x/")),
            ("//pypi.org/simple/x/?a=%2F", Some("http://box:8098/m/pypi/simple/x/?a=%2F")),
            ("/simple/x/", Some("/m/pypi/simple/x/")),
            ("/packages/a.whl#egg", Some("/m/pypi/packages/a.whl#egg")),
            ("../../packages/a.whl", None),
            ("../../../packages/a.whl", Some("/m/pypi/packages/a.whl")),
            ("a.whl", None),
            ("#top", None),
            ("", None),
            ("mailto:a@b", None),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("http:relative", None),
            (" https://pypi.org/x ", Some("http://box:8098/m/pypi/x")),
        ] {
            let led = links(Preset::Pypi, "https://pypi.org", "/m/pypi", page).lead(reference);
            assert_eq!(led.as_deref(), want, "{reference}");
        }
    }

    #[test]
    fn a_base_with_a_path_is_not_left() {
        let page = "http://index:81/root/pypi/+simple/pip/";
        let links = links(Preset::Pypi, "http://index:81/root/pypi/", "/m/own", page);
        for (reference, want) in [
            ("http://index:81/root/pypi/+f/a.whl", Some("http://box:8098/m/own/+f/a.whl")),
            ("http://index:81/root/pypi", Some("http://box:8098/m/own")),
            ("http://index:81/root/pypies/a.whl", Some("http://box:8098/http/index:81/root/pypies/a.whl")),
            ("/root/other/a.whl", Some("/http/index:81/root/other/a.whl")),
            ("../../+f/a.whl", None),
            ("../../../other/a.whl", Some("/http/index:81/root/other/a.whl")),
        ] {
            assert_eq!(links.lead(reference).as_deref(), want, "{reference}");
        }
    }

    #[test]
    fn programs_that_send_credentials_on_keep_them() {
        let links = links(
            Preset::Crates,
            "https://index.crates.io",
            "/m/crates",
            "https://index.crates.io/config.json",
        );
        assert_eq!(
            links.lead("https://static.crates.io/crates").as_deref(),
            Some("http://box:8098/https/static.crates.io/crates")
        );
    }

    #[test]
    fn a_digest_goes_along_to_another_server() {
        let mut links = links(Preset::Oci, "https://r", "/m/r", "https://r/v2/a/blobs/x");
        let digest = Digest::of(b"x");
        links.place.digest = Some(digest);
        let led = links.lead("https://cdn/blob?sig=1").unwrap();
        assert_eq!(led, format!("http://box:8098/m/@{digest}/https/cdn/blob?sig=1"));
    }

    #[test]
    fn fields_lead_back() {
        let links = links(Preset::Oci, "https://r", "/m/r", "https://r/v2/a/tags/list");
        assert_eq!(
            links
                .lead_link_field("</v2/a/tags/list?last=b&n=2>; rel=\"next\", <https://i/x>; rel=x")
                .as_deref(),
            Some("</m/r/v2/a/tags/list?last=b&n=2>; rel=\"next\", <http://box:8098/m/@/https/i/x>; rel=x")
        );
        assert_eq!(links.lead_link_field("<x"), None);
        for (value, want) in [
            ("Bearer realm=\"https://auth/token\",service=\"r\"", None),
            ("Basic realm=\"/token\"", None),
            (
                "Bearer realm=\"/token\",service=\"r\"",
                Some("Bearer realm=\"http://box:8098/m/r/token\",service=\"r\""),
            ),
        ] {
            assert_eq!(links.lead_realm(value).as_deref(), want, "{value}");
        }
        for (value, want) in [
            ("a=b; Path=/; Domain=r; HttpOnly", "a=b; HttpOnly; Path=/m/r/"),
            ("a=b", "a=b; Path=/m/r/v2/a/tags/list"),
            ("a=b; path=/v2/a", "a=b; Path=/m/r/v2/a"),
        ] {
            assert_eq!(links.keep_cookie(value), want, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_reference_panics_and_what_is_led_stays_with_us(reference in "\\PC{0,40}|(https?:|/|//|\\.\\.|\\?|#|h|:)*") {
            let links = links(Preset::Pypi, "https://h/b", "/m/x", "https://h/b/c/");
            if let Some(led) = links.lead(&reference) {
                prop_assert!(led.starts_with('/') || led.starts_with("http://box:8098/"), "{led}");
            }
            let _unused = (links.lead_link_field(&reference), links.lead_realm(&reference), links.keep_cookie(&reference));
        }
    }
}
