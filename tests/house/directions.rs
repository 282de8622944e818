//! Between the folders of `src/`, imports run down only; between files, never in a circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use crate::imports::{Crate, Import};
use crate::source::{SourceFile, read_sources};

/// The map of ARCHITECTURE.md: each folder, and all that it may import. `main.rs` stands for itself.
const MAP: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("env", &["model"]),
    ("ledger", &["model"]),
    ("storage", &["model", "env"]),
    ("rpc", &["model", "env"]),
    ("docker", &["model", "env"]),
    // Agrees and keeps; knows nothing about Docker.
    ("consensus", &["model", "env", "ledger", "storage", "rpc"]),
    // Sends; knows nothing about Raft.
    ("dispatch", &["model", "env", "ledger", "storage", "rpc", "docker"]),
    ("coordinator", &["model", "env", "ledger", "storage", "rpc", "docker", "dispatch", "consensus"]),
    ("api", BELOW_THE_SERVICES),
    ("web", BELOW_THE_SERVICES),
    ("monitor", BELOW_THE_SERVICES),
    ("node", BELOW_THE_ENTRANCE),
    (
        "sim",
        &[
            "model",
            "env",
            "ledger",
            "storage",
            "rpc",
            "docker",
            "dispatch",
            "consensus",
            "coordinator",
            "api",
            "web",
            "monitor",
            "node",
        ],
    ),
    (
        "cli",
        &[
            "model",
            "env",
            "ledger",
            "storage",
            "rpc",
            "docker",
            "dispatch",
            "consensus",
            "coordinator",
            "api",
            "web",
            "monitor",
            "node",
            "sim",
        ],
    ),
    ("main.rs", &["cli", "node", "model", "env"]),
];

const BELOW_THE_SERVICES: &[&str] =
    &["model", "env", "ledger", "storage", "rpc", "docker", "dispatch", "consensus", "coordinator"];
const BELOW_THE_ENTRANCE: &[&str] = &[
    "model",
    "env",
    "ledger",
    "storage",
    "rpc",
    "docker",
    "dispatch",
    "consensus",
    "coordinator",
    "api",
    "web",
    "monitor",
];

#[test]
fn imports_between_folders_run_down_only() {
    let sources = read_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let imports = Crate::of(&sources).imports();
    let found = wrong_ways(&sources, &imports);
    assert!(found.is_empty(), "imports that the map does not have:\n{}", found.join("\n"));
    println!("{} files, {} paths inside the crate, all running down", sources.len(), imports.len());
}

#[test]
fn no_two_files_import_each_other_even_around_a_corner() {
    let sources = read_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let found = circles(&Crate::of(&sources).imports());
    assert!(found.is_empty(), "files that import each other:\n{}", found.join("\n"));
}

#[test]
fn the_map_itself_runs_down() {
    for (position, (folder, below)) in MAP.iter().enumerate() {
        for target in *below {
            let at = MAP.iter().position(|(name, _)| name == target);
            assert!(
                at.is_some_and(|at| at < position),
                "{folder} may import {target}, which is not below it"
            );
        }
    }
    let never = |a: &str, b: &str| MAP.iter().any(|(folder, below)| *folder == a && !below.contains(&b));
    assert!(never("consensus", "docker") && never("docker", "consensus"), "consensus and docker never meet");
}

/// Says of each import that the map lacks where it is.
fn wrong_ways(sources: &[SourceFile], imports: &[Import]) -> Vec<String> {
    let mut found = BTreeSet::new();
    let below = |folder: &str| MAP.iter().find(|(name, _)| *name == folder).map(|(_, below)| *below);
    let folder_of = |file: &str| match file {
        "main.rs" => "main.rs".to_owned(),
        _ => file.split('/').next().unwrap_or(file).trim_end_matches(".rs").to_owned(),
    };
    for source in sources.iter().filter(|source| source.path != "lib.rs") {
        if below(&folder_of(&source.path)).is_none() {
            found.insert(format!("{}: no such folder is on the map", source.path));
        }
    }
    for import in imports.iter().filter(|import| import.file != "lib.rs") {
        let folder = folder_of(&import.file);
        // Both what is written and where it leads: a re-export is no way around the map.
        for target in [import.path[0].clone(), folder_of(&import.target)] {
            let allowed =
                target == folder || below(&folder).is_some_and(|below| below.contains(&target.as_str()));
            if !allowed {
                let path = import.path.join("::");
                found.insert(format!(
                    "{}:{}: {folder} may not import {target} (crate::{path})",
                    import.file, import.line
                ));
            }
        }
    }
    found.into_iter().collect()
}

