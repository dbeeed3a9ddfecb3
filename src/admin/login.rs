//! The session of the page: `POST /api/v1/session` logs in with the token or with name and password, `DELETE`
//! logs out, `GET` says who one is. The cookie is of no use to other sites' pages.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use serde::Deserialize;

use super::access::{Caller, Who};
use super::control::{Answer, bad_request};
use super::gate::token_needed;
use super::identify::password_of;
use super::server::Shared;
use crate::rest::Problem;

/// What somebody logs in with: the token, or name and password.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    password: Option<String>,
}

pub(super) async fn open(
    State(shared): State<Arc<Shared>>,
    body: Result<Json<Login>, JsonRejection>,
) -> Answer {
    let Json(login) = body.map_err(|error| bad_request(error.body_text()))?;
    let who = match (&login.token, &login.name, &login.password) {
        (Some(token), None, None) => shared.token.is(token.trim()).then(Who::of_token),
        (None, Some(name), Some(password)) => password_of(&shared, name, password).await?,
        _ => return Err(bad_request("log in with either `token`, or `name` and `password`".to_owned())),
    };
    let Some(who) = who else {
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "login-refused", "That is not right")
            .detail("no administrator has this token, or this name and password"));
    };
    let no_random = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "There are no random bytes");
    let value = shared.sessions.open(who.clone()).ok_or_else(no_random)?;
    with_cookie(&shared, Some(&value), Json(who).into_response())
}

pub(super) async fn show(Extension(Caller(who)): Extension<Caller>) -> Response {
    who.map_or_else(token_needed, |who| Json(who).into_response())
}

pub(super) async fn close(State(shared): State<Arc<Shared>>, fields: HeaderMap) -> Answer {
    shared.sessions.close(&fields);
    with_cookie(&shared, None, StatusCode::NO_CONTENT.into_response())
}

fn with_cookie(shared: &Shared, value: Option<&str>, mut response: Response) -> Answer {
    let cookie = shared.sessions.set_cookie(value, shared.is_secure());
    let mut cookie = HeaderValue::try_from(cookie).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "The cookie cannot be written")
    })?;
    cookie.set_sensitive(true);
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}
