//! The `larder` program: everything is in the library's `cli` room.

use std::process::ExitCode;

fn main() -> ExitCode {
    larder::cli::main(std::env::args_os())
}
