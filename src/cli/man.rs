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
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.dir))
        .and_then(|()| add(&args.dir.join("larder.1"), MORE))
        .and_then(|()| examples().try_for_each(|(page, lines)| add(&args.dir.join(page), &lines)));
    written.map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot write manual pages to {}: {error}", args.dir.display()))
    })?;
    Ok(Exit::Done)
}

fn add(page: &std::path::Path, text: &str) -> std::io::Result<()> {
    let before = std::fs::read_to_string(page)?;
    std::fs::write(page, format!("{}\n{text}", before.trim_end()))
}

/// Each page's examples as a section; a line beginning with `$` is a command, others say what it does.
fn examples() -> impl Iterator<Item = (String, String)> {
    EXAMPLES.split("\n\n").filter_map(|block| {
        let (command, lines) = block.trim().split_once('\n')?;
        let mut section = ".SH EXAMPLES\n".to_owned();
        for line in lines.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => section.push_str(&format!(".PP\n.nf\n{}\n.fi\n", escaped(command))),
                None => section.push_str(&format!(".RS 4\n{}\n.RE\n", escaped(line))),
            }
        }
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
        assert!(examples().count() > 10);
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
