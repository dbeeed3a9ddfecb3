//! Arguments of what sets a machine up.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::JsonArgs;
use crate::cli::setup::Program;
use crate::unit::ByteSize;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The name of the site, the same on all its machines
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) site: Option<String>,
    /// The site's secret, from another machine; without it a new one is made
    #[arg(long, value_name = "FILE", conflicts_with = "alone")]
    pub(in crate::cli) secret_from: Option<PathBuf>,
    /// Without a secret: this node works alone
    #[arg(long)]
    pub(in crate::cli) alone: bool,
    /// The most the cache may take, such as 20GiB
    #[arg(long, value_name = "SIZE")]
    pub(in crate::cli) size: Option<ByteSize>,
    /// The configuration to write; without it /etc/larder/larder.toml as root, else the user's own
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Ask nothing: what is not said is as usual
    #[arg(long)]
    pub(in crate::cli) defaults: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    pub(in crate::cli) action: ServiceAction,
    /// For yourself alone, without root
    #[arg(long, global = true)]
    pub(in crate::cli) user: bool,
    /// Only say what would be done
    #[arg(long, global = true)]
    pub(in crate::cli) dry_run: bool,
    /// Write over files that are there with other contents
    #[arg(long, global = true)]
    pub(in crate::cli) replace: bool,
    /// Below this folder, and without running anything: for images
    #[arg(long, global = true, value_name = "DIR")]
    pub(in crate::cli) root: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceAction {
    /// Write program, unit, socket, user and folders
    Install,
    /// Take them away again; what was kept and the configuration stay
    Uninstall {
        /// Contents, state and configuration too
        #[arg(long)]
        purge: bool,
    },
    /// Say what is there
    Status,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(in crate::cli) action: ConfigAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Say all that is wrong with a configuration
    Check(ConfigFileArgs),
    /// Print the configuration in effect, and where each value came from
    Show(ConfigFileArgs),
    /// Print every key with its default
    Default(JsonArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFileArgs {
    /// The file; without it the one that --config or the usual places name
    pub(in crate::cli) file: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    pub(in crate::cli) action: SecretAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretAction {
    /// Make a new secret
    New {
        /// Write it into this new file, readable by its owner alone; without it: print it
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show a short mark that is the same on all machines with the same site and secret
    Fingerprint(JsonArgs),
    /// Make the hash of an administrator's password, read from standard input, for admin.users
    Password(JsonArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// The program
    pub(in crate::cli) program: Program,
    /// Write the settings where the program reads them
    #[arg(long, conflicts_with = "undo")]
    pub(in crate::cli) write: bool,
    /// Take them out again
    #[arg(long)]
    pub(in crate::cli) undo: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// For all users of the machine, not for you alone
    #[arg(long)]
    pub(in crate::cli) system: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CaArgs {
    #[command(subcommand)]
    pub(in crate::cli) action: CaAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CaAction {
    /// Make one for the hosts in intercept.hosts
    New {
        /// In the place of the one that is there
        #[arg(long)]
        replace: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show it, and what to set for programs with a list of their own
    Show {
        /// Print the certificate alone
        #[arg(long, conflicts_with = "json")]
        pem: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Make it if need be, and make the system's programs trust it
    Install {
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Take it out of the system again, and delete it
    Remove {
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(in crate::cli) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder; made if it is not there
    pub(in crate::cli) dir: PathBuf,
}
