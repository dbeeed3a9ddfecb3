//! Whether interception can work: an authority for the hosts that are configured, which the system trusts.

use std::path::Path;

use super::Report;
use crate::cli::ca::{TrustStore, day, fits};
use crate::clock::Clock;
use crate::config::Config;
use crate::tls::LocalAuthority;

const AGAIN: &str = "run `larder ca install`";

pub(super) fn authority(report: &mut Report, config: &Config, clock: &dyn Clock) {
    let store = TrustStore::find(Path::new("/"), &config.state_dir);
    let wanted = !config.intercept.hosts.is_empty();
    let authority = match LocalAuthority::load(&config.state_dir) {
        Ok(Some(authority)) => authority,
        Ok(None) => {
            if wanted {
                report.warn("interception", "there is no authority: intercept.hosts are tunnelled", AGAIN);
            }
            return;
        }
        Err(error) => {
            if wanted {
                report.warn(
                    "interception",
                    error.to_string(),
                    "as root, or as the service's user: run `larder ca install`",
                );
            }
            return;
        }
    };
    if !wanted {
        report.warn(
            "interception",
            "there is an authority, but intercept.hosts names no host",
            "`larder ca remove` takes it out of the system and deletes it",
        );
    } else if !fits(config, &authority, clock.now()) {
        let made = authority.domains().join(", ");
        let until = day(authority.not_after());
        report.warn(
            "interception",
            format!(
                "the authority was made for {made}, until {until}; intercept.hosts names {}",
                config.intercept.domains().join(", ")
            ),
            AGAIN,
        );
    } else if !store.is_some_and(|store| store.trusts(authority.pem())) {
        report.warn(
            "interception",
            "the system does not trust the authority: programs refuse it once and are tunnelled then",
            AGAIN,
        );
    } else {
        report.ok(
            "interception",
            format!("of {}, until {}", authority.domains().join(", "), day(authority.not_after())),
        );
    }
}
