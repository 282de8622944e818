//! Every hole has a test that is expected to catch it, and is named in ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::path::Path;

use relatch::model::Hole;

#[test]
fn every_hole_is_in_the_table_and_in_the_architecture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let table = read("tests/holes.txt");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let listed: BTreeSet<String> = rows.iter().map(|row| row[0].to_owned()).collect();
    let all: BTreeSet<String> = Hole::all().map(|hole| hole.to_string()).collect();
    assert_eq!(listed, all);
    let architecture = read("ARCHITECTURE.md");
    for row in &rows {
        let name = row[2].rsplit("::").next().unwrap();
        assert!(
            architecture.contains(&format!("`{}`", row[0])),
            "ARCHITECTURE.md does not name hole {}",
            row[0]
        );
        assert!(architecture.contains(&format!("`{name}`")), "ARCHITECTURE.md does not name {name}");
    }
}
