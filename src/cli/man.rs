//! `larder man DIR`: the manual pages, one for the program and one for each command. The program's own page also has
//! examples, files, variables and exit statuses.

use clap::CommandFactory as _;

use super::args::{Cli, ManArgs};
use super::{Exit, Failure};

/// What stands at the end of larder(1), as roff.
const MORE: &str = include_str!("man/larder.roff");
/// Examples for the pages of commands, each by the name of its page.
const EXAMPLES: &str = include_str!("man/examples.txt");

pub(super) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let written = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(complete(), &args.dir))
        .and_then(|()| head(&args.dir))
        .and_then(|()| add(&args.dir.join("larder.1"), MORE))
        .and_then(|()| examples().try_for_each(|(page, lines)| add(&args.dir.join(page), &lines)));
    written.map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot write manual pages to {}: {error}", args.dir.display()))
    })?;
    Ok(Exit::Done)
}

/// The commands with what the short help leaves out: a page has room for it.
fn complete() -> clap::Command {
    Cli::command().mut_subcommands(|command| command.mut_args(|argument| argument.hide_short_help(false)))
}

/// Says in each page's head what it belongs to, where the generator puts the command as if it were a date.
fn head(folder: &std::path::Path) -> std::io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let (Some(name), true) = (path.file_stem(), path.extension().is_some_and(|is| is == "1")) else {
            continue;
        };
        let title = format!(".TH {} 1 \"\" \"larder {version}\"", name.display());
        let text = std::fs::read_to_string(&path)?;
        let lines = text.lines().map(|line| if line.starts_with(".TH ") { title.as_str() } else { line });
        std::fs::write(&path, lines.flat_map(|line| [line, "\n"]).collect::<String>())?;
    }
    Ok(())
}

fn add(page: &std::path::Path, text: &str) -> std::io::Result<()> {
    let before = std::fs::read_to_string(page)?;
    std::fs::write(page, format!("{}\n{text}", before.trim_end()))
}

/// Each page's examples and files as sections; a line beginning with `$` is a command, the others behind it say what
/// it does, one beginning with `@` names a file and says what that is.
fn examples() -> impl Iterator<Item = (String, String)> {
    EXAMPLES.split("\n\n").filter_map(|block| {
        let (command, lines) = block.trim().split_once('\n')?;
        let (files, lines): (Vec<_>, Vec<_>) = lines.lines().partition(|line| line.starts_with("@ "));
        let mut section = if lines.is_empty() { String::new() } else { ".SH EXAMPLES\n".to_owned() };
        for (at, line) in lines.into_iter().enumerate() {
            // behind a head a paragraph begins by itself
            let begin = if at == 0 { "" } else { ".PP\n" };
            match line.strip_prefix("$ ") {
                Some(command) => section.push_str(&format!("{begin}.nf\n{}\n.fi\n", escaped(command))),
                None => section.push_str(&format!(".RS 4\n{}\n.RE\n", escaped(line))),
            }
        }
        if !files.is_empty() {
            section.push_str(".SH FILES\n");
        }
        for file in files.iter().filter_map(|line| line.strip_prefix("@ ")) {
            let (path, what) = file.split_once(": ").unwrap_or((file, ""));
            section.push_str(&format!(".TP\n.I {}\n{}\n", escaped(path), escaped(what)));
        }
        section.push_str(".SH \"SEE ALSO\"\nlarder(1)\n");
        Some((format!("larder-{command}.1"), section))
    })
}

/// Text as roff: backslashes and hyphens stand for themselves, and no line is a request.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_belongs_to_a_page_and_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        run(&ManArgs { dir: folder.path().to_owned() }).unwrap();
        let main = std::fs::read_to_string(folder.path().join("larder.1")).unwrap();
        for section in [".SH EXAMPLES", ".SH FILES", ".SH ENVIRONMENT", ".SH \"EXIT STATUS\""] {
            assert!(main.contains(section), "{section}");
        }
        let pages: Vec<String> = examples().map(|(page, _)| page).collect();
        for command in Cli::command().get_subcommands() {
            let page = format!("larder-{}.1", command.get_name());
            assert!(pages.contains(&page), "{page} has no example");
        }
        for (page, section) in examples() {
            let text = std::fs::read_to_string(folder.path().join(&page)).unwrap();
            assert!(text.ends_with(&section), "{page}");
            for line in section.lines().filter(|line| line.starts_with("larder ")) {
                let words = line.replace("\\-", "-");
                let words = words.split(" | ").next().unwrap().split_whitespace().map(str::to_owned);
                let read = Cli::command().try_get_matches_from(words.take_while(|word| word != ">"));
                assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
            }
        }
    }
}
