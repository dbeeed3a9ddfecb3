//! The arguments of every command.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::records;
use super::setup::Program;
use crate::digest::Stated;
use crate::index::{BanRecord, BlobRecord, EventRecord, PeerRecord, TransferRecord};
use crate::unit::{ByteSize, Rate, Span};

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
pub(crate) struct GetArgs {
    #[arg(skip)]
    pub(crate) node: Option<PathBuf>,
    /// What to download: URL or DIGEST@URL; "-" reads URLs from standard input; none asks for them
    #[arg(value_name = "[DIGEST@]URL")]
    pub(crate) urls: Vec<String>,
    /// The file to put it in; "-" is standard output, which gets nothing before all is right
    #[arg(short, long, value_name = "FILE", conflicts_with = "folder")]
    pub(crate) output: Option<PathBuf>,
    /// The folder to put it in, under the name in the URL
    #[arg(short = 'O', long = "output-dir", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The digest it must have, such as sha256:HEX
    #[arg(long, value_name = "ALGO:HEX", value_parser = Stated::parse)]
    pub(crate) digest: Option<Stated>,
    /// Where to read the digest from, such as a SHA256SUMS file
    #[arg(long, value_name = "URL", conflicts_with = "digest")]
    pub(crate) digest_from: Option<String>,
    /// The most bytes a second
    #[arg(long, value_name = "RATE")]
    pub(crate) limit_rate: Option<Rate>,
    /// So many downloads at one time
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) parallel: u8,
    /// Ask no neighbours
    #[arg(long)]
    pub(crate) no_peers: bool,
    /// Begin anew even if a part is there
    #[arg(long)]
    pub(crate) no_resume: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) mget: MgetArgs,
}

