//! `relatch bench`: how fast relatch is on this machine, beside what its disk can do at all.
//!
//! Every figure of the page is taken in this one run, on one disk. What a figure rests on stands beside it: the
//! disk's own rate before and after, the time that the processors worked, how many syncs there were.

mod commits;
mod cost;
mod criterion;
mod disk;
mod fill;
mod first_byte;
mod machine;
mod memory;
mod page;
mod plan;
mod recoveries;
mod report;
mod spread;
mod steps;
mod table;
mod voter;
mod waiting;
mod workload;
mod world;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};

use super::exit::Exit;
use super::output::Output;
use super::stage::{Folder, Interrupt};
use crate::storage::{FileSystem, replace_file};
use disk::Disk;
use machine::Machine;
use plan::Plan;
use report::Report;
use steps::Steps;

/// Measure relatch on this machine, and print a page of what was found.
///
/// It works in a new folder below --dir, on the disk that is to be measured, and measures that disk's own rate of
/// fdatasync beside everything else. The Docker Engine is simulated; nothing of yours is restarted. Takes less than
/// ten minutes; the figures of a machine that does other work meanwhile mean little. Exit codes: 0 measured, also
/// where an aim was missed, 1 error, 2 wrong usage.
#[derive(Debug, clap::Args)]
pub(super) struct Bench {
    /// Work below this folder, and so on its disk [default: where temporary files go]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the page to this file, and not to stdout
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Do little of everything: it shows within a minute that all of it works
    #[arg(long)]
    quick: bool,
    /// Take what `cargo bench --bench ledger` measured from criterion's folder
    #[arg(long, value_name = "DIR")]
    criterion: Option<PathBuf>,
    /// The commit that this was built from, for the page
    #[arg(long, value_name = "ID")]
    commit: Option<String>,
}

impl Bench {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<Exit> {
        let mut interrupt = Interrupt::listen()?;
        let report = tokio::select! {
            report = self.measure(output) => report?,
            // Leaving here ends the processes and removes the folders.
            () = interrupt.raised() => bail!("interrupted; nothing was written"),
        };
        if let Some(page) = &self.page {
            replace_file(page, page::page(&report).as_bytes())?;
            output.note(format!("the page is {}", page.display()));
        }
        if output.is_json() {
            output.text(&format!("{:#}\n", serde_json::to_value(&report)?))?;
        } else if self.page.is_none() {
            output.text(&page::page(&report))?;
        }
        Ok(Exit::Done)
    }

    async fn measure(&self, output: &Output) -> anyhow::Result<Report> {
        let steps = Steps::listen()?;
        let plan = if self.quick { Plan::quick() } else { Plan::full() };
        let criterion = self.criterion.as_deref().map(criterion::read).transpose()?;
        let parent = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        let file_system = FileSystem::of(&parent)?;
        if file_system.is_in_memory {
            bail!(
                "{} is {}: a sync costs nothing there; name a folder on a disk with --dir",
                parent.display(),
                file_system.kind
            );
        }
        let folder = Folder::make_in(&parent, "relatch-bench").context("--dir says where")?;
        let machine = Machine::look(folder.path(), &file_system)?;

        let (begun, all, own) = (Instant::now(), cost::all_cpu()?, cost::own_cpu_in_all()?);
        output.note("how much a commit writes");
        let bytes = commits::bytes_per_commit(folder.path()).await?;
        let mut disk = Disk::new(folder.path(), bytes, plan.probe);
        disk.probe("before everything").await?;
        let mut commits = Vec::new();
        for requesters in &plan.requesters {
            output.note(format!("interlocks, committed and applied, for {requesters} requesters"));
            commits.push(commits::measure(&mut disk, &plan, *requesters).await?);
        }
        output.note("from the request to the first byte");
        let first_byte = first_byte::measure(&mut disk, &plan, &steps).await?;
        let mut recoveries = Vec::new();
        for requesters in &plan.requesters {
            output.note(format!("whole recoveries, for {requesters} requesters"));
            recoveries.push(recoveries::measure(&mut disk, &plan, *requesters).await?);
        }
        output.note("memory, and how long a start takes");
        let memory = memory::measure(&mut disk, &plan, output).await?;
        let ours = cost::own_cpu_in_all()?.saturating_sub(own);
        let others = cost::all_cpu()?.saturating_sub(all).saturating_sub(ours);
        let others_cores = others.as_secs_f64() / begun.elapsed().as_secs_f64();
        let (probes, bytes_per_sync) = (disk.probes, bytes);
        let commit = self.commit.clone();
        let quick = self.quick;
        Ok(Report {
            quick,
            commit,
            machine,
            others_cores,
            bytes_per_sync,
            probes,
            commits,
            first_byte,
            recoveries,
            memory,
            criterion,
        })
    }
}