/// One line for each file that can reach itself again, with the shortest way.
fn circles(imports: &[Import]) -> Vec<String> {
    let mut edges: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for import in imports {
        // What is passed on or named as a whole is not needed here.
        if import.is_reexport || import.is_bare_module || import.file == import.target {
            continue;
        }
        edges.entry(&import.file).or_default().entry(&import.target).or_insert(import.line);
    }
    let mut found = BTreeMap::new();
    for start in edges.keys() {
        if let Some(way) = way_back(&edges, start) {
            let mut members = way.clone();
            members.sort_unstable();
            let line = |from: &str, to: &str| edges[from][to];
            let mut steps: Vec<String> =
                way.windows(2).map(|pair| format!("{}:{}", pair[0], line(pair[0], pair[1]))).collect();
            let last = way[way.len() - 1];
            steps.push(format!("{last}:{} → {start}", line(last, start)));
            found.entry(members).or_insert_with(|| steps.join(" → "));
        }
    }
    found.into_values().collect()
}

fn way_back<'a>(edges: &BTreeMap<&'a str, BTreeMap<&'a str, usize>>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for next in edges.get(file).into_iter().flat_map(|targets| targets.keys()) {
            if *next == start {
                let mut way = vec![file];
                while let Some(before) = came_from.get(way[way.len() - 1]) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, file);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod planted {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> (Vec<SourceFile>, Vec<Import>) {
        let sources: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        let imports = Crate::of(&sources).imports();
        (sources, imports)
    }

    fn wrong(files: &[(&str, &str)]) -> Vec<String> {
        let (sources, imports) = crate_of(files);
        wrong_ways(&sources, &imports)
    }

    const LIB: (&str, &str) =
        ("lib.rs", "pub mod model; pub mod ledger; pub mod docker; pub mod consensus; pub mod rpc;");

    #[test]
    fn an_import_that_climbs_is_caught_however_it_is_written() {
        let model = ("model/mod.rs", "pub struct Run;");
        for climbing in [
            "use crate::ledger::State;",
            "use crate::{ledger::{self}};",
            "use super::ledger;",
            "fn f() -> crate::ledger::State { loop {} }",
            "pub use crate::ledger::*;",
            "macro_rules! m { () => { $crate::ledger::f() } }",
        ] {
            let found =
                wrong(&[LIB, model, ("ledger/mod.rs", "pub struct State;"), ("model/mod.rs", climbing)]);
            assert_eq!(found.len(), 1, "{climbing}: {found:?}");
            assert!(found[0].starts_with("model/mod.rs:1: model may not import ledger"), "{found:?}");
        }
    }

    #[test]
    fn consensus_and_docker_never_meet() {
        let docker = ("docker/mod.rs", "pub struct Post; use crate::consensus::Raft;");
        let consensus = ("consensus/mod.rs", "pub struct Raft; use crate::docker::Post;");
        assert_eq!(wrong(&[LIB, docker, consensus]).len(), 2);
    }

    #[test]
    fn an_unknown_folder_and_an_item_of_the_root_are_caught() {
        let found = wrong(&[LIB, ("helpers.rs", ""), ("ledger/mod.rs", "use crate::Error;")]);
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn what_the_map_has_passes() {
        let found = wrong(&[
            LIB,
            ("main.rs", "fn main() { relatch::cli::run() }"),
            ("model/mod.rs", "mod id; pub use id::Id;"),
            (
                "model/id.rs",
                "pub struct Id; // crate::docker::Post\n#[cfg(test)] mod tests { use crate::docker::Post; }",
            ),
            ("ledger/mod.rs", "use crate::model::Id; const TEXT: &str = \"crate::docker::Post\";"),
            ("cli/mod.rs", "pub fn run() { crate::log!(); }"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_circle_of_three_files_is_caught_through_re_exports() {
        let (_, imports) = crate_of(&[
            LIB,
            ("ledger/mod.rs", "mod a; mod b; mod c; pub use a::A; pub use b::B; pub use c::C;"),
            ("ledger/a.rs", "use super::B; pub struct A;"),
            ("ledger/b.rs", "use crate::ledger::C; pub struct B;"),
            ("ledger/c.rs", "pub struct C; fn f() { super::a::A; }"),
        ]);
        assert_eq!(circles(&imports), ["ledger/a.rs:1 → ledger/b.rs:1 → ledger/c.rs:1 → ledger/a.rs"]);
    }

    #[test]
    fn a_parent_and_a_child_that_need_each_other_are_a_circle() {
        let (_, imports) = crate_of(&[
            LIB,
            ("ledger/mod.rs", "mod a; pub struct Top(a::A);"),
            ("ledger/a.rs", "use super::Top; pub struct A;"),
        ]);
        assert_eq!(circles(&imports).len(), 1);
    }

    #[test]
    fn a_module_that_only_passes_names_on_is_no_circle() {
        let (_, imports) = crate_of(&[
            LIB,
            ("ledger/mod.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("ledger/a.rs", "pub struct A;"),
            ("ledger/b.rs", "use crate::ledger::{self, A}; pub struct B(ledger::A);"),
        ]);
        assert_eq!(circles(&imports), Vec::<String>::new());
    }
}
