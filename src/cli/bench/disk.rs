//! What the disk can do at all: append so much, and sync.

use std::fs::{File, OpenOptions, remove_file};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::spread::{Spread, per_s};

/// The disk under test, and what was measured of it by now.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    bytes: usize,
    probe_for: Duration,
    pub(super) probes: Vec<Probe>,
}

/// One measurement of the disk alone.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Probe {
    /// When, as in `before everything`.
    pub(super) when: String,
    /// One append and its fdatasync.
    pub(super) sync: Spread,
    /// One after the other.
    pub(super) syncs_per_s: f64,
}

impl Disk {
    /// `bytes` is what one commit writes; a probe appends as much.
    pub(super) fn new(folder: &Path, bytes: usize, probe_for: Duration) -> Self {
        Self { folder: folder.to_owned(), bytes, probe_for, probes: Vec::new() }
    }

    /// Where the disk is written to.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Measures the disk alone, now.
    pub(super) async fn probe(&mut self, when: &str) -> anyhow::Result<()> {
        let (path, bytes, probe_for) = (self.folder.join("probe"), self.bytes, self.probe_for);
        let probed = spawn_blocking(move || {
            let times = syncs(&path, bytes, probe_for);
            // A probe that failed may have left it.
            let _ = remove_file(&path);
            times.with_context(|| format!("measuring the disk by {}", path.display()))
        });
        let times = probed.await??;
        let took: Duration = times.iter().sum();
        let syncs_per_s = per_s(times.len() as u64, took);
        self.probes.push(Probe { when: when.to_owned(), sync: Spread::of(times), syncs_per_s });
        Ok(())
    }

    /// The median of a sync in what was measured last and before that: around what was measured in between.
    pub(super) fn sync_around_us(&self) -> f64 {
        let around: Vec<f64> = self.probes.iter().rev().take(2).map(|probe| probe.sync.p50_us).collect();
        around.iter().sum::<f64>() / around.len().max(1) as f64
    }
}

/// Appends and syncs, again and again. The file grows, as a log does.
fn syncs(path: &Path, bytes: usize, probe_for: Duration) -> std::io::Result<Vec<Duration>> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    let append = vec![0x5a; bytes];
    let (begun, mut times) = (Instant::now(), Vec::new());
    while times.is_empty() || begun.elapsed() < probe_for {
        let at = Instant::now();
        file.write_all(&append)?;
        file.sync_data()?;
        times.push(at.elapsed());
    }
    Ok(times)
}
