//! `larder config`: check, show, print.

use std::path::Path;

use serde_json::json;

use super::args::{ConfigAction, ConfigArgs, ConfigFileArgs};
use super::{ConfigFile, Exit, Failure, Output, output};
use crate::config::{
    Complaint, Complaints, Config, DEFAULT_FILE, Environment, Loaded, check_files, load, load_index_key,
    load_secrets, redacted, show,
};

pub(super) fn run(node: &ConfigFile, args: &ConfigArgs) -> Result<Exit, Failure> {
    match &args.action {
        ConfigAction::Check(args) => check(named(node, args), args.json),
        ConfigAction::Show(args) => show_effective(named(node, args), args.json),
        ConfigAction::Default(args) if args.json => {
            Output::new().json(&json!({ "config": redacted(&Config::default()) }))?;
            Ok(Exit::Done)
        }
        ConfigAction::Default(_) => {
            Output::new().text(DEFAULT_FILE)?;
            Ok(Exit::Done)
        }
    }
}

fn named<'a>(node: &'a ConfigFile, args: &'a ConfigFileArgs) -> Option<&'a Path> {
    args.file.as_deref().or(node.as_deref())
}

fn check(file: Option<&Path>, json: bool) -> Result<Exit, Failure> {
    let environment = Environment::of_process();
    let verdict = judge(file, &environment);
    if json {
        let (complaints, warnings) = match &verdict {
            Ok((_, warnings)) => (Vec::new(), warnings.iter().map(as_json).collect()),
            Err(complaints) => (complaints.0.iter().map(as_json).collect(), Vec::new()),
        };
        Output::new().json(&json!({"ok": verdict.is_ok(), "errors": complaints, "warnings": warnings}))?;
        return Ok(if verdict.is_ok() { Exit::Done } else { Exit::Configuration });
    }
    let (loaded, warnings) = verdict?;
    for warning in &warnings {
        output::warn(&warning.to_string(), &warning.hint);
    }
    let name = loaded.file.map_or("the defaults".to_owned(), |file| file.display().to_string());
    Output::new().line(format!("{name}: right"))?;
    Ok(Exit::Done)
}

/// The configuration, its secrets and its files: all that is wrong at once.
pub(super) fn judge(
    file: Option<&Path>,
    environment: &Environment,
) -> Result<(Loaded, Vec<Complaint>), Complaints> {
    let loaded = load(file, environment)?;
    let mut wrong = check_files(&loaded.config);
    let mut warnings = loaded.warnings.clone();
    let environment = environment.clone().of_service(loaded.file.as_deref());
    match load_secrets(&loaded.config, &environment) {
        Ok(found) => warnings.extend(found.warnings),
        Err(complaints) => wrong.extend(complaints.0),
    }
    match load_index_key(&loaded.config, &environment) {
        Ok(key) => warnings.extend(key.and_then(|(_, warning)| warning)),
        Err(complaint) => wrong.push(complaint),
    }
    if wrong.is_empty() { Ok((loaded, warnings)) } else { Err(Complaints(wrong)) }
}

fn show_effective(file: Option<&Path>, json: bool) -> Result<Exit, Failure> {
    let loaded = load(file, &Environment::of_process())?;
    for warning in &loaded.warnings {
        output::warn(&warning.to_string(), &warning.hint);
    }
    let mut out = Output::new();
    if json {
        let set: serde_json::Map<String, serde_json::Value> =
            loaded.sources.iter().map(|(key, source)| (key.to_owned(), source.to_string().into())).collect();
        out.json(&json!({"file": loaded.file, "config": redacted(&loaded.config), "sources": set}))?;
    } else {
        let text = show(&loaded).map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot print the configuration: {error}"))
        })?;
        out.text(&text)?;
    }
    Ok(Exit::Done)
}

fn as_json(complaint: &Complaint) -> serde_json::Value {
    json!({
        "key": complaint.key,
        "place": complaint.place.as_ref().map(ToString::to_string),
        "what": complaint.what,
        "hint": complaint.hint,
    })
}
