//! `larder log`: what the log writes, and changing that while the daemon runs.

use http::Method;

use super::admin_client::AdminClient;
use super::args::LogArgs;
use super::{ConfigFile, Exit, Failure, Output};
use crate::admin::{LogRequest, LogView};
use crate::telemetry::check_level;

pub(super) fn run(node: &ConfigFile, args: &LogArgs) -> Result<Exit, Failure> {
    if let Some(level) = &args.level {
        check_level(level).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    }
    let client = AdminClient::of(node)?;
    let view: LogView = if args.reset || args.level.is_some() {
        let request = LogRequest { level: args.level.clone() };
        client.call(Method::PUT, "/api/v1/log", Some(&request))?
    } else {
        client.get("/api/v1/log")?
    };
    let mut out = Output::new();
    if args.json {
        out.json(&view)?;
    } else {
        out.line(sentence(&view))?;
    }
    Ok(Exit::Done)
}

fn sentence(view: &LogView) -> String {
    if view.level == view.configured {
        return format!("{}, as configured", view.level);
    }
    format!("{}, until a reload or a restart; configured is {}", view.level, view.configured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_will_not_last_says_so() {
        let view = |level: &str| LogView { level: level.to_owned(), configured: "info".to_owned() };
        assert_eq!(sentence(&view("info")), "info, as configured");
        assert!(sentence(&view("debug")).contains("configured is info"));
    }
}