/// What `mget` calls its own: understood for those who come from there, and not in the short help.
#[derive(Debug, Default, Args)]
pub(crate) struct MgetArgs {
    /// As in mget: how the digest is computed; without --hashValue it is read from a file beside the URL
    #[arg(long = "hashAlgo", value_name = "ALGO", hide_short_help = true, conflicts_with_all = ["digest", "digest_from"])]
    pub(crate) hash_algo: Option<String>,
    /// As in mget: the digest in hexadecimal
    #[arg(long = "hashValue", value_name = "HEX", hide_short_help = true, conflicts_with_all = ["digest", "digest_from"])]
    pub(crate) hash_value: Option<String>,
    /// As in mget: the most megabytes (of 1048576 bytes) a second, 0 for no limit
    #[arg(
        long = "limitBandwidthMB",
        value_name = "MB",
        hide_short_help = true,
        conflicts_with = "limit_rate"
    )]
    pub(crate) limit_bandwidth_mb: Option<u32>,
    /// As in mget: ask for URLs, one a line, until an empty one
    #[arg(long, hide_short_help = true)]
    pub(crate) prompt: bool,
    /// As in mget: ask mORMot peers, by the secret in mormot.secret_file or $LARDER_MORMOT_SECRET, and no daemon
    #[arg(long, hide_short_help = true, conflicts_with = "no_peers")]
    pub(crate) peer: bool,
    /// The same with the secret in this file; a secret itself is no argument, since everybody can read those
    #[arg(long = "peerSecret", value_name = "FILE", hide_short_help = true, conflicts_with = "no_peers")]
    pub(crate) peer_secret: Option<PathBuf>,
    /// As in mget: keep what is downloaded in this folder too, for the next time, and ask no daemon
    #[arg(long = "cachePath", value_name = "DIR", hide_short_help = true)]
    pub(crate) cache_path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BansArgs {
    #[command(subcommand)]
    pub(super) action: Option<BansAction>,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
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
pub(crate) struct TransfersArgs {
    /// Those that ended too
    #[arg(long)]
    pub(super) all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// error, warn, info, debug, trace, off, or a filter such as info,larder::peer=debug; without it: show
    pub(super) level: Option<String>,
    /// Back to what the configuration has, as a reload and a restart do too
    #[arg(long, conflicts_with = "level")]
    pub(super) reset: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The last so many
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) last: u32,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct LsArgs {
    /// Part of a URL, or the beginning of a digest
    #[arg(default_value = "")]
    pub(super) filter: String,
    /// Only what meets this, such as size=gt.1048576 or labels.team=eq.ops; may be given again
    #[arg(long = "where", value_name = "COLUMN=OPERATOR.VALUE")]
    pub(super) conditions: Vec<String>,
    /// In this order, such as last_used.desc,size
    #[arg(long, value_name = "COLUMNS")]
    pub(super) order: Option<String>,
    /// The largest or latest of this column first, such as hits
    #[arg(long, value_name = "COLUMN", conflicts_with = "order")]
    pub(super) sort: Option<String>,
    /// No more than so many
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Show these columns, with commas between
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "json")]
    pub(super) columns: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThingArgs {
    /// A digest (sha256:HEX) or a URL
    #[arg(value_name = "DIGEST|URL")]
    pub(super) thing: String,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A digest (sha256:HEX) or a URL
    #[arg(value_name = "DIGEST|URL", required_unless_present = "all", conflicts_with = "all")]
    pub(super) thing: Option<String>,
    /// Everything that is held
    #[arg(long)]
    pub(super) all: bool,
    /// Remove what is damaged, so that it is fetched anew when it is next asked for
    #[arg(long)]
    pub(super) repair: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Down to this size, such as 5GiB; without it: to the configured limits
    #[arg(long, value_name = "SIZE")]
    pub(super) to: Option<ByteSize>,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The name of the site, the same on all its machines
    #[arg(long, value_name = "NAME")]
    pub(super) site: Option<String>,
    /// The site's secret, from another machine; without it a new one is made
    #[arg(long, value_name = "FILE", conflicts_with = "alone")]
    pub(super) secret_from: Option<PathBuf>,
    /// Without a secret: this node works alone
    #[arg(long)]
    pub(super) alone: bool,
    /// The most the cache may take, such as 20GiB
    #[arg(long, value_name = "SIZE")]
    pub(super) size: Option<ByteSize>,
    /// The configuration to write; without it /etc/larder/larder.toml as root, else the user's own
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Ask nothing: what is not said is as usual
    #[arg(long)]
    pub(super) defaults: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    pub(super) action: ServiceAction,
    /// For yourself alone, without root
    #[arg(long, global = true)]
    pub(super) user: bool,
    /// Only say what would be done
    #[arg(long, global = true)]
    pub(super) dry_run: bool,
    /// Write over files that are there with other contents
    #[arg(long, global = true)]
    pub(super) replace: bool,
    /// Below this folder, and without running anything: for images
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,
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
    Status {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Part of a URL, or the beginning of a digest; without it everything that may leave
    #[arg(default_value = "")]
    pub(super) filter: String,
    /// Only what meets this, such as size=gt.1048576; may be given again
    #[arg(long = "where", value_name = "COLUMN=OPERATOR.VALUE")]
    pub(super) conditions: Vec<String>,
    /// The bundle to write; BUNDLE.part until it is whole
    #[arg(short, long, value_name = "BUNDLE")]
    pub(super) output: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Bundles, and other files, each of which becomes one blob
    #[arg(value_name = "BUNDLE|FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
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
    pub(super) since: Span,
    /// A row for each
    #[arg(long, value_enum, default_value_t = By::Day)]
    pub(super) by: By,
    /// Print one JSON document
    #[arg(long, conflicts_with = "csv")]
    pub(super) json: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PrefetchArgs {
    /// A file with one [DIGEST@]URL a line, empty lines and those with # left out; "-" is standard input
    #[arg(value_name = "LIST")]
    pub(super) list: PathBuf,
    /// When to stop, such as 2h; without it: when all is fetched or nothing comes any more
    #[arg(long, value_name = "DURATION")]
    pub(super) deadline: Option<Span>,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// A URL, or the beginning of some and a * (quoted for the shell)
    #[arg(value_name = "URL|PREFIX*")]
    pub(super) url: String,
    /// Only say what would be done
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(super) action: ConfigAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Say all that is wrong with a configuration
    Check(ConfigFileArgs),
    /// Print the configuration in effect, and where each value came from
    Show(ConfigFileArgs),
    /// Print every key with its default
    Default,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFileArgs {
    /// The file; without it the one that --config or the usual places name
    pub(super) file: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    pub(super) action: SecretAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretAction {
    /// Make a new secret
    New {
        /// Write it into this new file, readable by its owner alone; without it: print it
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Show a short mark that is the same on all machines with the same site and secret
    Fingerprint(JsonArgs),
    /// Make the hash of an administrator's password, read from standard input, for admin.users
    Password,
}

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// The program
    pub(super) program: Program,
    /// Write the settings where the program reads them
    #[arg(long, conflicts_with = "undo")]
    pub(super) write: bool,
    /// Take them out again
    #[arg(long)]
    pub(super) undo: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// For all users of the machine, not for you alone
    #[arg(long)]
    pub(super) system: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CaArgs {
    #[command(subcommand)]
    pub(super) action: CaAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CaAction {
    /// Make one for the hosts in intercept.hosts
    New {
        /// In the place of the one that is there
        #[arg(long)]
        replace: bool,
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
    },
    /// Take it out of the system again, and delete it
    Remove {
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder; made if it is not there
    pub(super) dir: PathBuf,
}
