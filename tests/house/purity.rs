//! `model` and `ledger` decide, and so touch nothing: they compile alone, with `serde` and `thiserror`
//! as their only dependencies, and name no clock, file, socket, randomness, float or hash order.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::imports::written_paths;
use crate::source::{SourceFile, code, read_sources};

const PURE: [&str; 2] = ["model", "ledger"];

/// The only crates that they may use.
const DEPENDENCIES: [&str; 2] = ["serde", "thiserror"];

/// Parts of the standard library that reach outside, or differ from one run to the next.
const FORBIDDEN_IN_STD: [&str; 10] =
    ["time", "net", "fs", "env", "io", "process", "thread", "os", "hash", "random"];

const FORBIDDEN_WORDS: [&str; 17] = [
    "HashMap",
    "HashSet",
    "RandomState",
    "DefaultHasher",
    "Instant",
    "SystemTime",
    "f32",
    "f64",
    "async",
    "await",
    "unsafe",
    "rand",
    "getrandom",
    "println",
    "eprintln",
    "dbg",
    "thread_local",
];

#[test]
fn model_and_ledger_compile_alone() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("purity");
    let alone = scratch_crate(&folder.join("alone"), "");
    let (passed, output) = check(&alone, &folder);
    assert!(passed, "model and ledger need more than serde and thiserror:\n{output}");

    // The same test fails when they reach for more, or else it would prove nothing.
    let reaching = scratch_crate(
        &folder.join("reaching"),
        "\nuse tokio::time::sleep as _;\nuse crate::coordinator as _;\n",
    );
    let (passed, output) = check(&reaching, &folder);
    assert!(!passed, "a planted import of tokio and of coordinator went unnoticed:\n{output}");
    assert!(
        output.contains("tokio") && output.contains("coordinator"),
        "it failed for another reason:\n{output}"
    );
}

#[test]
fn model_and_ledger_name_nothing_impure() {
    let sources: Vec<SourceFile> = PURE.iter().flat_map(|part| sources_of(part)).collect();
    // Golden files lie on a disk.
    let but_golden = sources.iter().filter(|source| !source.path.ends_with("ledger/tests/golden.rs"));
    let found: Vec<String> = but_golden.flat_map(impurities).collect();
    assert!(found.is_empty(), "in what must be pure:\n{}", found.join("\n"));
}

#[test]
fn each_impurity_is_caught_when_planted() {
    for planted in [
        "use std::time::Instant;",
        "use std::{fmt, time::{self}};",
        "fn f() { let now = std::time::SystemTime::now(); }",
        "use std::collections::HashMap;",
        "use std::collections::{BTreeMap, HashSet};",
        "struct Rate(f64);",
        "const HALF: X = X(0.5);",
        "async fn f() {}",
        "fn f() { core::hash::Hash::hash(); }",
        "fn f() { println!(\"x\"); }",
        "fn f() { std::env::var(\"X\"); }",
        "use std::net::TcpStream;",
        "fn f() { rand::random::<u64>(); }",
    ] {
        let file =
            SourceFile { path: "ledger/planted.rs".to_owned(), text: format!("//! Planted.\n{planted}\n") };
        let found = impurities(&file);
        assert!(!found.is_empty(), "unnoticed: {planted}");
        assert!(found[0].starts_with("ledger/planted.rs:2: "), "{found:?}");
    }
}

#[test]
fn pure_code_may_speak_of_impure_things() {
    let file = SourceFile {
        path: "ledger/fine.rs".to_owned(),
        text: "//! Neither std::time nor a HashMap.\n/* async */ use std::collections::BTreeMap;\n\
               const WHY: &str = \"no f64\"; struct EngineInstant(u64);\n\
               #[cfg(test)] mod tests { use std::collections::HashMap; }\n"
            .to_owned(),
    };
    assert_eq!(impurities(&file), Vec::<String>::new());
}

fn impurities(file: &SourceFile) -> Vec<String> {
    let (tokens, _) = code(&file.text);
    let mut found = Vec::new();
    for path in written_paths(&tokens) {
        let of_std = matches!(path.segments[0].as_str(), "std" | "core" | "alloc");
        if of_std && path.segments.get(1).is_some_and(|part| FORBIDDEN_IN_STD.contains(&part.as_str())) {
            found.push(format!("{}:{}: {}", file.path, path.line, path.segments.join("::")));
        }
    }
    for token in &tokens {
        if FORBIDDEN_WORDS.contains(&token.text.as_str()) {
            found.push(format!("{}:{}: {}", file.path, token.line, token.text));
        } else if token.is_float() {
            found.push(format!("{}:{}: the float {}", file.path, token.line, token.text));
        }
    }
    found
}

fn sources_of(part: &str) -> Vec<SourceFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(part);
    let mut sources = read_sources(&folder);
    assert!(!sources.is_empty(), "src/{part} is empty");
    for source in &mut sources {
        source.path = format!("{part}/{}", source.path);
    }
    sources
}

/// A crate of nothing but `model` and `ledger`, with `planted` at the end of the ledger.
fn scratch_crate(folder: &Path, planted: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("reading Cargo.toml");
    let line_of = |key: &str| {
        let wanted = format!("{key} = ");
        manifest
            .lines()
            .find(|line| line.starts_with(&wanted))
            .unwrap_or_else(|| panic!("Cargo.toml has no line '{wanted}…'"))
            .to_owned()
    };
    let dependencies = DEPENDENCIES.map(line_of).join("\n");
    let edition = line_of("edition");
    // What an earlier run left may name files that are gone.
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("removing an earlier scratch crate");
    }
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("it lies in the folder")).expect("making a folder");
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
    };
    write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"relatch-pure\"\nversion = \"0.0.0\"\n{edition}\n\n[workspace]\n\n\
             [features]\nfailpoints = []\n\n[dependencies]\n{dependencies}\n"
        ),
    );
    // The same versions as everywhere, which are there already: cargo is told not to ask for others.
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).expect("reading Cargo.lock");
    write("Cargo.lock", &lock);
    write("src/lib.rs", &PURE.map(|part| format!("pub mod {part};\n")).concat());
    for part in PURE {
        for source in sources_of(part) {
            let end = if source.path == "ledger/mod.rs" { planted } else { "" };
            write(&format!("src/{}", source.path), &format!("{}{end}", source.text));
        }
    }
    folder.to_owned()
}

fn check(scratch: &Path, folder: &Path) -> (bool, String) {
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet", "--manifest-path"])
        .arg(scratch.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .output()
        .expect("running cargo check");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}
