//! `larder purge`: forgets what URLs led to, so that they are fetched anew.

use http::Method;

use super::admin_client::AdminClient;
use super::args::PurgeArgs;
use super::{ConfigFile, Exit, Failure, Output};
use crate::admin::{PurgeRequest, PurgeView};
use crate::unit::ByteSize;

pub(super) fn run(node: &ConfigFile, args: &PurgeArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let request = PurgeRequest { url: args.url.clone(), dry_run: args.dry_run };
    let done: PurgeView = client.call(Method::POST, "/api/v1/purges", Some(&request))?;
    let mut out = Output::new();
    if args.json {
        out.json(&done)?;
    } else if done.answers > 0 {
        out.line(sentence(&done))?;
    }
    if done.answers == 0 {
        return Err(Failure::new(Exit::NotFound, format!("nothing is known about {}", args.url)).hint(
            "give the whole URL as it was asked for, or its beginning and a *; quote it for the shell",
        ));
    }
    Ok(Exit::Done)
}

fn sentence(done: &PurgeView) -> String {
    let tense = if done.dry_run { "would be " } else { "" };
    let pinned = match done.pinned {
        0 => String::new(),
        pinned => format!(", {pinned} pinned stay"),
    };
    format!(
        "{} answers {tense}forgotten, {} blobs {tense}removed, {} {tense}freed{pinned}",
        done.answers,
        done.blobs,
        ByteSize(done.bytes)
    )
}
