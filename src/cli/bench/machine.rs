//! The machine that is measured.

use std::fs::read_to_string;
use std::path::Path;

use rustix::system::uname;
use serde::Serialize;

use crate::docker::format_instant;
use crate::env::{Clock, SystemClock};
use crate::model::EngineInstant;
use crate::storage::FileSystem;

/// The machine that is measured, as it describes itself.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Machine {
    /// When.
    pub(super) date: String,
    /// The processor's model.
    pub(super) cpu: String,
    /// How many may be used at the same time.
    pub(super) cores: usize,
    /// In MiB.
    pub(super) memory_mib: u64,
    /// The kernel's name and release.
    pub(super) kernel: String,
    /// The file system that is written to.
    pub(super) file_system: String,
    /// The device under it, and its mount options.
    pub(super) disk: String,
}

impl Machine {
    pub(super) fn look(folder: &Path, file_system: &FileSystem) -> anyhow::Result<Self> {
        let (cpuinfo, meminfo) = (read_to_string("/proc/cpuinfo")?, read_to_string("/proc/meminfo")?);
        let now_s = i64::try_from(SystemClock.wall_ms() / 1000)?;
        let kernel = uname();
        Ok(Self {
            date: format_instant(EngineInstant::new(now_s, 0)?)[..16].replace('T', " ") + " UTC",
            // Some architectures give no name.
            cpu: field(&cpuinfo, "model name").unwrap_or(std::env::consts::ARCH).to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            memory_mib: memory_mib(&meminfo),
            kernel: format!("{} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy()),
            file_system: file_system.kind.clone(),
            disk: disk(&read_to_string("/proc/self/mounts")?, &folder.canonicalize()?),
        })
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

fn memory_mib(meminfo: &str) -> u64 {
    let kib =
        field(meminfo, "MemTotal").and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

/// The mount that a folder lies on: of those above it, the nearest, and of several there, the last.
fn disk(mounts: &str, folder: &Path) -> String {
    let mount = |line: &str| {
        let mut fields = line.split_whitespace().map(str::to_owned);
        Some((fields.next()?, fields.next()?, fields.nth(1)?))
    };
    let above = mounts.lines().filter_map(mount).filter(|(_, at, _)| folder.starts_with(at));
    let nearest = above.max_by_key(|(_, at, _)| Path::new(at).components().count());
    nearest.map_or_else(|| "unknown".to_owned(), |(device, _, options)| format!("{device} ({options})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_lies_on_the_nearest_mount_above_it() {
        let mounts = "/dev/a / ext4 rw 0 0\n/dev/b /data xfs rw,noatime 0 0\n/dev/c /data2 ext4 rw 0 0\n";
        let disk = |folder: &str| disk(mounts, Path::new(folder));
        assert_eq!(disk("/data/x"), "/dev/b (rw,noatime)");
        assert_eq!(disk("/data3"), "/dev/a (rw)");
        assert_eq!(super::disk("", Path::new("/x")), "unknown");
    }
}
