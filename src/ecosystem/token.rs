//! Answers that are keys: what a registry's token service hands out is for the client that asked.

use super::path_of;
use crate::http::Target;

/// Whether a target hands out tokens of a container registry (`GET …/token?service=…`, `…/auth?service=…`): its
/// answers look like any public document, and are never kept.
pub fn gives_tokens(target: &Target) -> bool {
    let Some((_, query)) = target.path().split_once('?') else { return false };
    let named = matches!(path_of(target).rsplit('/').next(), Some("token" | "auth"));
    named && query.split('&').any(|parameter| parameter.starts_with("service="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_services_are_known_by_their_question() {
        for (url, want) in [
            ("https://auth.docker.io/token?service=registry.docker.io&scope=repository:a/b:pull", true),
            ("https://h/jwt/auth?service=container_registry&scope=repository:a:pull", true),
            ("https://h/service/token?scope=x&service=harbor-registry", true),
            ("https://h/token?account=me&client_id=docker&service=r", true),
            ("https://h/token", false),
            ("https://h/token?service", false),
            ("https://h/files/token.tar?service=r", false),
            ("https://h/v2/a/blobs/sha256:0?service=r", false),
        ] {
            let target = Target::from_uri(&url.parse().unwrap()).unwrap();
            assert_eq!(gives_tokens(&target), want, "{url}");
        }
    }
}
