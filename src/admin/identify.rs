//! Who sent a request: by the Unix socket, by the token, by name and password, by a session's cookie, or by the
//! word of a front proxy. What somebody states decides alone: a wrong password is not mended by a cookie.

use std::net::SocketAddr;

use base64::Engine as _;
use http::header::{AUTHORIZATION, HeaderMap};
use http::{Extensions, StatusCode};
use zeroize::Zeroizing;

use super::access::{Role, Who};
use super::password::TooMany;
use super::server::{Door, Shared};
use super::socket::SocketUser;
use crate::rest::{Problem, same_site};

/// The other end of a connection to a port.
#[derive(Debug, Clone, Copy)]
pub(super) struct From(pub(super) SocketAddr);

/// How somebody proved himself, as far as it matters.
pub(super) struct Proof {
    pub(super) who: Option<Who>,
    /// By what a browser sends along by itself: only its own page may change something then.
    pub(super) by_cookie: bool,
}

/// Who it is; none if he proves nothing.
pub(super) async fn identify(
    shared: &Shared,
    door: Door,
    fields: &HeaderMap,
    extensions: &Extensions,
) -> Result<Proof, Problem> {
    let plainly = |who| Proof { who, by_cookie: false };
    if door == Door::Socket {
        let name = extensions.get::<SocketUser>().map_or("socket".to_owned(), SocketUser::name);
        return Ok(plainly(Some(Who { name, role: Role::Admin })));
    }
    if shared.token.admits(fields) {
        return Ok(plainly(Some(Who::of_token())));
    }
    if fields.contains_key(AUTHORIZATION) {
        return by_password(shared, fields).await.map(plainly);
    }
    if let Some(who) = by_front_proxy(shared, fields, extensions) {
        return Ok(plainly(Some(who)));
    }
    // a page of another port of this host is of the same site, and gets the cookie sent along
    let foreign = fields.get_all("sec-fetch-site").iter().any(|site| site != "same-origin" && site != "none");
    let who = if foreign { None } else { shared.sessions.find(fields) };
    Ok(Proof { by_cookie: who.is_some(), who })
}

/// Whether the browser says that the node's own page sent this.
pub(super) fn is_own_page(fields: &HeaderMap, host: &str) -> bool {
    let says =
        fields.contains_key("origin") || fields.get("sec-fetch-site").is_some_and(|it| it == "same-origin");
    says && same_site(fields, host)
}

async fn by_password(shared: &Shared, fields: &HeaderMap) -> Result<Option<Who>, Problem> {
    let Some((name, password)) = basic(fields) else { return Ok(None) };
    password_of(shared, &name, &password).await
}

/// Who has this name and password.
pub(super) async fn password_of(shared: &Shared, name: &str, password: &str) -> Result<Option<Who>, Problem> {
    shared.passwords.who(name, password).await.map_err(|TooMany| {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-tries", "Too many wrong passwords")
            .detail("this name was tried too often")
            .hint("wait a minute, or use the admin token")
    })
}

/// Name and password of the Basic scheme (RFC 7617).
fn basic(fields: &HeaderMap) -> Option<(String, Zeroizing<String>)> {
    let field = fields.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, value) = field.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = Zeroizing::new(base64::engine::general_purpose::STANDARD.decode(value.trim()).ok()?);
    let text = Zeroizing::new(std::str::from_utf8(&decoded).ok()?.to_owned());
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), Zeroizing::new(password.to_owned())))
}

fn by_front_proxy(shared: &Shared, fields: &HeaderMap, extensions: &Extensions) -> Option<Who> {
    let field = shared.config.trusted_field()?;
    let from = extensions.get::<From>()?.0.ip().to_canonical();
    if !shared.config.trusted_from.iter().any(|net| net.contains(&from)) {
        return None;
    }
    let mut named = fields.get_all(field).iter();
    let (Some(name), None) = (named.next(), named.next()) else { return None };
    let name = name.to_str().ok().filter(|name| !name.is_empty() && name.len() <= 256)?;
    let user = shared.config.users.iter().find(|user| user.name == name);
    let role = user.map(|user| user.role).or(shared.config.trusted_role.role())?;
    Some(Who { name: name.to_owned(), role })
}
