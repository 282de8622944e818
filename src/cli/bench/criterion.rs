//! What criterion found of the ledger alone (`benches/ledger.rs`).

use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;

/// The entries that one turn of `benches/ledger.rs` applies.
const ENTRIES_PER_TURN: f64 = 3.0;

/// The ledger alone, without disk or Raft.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Applies {
    /// In a ledger that holds so many ended runs.
    pub(super) ended_runs: u64,
    /// The median.
    pub(super) entries_per_s: f64,
    /// The bounds of the median's confidence interval.
    pub(super) least_per_s: f64,
    pub(super) most_per_s: f64,
}

/// Reads criterion's own results, as in `target/criterion`.
pub(super) fn read(folder: &Path) -> anyhow::Result<Vec<Applies>> {
    let group = folder.join("apply");
    let advice = || format!("reading {}: run `cargo bench --bench ledger` first", group.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&group).with_context(advice)? {
        let entry = entry?;
        // Beside the benchmarks there may be a folder with reports.
        let Some(ended_runs) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let path = entry.path().join("new/estimates.json");
        let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let applies = applies(ended_runs, &serde_json::from_slice(&text)?);
        found.push(applies.with_context(|| format!("{} has another form", path.display()))?);
    }
    found.sort_by_key(|applies| applies.ended_runs);
    Ok(found)
}

fn applies(ended_runs: u64, estimates: &Value) -> Option<Applies> {
    let median = &estimates["median"];
    let rate = |turn_ns: &Value| turn_ns.as_f64().map(|turn_ns| ENTRIES_PER_TURN * 1e9 / turn_ns);
    Some(Applies {
        ended_runs,
        entries_per_s: rate(&median["point_estimate"])?,
        least_per_s: rate(&median["confidence_interval"]["upper_bound"])?,
        most_per_s: rate(&median["confidence_interval"]["lower_bound"])?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_of_three_entries_in_so_many_nanoseconds_is_a_rate() {
        let interval = json!({ "lower_bound": 2_000.0, "upper_bound": 6_000.0 });
        let estimates = json!({ "median": { "point_estimate": 3_000.0, "confidence_interval": interval } });
        let found = applies(7, &estimates).unwrap();
        assert_eq!(found.entries_per_s.round(), 1_000_000.0);
        assert_eq!((found.least_per_s.round(), found.most_per_s.round()), (500_000.0, 1_500_000.0));
        assert!(applies(7, &json!({})).is_none());
    }

    #[test]
    fn results_that_are_not_there_say_how_to_make_them() {
        let folder = tempfile::tempdir().unwrap();
        let error = format!("{:#}", read(folder.path()).unwrap_err());
        assert!(error.contains("cargo bench --bench ledger"), "{error}");
        let made = folder.path().join("apply/0/new");
        std::fs::create_dir_all(&made).unwrap();
        let interval = json!({ "lower_bound": 1.0, "upper_bound": 1.0 });
        let estimates = json!({ "median": { "point_estimate": 1.0, "confidence_interval": interval } });
        std::fs::write(made.join("estimates.json"), estimates.to_string()).unwrap();
        std::fs::create_dir(folder.path().join("apply/report")).unwrap();
        let found: Vec<u64> = read(folder.path()).unwrap().iter().map(|applies| applies.ended_runs).collect();
        assert_eq!(found, [0]);
    }
}
