//! One subject of `tests/fuzz`, named by `FUZZ_SUBJECT`. One target for all of them: it takes minutes to build.

#![no_main]

#[path = "../../tests/fuzz/checks/mod.rs"]
mod checks;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static SUBJECT: LazyLock<checks::Subject> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_SUBJECT").expect("FUZZ_SUBJECT names a subject of tests/fuzz");
    checks::subject(&name)
});

fuzz_target!(|data: &[u8]| (SUBJECT.check)(data));
