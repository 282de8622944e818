//! All that was measured in one run.

use serde::Serialize;

use super::commits::Committed;
use super::criterion::Applies;
use super::disk::Probe;
use super::first_byte::FirstByte;
use super::machine::Machine;
use super::memory::Needs;
use super::recoveries::Recovered;

/// All that was measured in one run.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// True if little was done of everything.
    pub(super) quick: bool,
    /// What this was built from, if it was said.
    pub(super) commit: Option<String>,
    pub(super) machine: Machine,
    /// Processor time per second that everybody else took meanwhile.
    pub(super) others_cores: f64,
    /// What one commit writes, and so what each probe of the disk does.
    pub(super) bytes_per_sync: usize,
    pub(super) probes: Vec<Probe>,
    pub(super) commits: Vec<Committed>,
    pub(super) first_byte: FirstByte,
    pub(super) recoveries: Vec<Recovered>,
    pub(super) memory: Needs,
    /// What criterion had found, if its folder was named.
    pub(super) criterion: Option<Vec<Applies>>,
}

/// An aim, and what came of it.
#[derive(Debug)]
pub(super) struct Aim {
    pub(super) aim: String,
    pub(super) found: String,
    pub(super) reached: bool,
    /// True if it is about time, of which other work on the machine takes some.
    pub(super) timed: bool,
    /// What the figure rests on.
    pub(super) why: String,
}

/// Of the median to the first byte, what two syncs of this disk take at least.
const SHARE_OF_SYNCS: f64 = 0.5;
const TIMES_THE_RATE_OF_ONE: f64 = 20.0;
const IDLE_MIB: f64 = 60.0;
const REOPENED_S: f64 = 2.0;

/// Other work that takes this part of the processors disturbs.
const DISTURBS: f64 = 0.1;

/// A disk whose own sync takes so many times as long at one time as at another is not one yardstick.
const MOVES: f64 = 4.0;

/// What is used to this part is the limit: the rest goes into waiting for each other.
const NEARLY_ALL: f64 = 0.8;

impl Report {
    /// Each aim, beside what was found.
    pub(super) fn aims(&self) -> Vec<Aim> {
        let mut aims = vec![self.of_the_first_byte()];
        aims.extend(self.of_many());
        let idle = self.memory.idle.resident_mib;
        aims.push(Aim {
            aim: format!("an idle node needs less than {IDLE_MIB:.0} MiB"),
            found: format!("{idle:.1} MiB"),
            reached: idle < IDLE_MIB,
            timed: false,
            why: format!(
                "resident memory of `relatch dev`; the most so far was {:.1} MiB",
                self.memory.idle.peak_mib
            ),
        });
        let large = self.memory.large;
        aims.push(Aim {
            aim: format!("a large ledger is open again in less than {REOPENED_S:.0} s"),
            found: format!("{:.2} s", large.serving_s),
            reached: large.serving_s < REOPENED_S,
            timed: true,
            why: format!(
                "from the start of the process until clients could connect: {} open and {} ended runs, {:.0} MiB on \
                 disk; what was open was replayed, and requests were answered, after {:.2} s",
                self.memory.open_runs, self.memory.ended_runs, self.memory.data_mib, large.admitting_s
            ),
        });
        aims
    }

    /// What else went on, if it was enough to decide nothing about time by this run.
    pub(super) fn disturbed_by(&self) -> Option<String> {
        let mut by = Vec::new();
        let cores = self.machine.cores;
        if self.others_cores > DISTURBS * cores as f64 {
            by.push(format!("other work took {:.2} of {cores} cores", self.others_cores));
        }
        let syncs = self.probes.iter().map(|probe| probe.sync.p50_us);
        let (least, most) =
            syncs.fold((f64::INFINITY, 0.0_f64), |(least, most), sync| (least.min(sync), most.max(sync)));
        if most > MOVES * least {
            by.push(format!("the disk's own sync took between {least:.0} and {most:.0} µs"));
        }
        (!by.is_empty()).then(|| by.join(", and "))
    }

    fn of_the_first_byte(&self) -> Aim {
        let first = &self.first_byte;
        let syncs = 2.0 * first.disk_sync_us;
        let rest = (first.total.p50_us - syncs).max(0.0);
        Aim {
            aim: "one requester pays for two syncs and little else".to_owned(),
            found: format!(
                "{:.1} syncs of this disk until the first byte: {:.2} ms, where a sync takes {:.2} ms",
                first.total.p50_us / first.disk_sync_us,
                first.total.p50_us / 1e3,
                first.disk_sync_us / 1e3
            ),
            reached: syncs >= SHARE_OF_SYNCS * first.total.p50_us,
            timed: true,
            why: format!(
                "beside the two syncs, {:.2} ms are spent on asking the engine four times, on gRPC and on tasks that \
                 wake each other, whatever the disk: where a sync takes more than {:.2} ms, the two are the larger part",
                rest / 1e3,
                rest / 2e3
            ),
        }
    }

