//! `larder run`: the daemon in the foreground.

use super::{Exit, Failure, RunArgs, output};
use crate::clock::SystemClock;
use crate::config::{Complaints, Config, Environment, check_files, load, load_index_key, load_secrets};
use crate::daemon::{DaemonError, Start, run as run_daemon};
use crate::telemetry::{Logging, provisional};

/// Runs the daemon until it is asked to stop.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let environment = Environment::of_process();
    let provisional = provisional();
    let loaded = load(args.node.as_deref(), &environment)?;
    let environment = environment.of_service(loaded.file.as_deref());
    let secrets = load_secrets(&loaded.config, &environment)?;
    let key = load_index_key(&loaded.config, &environment).map_err(|wrong| Complaints(vec![wrong]))?;
    let (index_key, open_key) = key.unzip();
    for warning in loaded.warnings.iter().chain(&secrets.warnings).chain(open_key.iter().flatten()) {
        output::warn(&warning.to_string(), &warning.hint);
    }
    let logging = Logging::start(&loaded.config.log, SystemClock::shared());
    let logging = logging.map_err(|error| Failure::new(Exit::Configuration, error.to_string()))?;
    drop(provisional);
    if secrets.secrets.is_empty() {
        tracing::info!("no site secret: this node works alone");
    }
    let (secrets, mormot) = (secrets.secrets, secrets.mormot);
    let in_force = loaded.config.clone();
    let (config, origins, file) = (loaded.config, loaded.sources, loaded.file);
    let start = Start { config, origins, file, secrets, mormot, index_key, logging };
    run_daemon(start).map(|()| Exit::Done).map_err(|error| failure(&error, &in_force))
}

/// Where a file that the configuration names is at fault, that is what must be mended: starting again is of no use.
fn failure(error: &DaemonError, config: &Config) -> Failure {
    if error.is_port_taken() {
        return Failure::new(Exit::PortTaken, error.to_string())
            .hint("stop the program that has the port (`ss -ltnp` shows it), or choose another one in the configuration");
    }
    match check_files(config) {
        wrong if wrong.is_empty() => Failure::new(Exit::Failed, error.to_string()),
        wrong => Complaints(wrong).into(),
    }
}
