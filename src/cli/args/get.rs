//! Arguments of what downloads.

use std::path::PathBuf;

use clap::Args;

use crate::digest::Stated;
use crate::unit::{Rate, Span};

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
pub(crate) struct PrefetchArgs {
    /// A file with one [DIGEST@]URL a line, empty lines and those with # left out; "-" is standard input
    #[arg(value_name = "LIST")]
    pub(in crate::cli) list: PathBuf,
    /// When to stop, such as 2h; without it: when all is fetched or nothing comes any more
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) deadline: Option<Span>,
    /// Print one JSON document
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
