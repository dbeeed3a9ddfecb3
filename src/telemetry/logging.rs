//! The log: one subscriber for the process, whose level can be changed while it runs.
//!
//! Before the configuration is known, [`provisional`] writes warnings of this thread to standard error;
//! [`Logging::start`] then installs the real subscriber once. It fails if the level cannot be read or if the
//! process has a subscriber already. What is logged nowhere: secrets, tokens, cookies, query strings; user
//! addresses and URLs only at DEBUG, but for the one line that each download has at INFO, with its URL.

use std::io::IsTerminal as _;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use super::limiter::{Limiter, WINDOW};
use crate::clock::SharedClock;
use crate::shutdown::Shutdown;

/// The `[log]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// What is written: a level, or the filter syntax of `tracing` such as `info,larder::peer=debug`.
    pub level: String,
    /// How it is written.
    pub format: LogFormat,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// The journal where standard error leads there, else text.
    #[default]
    Auto,
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
    /// Fields for systemd's journal.
    Journald,
}

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter cannot be read.
    #[error(
        "`{level}` is not a log level: write error, warn, info, debug, trace, or a filter such as info,larder::peer=debug"
    )]
    Level {
        /// What was written.
        level: String,
    },
    /// No journal on this machine.
    #[error("the journal cannot be reached: {0}")]
    Journal(std::io::Error),
    /// Somebody set a subscriber before.
    #[error("logging was set up twice")]
    Twice,
}

/// The running log.
#[derive(Debug, Clone)]
pub struct Logging {
    filter: reload::Handle<EnvFilter, Registry>,
    limiter: Limiter,
    level: Arc<ArcSwap<Level>>,
}

/// What is written now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Level {
    /// As it was asked for.
    pub level: String,
    /// As the configuration has it.
    pub configured: String,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Auto }
    }
}

impl Logging {
    /// Installs the subscriber of this process.
    pub fn start(config: &LogConfig, clock: SharedClock) -> Result<Self, LogError> {
        let (filter, handle) = reload::Layer::new(filter(&config.level)?);
        let limiter = Limiter::new(clock);
        tracing_subscriber::registry()
            .with(filter)
            .with(limiter.clone())
            .with(writer(config.format)?)
            .try_init()
            .map_err(|_ignored| LogError::Twice)?;
        Ok(Self { filter: handle, limiter, level: Level::configured(&config.level) })
    }

    /// What is written now.
    pub fn level(&self) -> Arc<Level> {
        self.level.load_full()
    }

    /// Changes what is written, until the configuration is read again.
    pub fn set_level(&self, level: &str) -> Result<Arc<Level>, LogError> {
        self.put(Level { level: level.to_owned(), configured: self.level().configured.clone() })
    }

    /// Back to what the configuration has.
    pub fn reset_level(&self) -> Result<Arc<Level>, LogError> {
        self.configure(&self.level().configured)
    }

    /// The configuration was read again.
    pub fn configure(&self, level: &str) -> Result<Arc<Level>, LogError> {
        self.put(Level { level: level.to_owned(), configured: level.to_owned() })
    }

    fn put(&self, level: Level) -> Result<Arc<Level>, LogError> {
        self.filter.reload(filter(&level.level)?).map_err(|_ignored| LogError::Twice)?;
        self.level.store(Arc::new(level));
        Ok(self.level())
    }

    /// Sums up repeated messages until the daemon stops.
    pub async fn run(&self, shutdown: Shutdown) {
        loop {
            let ended = tokio::time::timeout(WINDOW, shutdown.requested()).await.is_ok();
            self.limiter.report();
            if ended {
                return;
            }
        }
    }
}

impl Level {
    fn configured(level: &str) -> Arc<ArcSwap<Self>> {
        Arc::new(ArcSwap::from_pointee(Self { level: level.to_owned(), configured: level.to_owned() }))
    }
}

/// Warnings and errors of this thread to standard error, for as long as the guard lives.
pub fn provisional() -> tracing::subscriber::DefaultGuard {
    tracing_subscriber::registry().with(text().with_filter(LevelFilter::WARN)).set_default()
}