    fn of_many(&self) -> Option<Aim> {
        let (one, many) = (self.commits.first()?, self.commits.last()?);
        let times = many.interlocks_per_s / one.interlocks_per_s;
        let disk = 1e6 / many.disk_sync_us;
        let cores = self.machine.cores;
        let bound = if many.cores_busy >= NEARLY_ALL * cores as f64 {
            format!("the processors are the limit: {:.2} of {cores} cores were busy", many.cores_busy)
        } else if many.machine_cores_busy >= NEARLY_ALL * cores as f64 {
            format!(
                "the processors were taken by something else: {:.2} of {cores} cores were busy, {:.2} of them with \
                 this; measure again when the machine is quiet",
                many.machine_cores_busy, many.cores_busy
            )
        } else if many.syncs_per_s >= NEARLY_ALL * disk {
            format!(
                "the disk is the limit: {:.0} syncs per second, where it can do {disk:.0}",
                many.syncs_per_s
            )
        } else {
            format!(
                "neither the processors ({:.2} of {cores} cores busy) nor the disk ({:.0} of {disk:.0} syncs per \
                 second) is the limit: one step after the other is",
                many.cores_busy, many.syncs_per_s
            )
        };
        Some(Aim {
            aim: format!(
                "{} requesters reach {TIMES_THE_RATE_OF_ONE:.0} times the rate of one",
                many.requesters
            ),
            found: format!(
                "{times:.1} times ({:.0} and {:.0} interlocks per second)",
                many.interlocks_per_s, one.interlocks_per_s
            ),
            reached: times >= TIMES_THE_RATE_OF_ONE,
            timed: true,
            why: format!("{bound}; {:.1} commits shared a sync", many.commits_per_sync),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bench::spread::Spread;

    fn committed(requesters: usize, interlocks_per_s: f64) -> Committed {
        // A disk that does 1,000 syncs per second.
        Committed { requesters, interlocks_per_s, disk_sync_us: 1_000.0, ..Committed::default() }
    }

    /// What is said of many requesters, where those figures were found.
    fn of_many(many: Committed) -> Aim {
        let machine = Machine { cores: 2, ..Machine::default() };
        let report = Report { machine, commits: vec![committed(1, 500.0), many], ..Report::default() };
        report.of_many().unwrap()
    }

    #[test]
    fn the_limit_that_is_named_is_the_one_that_the_figures_show() {
        let many = committed(256, 10_000.0);
        let aim = of_many(Committed { cores_busy: 1.9, syncs_per_s: 990.0, ..many.clone() });
        assert!(aim.reached && aim.why.contains("the processors are the limit"), "{aim:?}");
        let aim = of_many(Committed { cores_busy: 0.5, machine_cores_busy: 1.9, ..many.clone() });
        assert!(aim.why.contains("taken by something else: 1.90 of 2 cores were busy, 0.50"), "{aim:?}");
        let aim = of_many(Committed { cores_busy: 0.5, syncs_per_s: 990.0, ..many.clone() });
        assert!(aim.why.contains("the disk is the limit: 990"), "{aim:?}");
        let aim = of_many(Committed { cores_busy: 0.5, syncs_per_s: 100.0, ..many });
        assert!(aim.why.contains("neither the processors (0.50 of 2"), "{aim:?}");
        let aim = of_many(committed(256, 9_999.0));
        assert!(!aim.reached && aim.found.starts_with("20.0 times"), "{aim:?}");
    }

    #[test]
    fn nothing_about_time_is_decided_beside_other_work_or_on_a_disk_that_moves() {
        let probe = |p50_us| Probe {
            when: "then".to_owned(),
            sync: Spread { p50_us, ..Spread::default() },
            syncs_per_s: 1e6 / p50_us,
        };
        let by = |others_cores, probes: &[f64]| {
            let machine = Machine { cores: 2, ..Machine::default() };
            let probes = probes.iter().map(|p50_us| probe(*p50_us)).collect();
            Report { machine, others_cores, probes, ..Report::default() }.disturbed_by()
        };
        assert_eq!(by(0.2, &[200.0, 800.0]), None);
        assert_eq!(by(1.5, &[200.0]).unwrap(), "other work took 1.50 of 2 cores");
        assert_eq!(by(0.0, &[900.0, 200.0]).unwrap(), "the disk's own sync took between 200 and 900 µs");
        assert!(by(0.3, &[900.0, 200.0]).unwrap().contains(", and the disk's"));
    }

    #[test]
    fn two_syncs_are_most_of_the_first_byte_or_the_aim_is_missed() {
        let of = |total_us: f64| {
            let total = Spread { p50_us: total_us, ..Spread::default() };
            let first_byte = FirstByte { total, disk_sync_us: 1_000.0, ..FirstByte::default() };
            Report { first_byte, ..Report::default() }.of_the_first_byte()
        };
        assert!(of(4_000.0).reached);
        let missed = of(4_100.0);
        assert!(!missed.reached && missed.found.starts_with("4.1 syncs"), "{missed:?}");
    }
}
