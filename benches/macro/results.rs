//! `benches/RESULTS.md`: one section for each scenario, replaced when it is run again.

use std::path::PathBuf;
use std::process::Command;

const HEAD: &str = "# Measured\n\nWhat `cargo bench --bench macro` and `cargo bench --bench index` last showed. Ratios count; figures depend on \
    the machine and on what it does beside.\n";

/// Puts a table in the place of its section.
pub(crate) fn save(name: &str, table: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/RESULTS.md");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| HEAD.to_owned());
    let mut sections: Vec<String> = text.split("\n## ").map(ToOwned::to_owned).collect();
    let section = format!("{name}\n\n{}\n\n{}\n", machine(), table.trim_end());
    let own = |known: &&mut String| known.lines().next() == Some(name);
    match sections.iter_mut().skip(1).find(own) {
        Some(known) => *known = section,
        None => sections.push(section),
    }
    std::fs::write(&file, sections.join("\n## ")).unwrap();
}

/// On what, and of what.
fn machine() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let field = |name| processors.lines().find(|line| line.starts_with(name))?.split_once(": ");
    let model = field("model name").map_or("an unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().unwrap();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let memory: u64 = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let commit = Command::new("git").args(["describe", "--always", "--dirty"]).output().unwrap();
    let commit = String::from_utf8_lossy(&commit.stdout).trim().to_owned();
    let memory = (memory + (1 << 19)) >> 20;
    format!("{cores} × {model}, {memory} GiB, Linux {}; commit {commit}.", kernel.trim())
}
