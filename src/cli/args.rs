//! The arguments of every command, by families.

mod get;
mod look;
mod machine;
mod store;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::records;
use crate::index::{BanRecord, BlobRecord, BlockRecord, EventRecord, PeerRecord, TransferRecord};

pub(crate) use get::{GetArgs, MgetArgs, PrefetchArgs};
pub(crate) use look::{
    BansAction, BansArgs, BlockArgs, By, EventsArgs, LogArgs, LsArgs, ReportArgs, ThingArgs, TransfersArgs,
    UnblockArgs,
};
pub(crate) use machine::{
    CaAction, CaArgs, CompletionsArgs, ConfigAction, ConfigArgs, ConfigFileArgs, DemoArgs, InitArgs, ManArgs,
    SecretAction, SecretArgs, ServiceAction, ServiceArgs, SetupArgs,
};
pub(crate) use store::{ExportArgs, GcArgs, ImportArgs, PurgeArgs, VerifyArgs};

/// Peer-to-peer caching download daemon: a download comes once from the origin, then from the neighbour.
#[derive(Debug, Parser)]
#[command(
    name = "larder",
    version,
    max_term_width = 100,
    propagate_version = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// The configuration, and so the node that is meant
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The file named by `--config`, if one is.
pub(crate) type ConfigFile = Option<PathBuf>;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon in the foreground
    Run(RunArgs),
    /// Download, verify, resume
    Get(Box<GetArgs>),
    /// Show what the daemon is, holds and did
    Status(JsonArgs),
    /// Show the same as it goes, on a terminal
    Top,
    /// List the neighbours
    #[command(after_long_help = records::help::<PeerRecord>())]
    Peers(JsonArgs),
    /// List running transfers, and those that ended
    #[command(after_long_help = records::help::<TransferRecord>())]
    Transfers(TransfersArgs),
    /// List, add and lift bans
    #[command(after_long_help = records::help::<BanRecord>())]
    Bans(BansArgs),
    /// Let nobody have a blob, or what a URL leads to; without either: list what is blocked
    #[command(after_long_help = records::help::<BlockRecord>())]
    Block(BlockArgs),
    /// Let a blocked thing go again
    Unblock(UnblockArgs),
    /// List what administrators did
    #[command(after_long_help = records::help::<EventRecord>())]
    Events(EventsArgs),
    /// List what is held
    #[command(after_long_help = records::help::<BlobRecord>())]
    Ls(LsArgs),
    /// Show what is known about a blob or URL
    #[command(after_long_help = records::help::<BlobRecord>())]
    Info(ThingArgs),
    /// Keep a blob from eviction
    Pin(ThingArgs),
    /// Let a blob be evicted again
    Unpin(ThingArgs),
    /// Remove a blob
    Rm(ThingArgs),
    /// Read blobs again and compare them with their digests
    Verify(VerifyArgs),
    /// Make room
    Gc(GcArgs),
    /// Carry what is held to a site without a network: write a bundle
    Export(ExportArgs),
    /// Store what bundles and other files hold
    Import(ImportArgs),
    /// Show what the log writes, or change it while the daemon runs
    Log(LogArgs),
    /// Show how much went through, by day or hour, and how much was saved
    Report(ReportArgs),
    /// Have the daemon fetch a list of things for later, behind all that somebody waits for
    Prefetch(PrefetchArgs),
    /// Forget what URLs led to, so that they are fetched anew
    Purge(PurgeArgs),
    /// Set a machine up: configuration, secret, a look at the machine, the line for the next one
    Init(InitArgs),
    /// Install, remove or look at the service, where no package did
    Service(ServiceArgs),
    /// Check, show or print a configuration
    Config(ConfigArgs),
    /// Make a site's secret, or show its fingerprint
    Secret(SecretArgs),
    /// Make a program use this node: print its settings, write them, take them out
    Setup(SetupArgs),
    /// Make, show, install or remove this machine's certificate authority for interception
    Ca(CaArgs),
    /// Find out what is wrong, and what to do
    Doctor(JsonArgs),
    /// Show three nodes sharing one download, on this machine
    Demo(DemoArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages into a folder
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[arg(skip)]
    pub(crate) node: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
