//! Arguments of what acts on what is held.

use std::path::PathBuf;

use clap::Args;

use crate::unit::ByteSize;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A digest (sha256:HEX) or a URL
    #[arg(value_name = "DIGEST|URL", required_unless_present = "all", conflicts_with = "all")]
    pub(in crate::cli) thing: Option<String>,
    /// Everything that is held
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Remove what is damaged, so that it is fetched anew when it is next asked for
    #[arg(long)]
    pub(in crate::cli) repair: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Down to this size, such as 5GiB; without it: to the configured limits
    #[arg(long, value_name = "SIZE")]
    pub(in crate::cli) to: Option<ByteSize>,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Part of a URL, or the beginning of a digest; without it everything that may leave
    #[arg(default_value = "")]
    pub(in crate::cli) filter: String,
    /// Only what meets this, such as size=gt.1048576; may be given again
    #[arg(long = "where", value_name = "COLUMN=OPERATOR.VALUE")]
    pub(in crate::cli) conditions: Vec<String>,
    /// The bundle to write; BUNDLE.part until it is whole
    #[arg(short, long, value_name = "BUNDLE")]
    pub(in crate::cli) output: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Bundles, and other files, each of which becomes one blob
    #[arg(value_name = "BUNDLE|FILE", required = true)]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// A URL, or the beginning of some and a * (quoted for the shell)
    #[arg(value_name = "URL|PREFIX*")]
    pub(in crate::cli) url: String,
    /// Only say what would be done
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
