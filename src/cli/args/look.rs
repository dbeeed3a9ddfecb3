//! Arguments of what looks, and of what is refused or logged.

use std::net::IpAddr;

use clap::{Args, Subcommand};

use crate::unit::Span;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BansArgs {
    #[command(subcommand)]
    pub(in crate::cli) action: Option<BansAction>,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BansAction {
    /// Refuse an address
    Add {
        /// The address
        address: IpAddr,
        /// For how long, such as 10m
        #[arg(long = "for", value_name = "DURATION")]
        duration: Option<Span>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Lift a ban
    Rm {
        /// The address
        address: IpAddr,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BlockArgs {
    /// A digest (sha256:HEX) or a URL
    #[arg(value_name = "DIGEST|URL")]
    pub(in crate::cli) thing: Option<String>,
    /// Why, for whoever is refused it
    #[arg(long, value_name = "TEXT", requires = "thing")]
    pub(in crate::cli) reason: Option<String>,
    /// On every node of the site, until it is lifted on any
    #[arg(long, requires = "thing")]
    pub(in crate::cli) site: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UnblockArgs {
    /// A digest (sha256:HEX) or a URL
    #[arg(value_name = "DIGEST|URL")]
    pub(in crate::cli) thing: String,
    /// On every node of the site, where it was blocked for all of it
    #[arg(long)]
    pub(in crate::cli) site: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TransfersArgs {
    /// Those that ended too
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// error, warn, info, debug, trace, off, or a filter such as info,larder::peer=debug; without it: show
    pub(in crate::cli) level: Option<String>,
    /// Back to what the configuration has, as a reload and a restart do too
    #[arg(long, conflicts_with = "level")]
    pub(in crate::cli) reset: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The last so many
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(in crate::cli) last: u32,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct LsArgs {
    /// Part of a URL, or the beginning of a digest
    #[arg(default_value = "")]
    pub(in crate::cli) filter: String,
    /// Only what meets this, such as size=gt.1048576 or labels.team=eq.ops; may be given again
    #[arg(long = "where", value_name = "COLUMN=OPERATOR.VALUE")]
    pub(in crate::cli) conditions: Vec<String>,
    /// In this order, such as last_used.desc,size
    #[arg(long, value_name = "COLUMNS")]
    pub(in crate::cli) order: Option<String>,
    /// The largest or latest of this column first, such as hits
    #[arg(long, value_name = "COLUMN", conflicts_with = "order")]
    pub(in crate::cli) sort: Option<String>,
    /// No more than so many
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::cli) limit: Option<u64>,
    /// Show these columns, with commas between
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "json")]
    pub(in crate::cli) columns: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThingArgs {
    /// A digest (sha256:HEX) or a URL
    #[arg(value_name = "DIGEST|URL")]
    pub(in crate::cli) thing: String,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// What the rows of a report are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    /// Days, UTC.
    Day,
    /// Hours.
    Hour,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// So long back, in whole days with today
    #[arg(long, value_name = "DURATION", default_value = "30d")]
    pub(in crate::cli) since: Span,
    /// A row for each
    #[arg(long, value_enum, default_value_t = By::Day)]
    pub(in crate::cli) by: By,
    /// Print one JSON document
    #[arg(long, conflicts_with = "csv")]
    pub(in crate::cli) json: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub(in crate::cli) csv: bool,
}
