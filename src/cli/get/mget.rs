//! The options that `mget` calls its own, in the words of this program.

use crate::cli::{Exit, Failure, GetArgs};
use crate::digest::{Algorithm, Stated};
use crate::unit::Rate;

/// Megabytes, as the original counts them.
const MEGABYTE: u64 = 1 << 20;

/// The arguments with what those options mean put in its place.
pub(super) fn understood(mut args: GetArgs) -> Result<GetArgs, Failure> {
    let usage = |what: String| Failure::new(Exit::Usage, what);
    if let Some(limit) = args.mget.limit_bandwidth_mb {
        args.limit_rate = Some(Rate(u64::from(limit) * MEGABYTE));
    }
    let algorithm = match &args.mget.hash_algo {
        Some(name) => Some(
            Algorithm::named(name)
                .map_err(|error| usage(format!("cannot read --hashAlgo {name}: {error}")))?,
        ),
        None => None,
    };
    match (algorithm, &args.mget.hash_value) {
        (None, None) => {}
        (algorithm, Some(value)) => {
            let text =
                algorithm.map_or_else(|| value.clone(), |algorithm| format!("{}:{value}", algorithm.name()));
            let stated = Stated::parse(&text);
            args.digest = Some(stated.map_err(|error| usage(format!("cannot read --hashValue: {error}")))?);
        }
        (Some(algorithm), None) => match args.urls.as_slice() {
            // the original looks for it beside the file
            [url] if url != "-" => args.digest_from = Some(format!("{url}.{}", algorithm.name())),
            _ => return Err(usage("--hashAlgo without --hashValue needs one URL".to_owned())),
        },
    }
    if let Some(file) = &args.mget.peer_secret
        && !file.exists()
    {
        let what = "--peerSecret names no file that is there; a secret itself is no argument".to_owned();
        return Err(
            usage(what).hint("write it into a file and name that, or set $LARDER_MORMOT_SECRET and --peer")
        );
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn read(line: &str) -> Result<GetArgs, Failure> {
        let words = std::iter::once("larder").chain(line.split_whitespace());
        let Command::Get(args) = Cli::try_parse_from(words).unwrap().command else { panic!("{line}") };
        understood(*args)
    }

    #[test]
    fn the_originals_options_mean_what_ours_do() {
        let hex = "ab".repeat(64);
        let args = read(&format!("get http://h/f --hashAlgo sha512 --hashValue {hex} --limitBandwidthMB 2"))
            .unwrap();
        assert_eq!(args.digest.unwrap().to_string(), format!("sha512:{hex}"));
        assert_eq!(args.limit_rate, Some(Rate(2 << 20)));
        let args = read(&format!("get http://h/f --hashValue {}", "ab".repeat(32))).unwrap();
        assert!(args.digest.unwrap().sha256().is_some());
        let args = read("get http://h/f --hashAlgo sha3_256").unwrap();
        assert_eq!(args.digest_from.as_deref(), Some("http://h/f.sha3-256"));
        for wrong in [
            "get http://h/f --hashAlgo rot13",
            "get http://h/f --hashAlgo sha1 --hashValue abcd",
            "get http://h/f http://h/g --hashAlgo sha256",
            "get http://h/f --peerSecret not-a-file-but-a-secret",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
