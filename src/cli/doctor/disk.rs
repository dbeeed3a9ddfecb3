//! How fast the cache's disk is, and who may read what nobody else should.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Report;
use crate::clock::Clock;
use crate::config::Config;
use crate::unit::ByteSize;

/// What is written to find out.
const SAMPLE: usize = 16 << 20;
/// A disk below this holds up what comes over a LAN: bytes a second.
const SLOW: u64 = 20 << 20;

/// Writes a little and waits until it is on the disk.
pub(super) fn speed(report: &mut Report, config: &Config, clock: &dyn Clock) {
    let folder = &config.cache.dir;
    let about = "disk speed";
    if !folder.exists() {
        return;
    }
    match measure(folder, clock) {
        Ok(passed) => {
            let rate = u128::try_from(SAMPLE).unwrap_or(0) * 1000 / passed.as_millis().max(1);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            let what = format!("{}/s to {}, synced", ByteSize(rate), folder.display());
            if rate < SLOW {
                report.warn(about, what, "downloads wait for it; put cache.dir on a faster disk");
            } else {
                report.ok(about, what);
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let what = format!("not measured: you may not write to {}", folder.display());
            report.warn(about, what, "run it as the service's user or as root");
        }
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            let what = format!("not measured: {} is full", folder.display());
            report.fail(about, what, "make room on that filesystem, `larder gc --to SIZE` in the cache");
        }
        Err(error) => report.fail(
            about,
            format!("{}: {error}", folder.display()),
            "whatever the cache needs, it needs a folder that can be written: see the system's log for the disk",
        ),
    }
}

fn measure(folder: &Path, clock: &dyn Clock) -> std::io::Result<Duration> {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    let began = clock.instant();
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let piece = vec![0x5a; 1 << 20];
        for _ in 0..SAMPLE / piece.len() {
            file.write_all(&piece)?;
        }
        file.sync_all()
    })();
    let passed = clock.instant().saturating_duration_since(began);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => written.map(|()| passed),
    }
}

/// Files that only the daemon's user should read.
pub(super) fn modes(report: &mut Report, config: &Config) {
    let private = [
        config.token_file(),
        config.state_dir.join("identity.key"),
        config.state_dir.join("state.db"),
        config.secret_file.clone(),
        config.admin.tls_key.clone(),
        PathBuf::from("/etc/credstore/larder.secret"),
    ];
    let mut looked = 0;
    for path in private.iter().filter(|path| !path.as_os_str().is_empty()) {
        let Ok(meta) = fs::metadata(path) else { continue };
        looked += 1;
        let hidden = path
            .parent()
            .and_then(|folder| fs::metadata(folder).ok())
            .is_some_and(|it| it.mode() & 0o005 == 0);
        if meta.mode() & 0o004 != 0 && !hidden {
            let what =
                format!("{} can be read by everybody (mode {:o})", path.display(), meta.mode() & 0o777);
            report.fail("file modes", what, &format!("chmod 600 {}", path.display()));
        }
        if meta.mode() & 0o002 != 0 {
            let what = format!("{} can be written by everybody", path.display());
            report.fail("file modes", what, &format!("chmod 600 {}", path.display()));
        }
    }
    if !report.has_about("file modes") && looked > 0 {
        report.ok("file modes", format!("{looked} private, read by their owner alone"));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::cli::Exit;
    use crate::clock::SystemClock;

    #[test]
    fn a_token_for_everybody_is_found_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut config = Config { state_dir: folder.path().to_owned(), ..Config::default() };
        config.cache.dir = folder.path().join("cache");
        fs::create_dir(&config.cache.dir).unwrap();
        fs::write(config.token_file(), "token").unwrap();
        for (mode, worst) in [(0o600, Exit::Done), (0o644, Exit::Failed)] {
            fs::set_permissions(config.token_file(), fs::Permissions::from_mode(mode)).unwrap();
            let mut report = Report::default();
            modes(&mut report, &config);
            assert_eq!(report.worst(), worst, "{mode:o}");
        }
        let mut report = Report::default();
        speed(&mut report, &config, &SystemClock);
        assert!(report.has_about("disk speed"));
        assert_eq!(fs::read_dir(&config.cache.dir).unwrap().count(), 0);
    }
}
