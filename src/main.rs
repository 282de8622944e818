//! The `relatch` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    relatch::cli::main()
}
