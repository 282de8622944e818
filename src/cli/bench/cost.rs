//! What a process cost: processor time, bytes written, memory. All of it is the kernel's own word.

use std::fs::read_to_string;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, getpid};

/// The kernel tells processor time in ticks of so long, whatever it counts in itself.
const TICK_MS: u64 = 10;

/// The time that processors worked for a process and its threads until now.
pub(super) fn cpu(pid: Pid) -> anyhow::Result<Duration> {
    // The 14th and 15th field.
    stat(pid, 2)
}

/// The same of this process.
pub(super) fn own_cpu() -> anyhow::Result<Duration> {
    cpu(getpid())
}

/// The same of this process, and of all that it started and that have ended.
pub(super) fn own_cpu_in_all() -> anyhow::Result<Duration> {
    // And the 16th and 17th.
    stat(getpid(), 4)
}

/// The time that processors worked for anybody.
pub(super) fn all_cpu() -> anyhow::Result<Duration> {
    let path = "/proc/stat";
    let text = read_to_string(path).with_context(|| format!("reading {path}"))?;
    // user, nice, system; then idle and waiting for a disk; then interrupts. What is stolen by other machines is
    // nobody's work here.
    let fields = text.lines().next().map(|line| line.split_whitespace().skip(1).map(str::parse::<u64>));
    let ticks: Vec<u64> = fields.into_iter().flatten().collect::<Result<_, _>>()?;
    let busy = ticks.iter().take(3).chain(ticks.iter().skip(5).take(2)).sum::<u64>();
    Ok(Duration::from_millis(busy * TICK_MS))
}

fn stat(pid: Pid, times: usize) -> anyhow::Result<Duration> {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let text = read_to_string(&path).with_context(|| format!("reading {path}"))?;
    // The name, in brackets, may hold anything. Then comes the state, as the 3rd field.
    let fields = text.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().skip(11).take(times));
    let ticks: Option<Vec<u64>> =
        fields.map(|fields| fields.filter_map(|field| field.parse().ok()).collect());
    let ticks =
        ticks.filter(|ticks| ticks.len() == times).with_context(|| format!("{path} has another form"))?;
    Ok(Duration::from_millis(ticks.iter().sum::<u64>() * TICK_MS))
}

/// The bytes that this process has handed to write calls until now.
pub(super) fn own_written_bytes() -> anyhow::Result<u64> {
    let path = "/proc/self/io";
    let text = read_to_string(path).with_context(|| format!("reading {path}"))?;
    number(&text, "wchar:").with_context(|| format!("{path} has another form"))
}

/// Memory of a process, in KiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resident {
    /// Now.
    pub(super) now_kib: u64,
    /// The most that it ever was.
    pub(super) peak_kib: u64,
}

/// How much of a process is in memory.
pub(super) fn resident(pid: Pid) -> anyhow::Result<Resident> {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let text = read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let of = |name: &str| number(&text, name).with_context(|| format!("{path} has no {name}"));
    Ok(Resident { now_kib: of("VmRSS:")?, peak_kib: of("VmHWM:")? })
}

fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_this_process_costs() {
        let before = own_cpu().unwrap();
        let mut sum = 0_u64;
        while own_cpu().unwrap() == before {
            sum = std::hint::black_box(sum + 1);
        }
        let resident = resident(getpid()).unwrap();
        assert!(resident.now_kib > 0 && resident.now_kib <= resident.peak_kib, "{resident:?}");
        own_written_bytes().unwrap();
        assert!(own_cpu().unwrap() <= own_cpu_in_all().unwrap());
        assert!(own_cpu().unwrap() <= all_cpu().unwrap());
    }
}