/// Whether a level can be read.
pub fn check_level(level: &str) -> Result<(), LogError> {
    filter(level).map(drop)
}

/// A word alone must be a level: the filter syntax would take a misspelt one for the name of a target.
fn filter(level: &str) -> Result<EnvFilter, LogError> {
    let wrong = || LogError::Level { level: level.to_owned() };
    let bare = |part: &str| !part.contains(['=', '[', ':']);
    let unknown = |part: &str| part.is_empty() || part.parse::<LevelFilter>().is_err();
    if level.split(',').any(|part| bare(part) && unknown(part.trim())) {
        return Err(wrong());
    }
    EnvFilter::try_new(level).map_err(|_ignored| wrong())
}

type Writer<S> = Box<dyn Layer<S> + Send + Sync>;

fn writer<S>(format: LogFormat) -> Result<Writer<S>, LogError>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a> + Send + Sync,
{
    match format {
        LogFormat::Auto if to_journal() => Ok(journal().unwrap_or_else(|_no_journal| text().boxed())),
        LogFormat::Auto | LogFormat::Text => Ok(text().boxed()),
        LogFormat::Json => Ok(fmt::layer().json().with_writer(std::io::stderr).boxed()),
        LogFormat::Journald => journal(),
    }
}

fn text<S>() -> fmt::Layer<S, fmt::format::DefaultFields, fmt::format::Format, fn() -> std::io::Stderr>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    fmt::layer().with_ansi(colour).with_writer(std::io::stderr as fn() -> std::io::Stderr)
}

#[cfg(target_os = "linux")]
fn journal<S>() -> Result<Writer<S>, LogError>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a> + Send + Sync,
{
    let layer = tracing_journald::layer().map_err(LogError::Journal)?;
    // `journalctl LARDER_SOURCE=origin` finds what came from origins
    let layer = layer.with_field_prefix(Some("LARDER".to_owned()));
    Ok(layer.with_syslog_identifier("larder".to_owned()).boxed())
}

#[cfg(not(target_os = "linux"))]
fn journal<S>() -> Result<Writer<S>, LogError> {
    Err(LogError::Journal(std::io::ErrorKind::Unsupported.into()))
}

/// Whether standard error is the journal's stream, as `$JOURNAL_STREAM` says by device and inode.
#[cfg(unix)]
fn to_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(std::io::stderr()).is_ok_and(|stat| {
        stream.split_once(':') == Some((&stat.st_dev.to_string(), &stat.st_ino.to_string()))
    })
}

#[cfg(not(unix))]
fn to_journal() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_level_is_refused() {
        for level in ["info", "debug", "off", "info,larder::peer=debug", "larder=trace", "WARN"] {
            assert!(check_level(level).is_ok(), "{level}");
        }
        for level in ["", "inof", "verbose", "info,loud", "larder=loud"] {
            assert!(check_level(level).is_err(), "{level}");
        }
    }

    #[test]
    fn the_level_changes_while_running() {
        let (layer, handle) = reload::Layer::new(filter("warn").unwrap());
        let limiter = Limiter::new(crate::clock::SystemClock::shared());
        let level = Level::configured("warn");
        let logging = Logging { filter: handle, limiter: limiter.clone(), level };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer).with(limiter), || {
            assert!(!tracing::enabled!(tracing::Level::DEBUG));
            let level = logging.set_level("debug").unwrap();
            assert_eq!((level.level.as_str(), level.configured.as_str()), ("debug", "warn"));
            assert!(tracing::enabled!(tracing::Level::DEBUG));
            assert!(logging.set_level("loud").is_err());
            assert!(tracing::enabled!(tracing::Level::DEBUG), "a wrong level changes nothing");
            assert_eq!(logging.level().level, "debug");
            logging.reset_level().unwrap();
            assert!(!tracing::enabled!(tracing::Level::INFO));
            logging.configure("info").unwrap();
            assert_eq!(logging.level().configured, "info");
        });
    }
}
