//! The `relatch` binary.

fn main() {}
