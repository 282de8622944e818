//! The page: fixed words around what this run found.

use super::report::Report;
use super::spread::Spread;
use super::table::Table;
use super::world::limits;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let parts = [
        head(report),
        aims(report),
        disk(report),
        commits(report),
        first_byte(report),
        recoveries(report),
        memory(report),
        ledger(report),
    ];
    parts.join("\n")
}

fn head(report: &Report) -> String {
    let machine = &report.machine;
    let mut table = Table::new(&["what", "is"]);
    let version = match &report.commit {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    };
    let build = if cfg!(debug_assertions) { "debug: its figures mean little" } else { "release" };
    for (what, is) in [
        ("date", machine.date.clone()),
        ("version", version),
        ("build", build.to_owned()),
        ("processor", format!("{}, {} cores", machine.cpu, machine.cores)),
        ("memory", format!("{} MiB", machine.memory_mib)),
        ("kernel", machine.kernel.clone()),
        ("file system", machine.file_system.clone()),
        ("disk", machine.disk.clone()),
        ("others", format!("{:.2} cores were busy with something else meanwhile", report.others_cores)),
    ] {
        table.row([what.to_owned(), is]);
    }
    let quick = if report.quick {
        "\n**This was `--quick`: it shows that everything works, and its figures mean little.**\n"
    } else {
        ""
    };
    format!(
        "# Benchmarks\n\n\
         Written by `make bench`; every figure on this page was taken in that one run, on one disk, and none stands \
         in the text that surrounds it. Compare ratios, not times: another machine has another disk. Where a figure \
         depends on the disk, the disk's own sync, measured right before and after, stands beside it.\n{quick}\n\
         {}",
        table.show()
    )
}

fn aims(report: &Report) -> String {
    let mut table = Table::new(&["aim", "found", "", "what it rests on"]);
    let disturbed = report.disturbed_by();
    for aim in report.aims() {
        let reached = match aim.reached {
            _ if aim.timed && disturbed.is_some() => "**not decided**",
            true => "reached",
            false => "**not reached**",
        };
        table.row([aim.aim, aim.found, reached.to_owned(), aim.why]);
    }
    let disturbed = disturbed.map_or_else(String::new, |by| {
        format!("**This run was disturbed, and decides nothing about time: {by}.** Measure again on a quiet machine.\n\n")
    });
    format!("## Aims\n\n{disturbed}{}", table.show())
}

fn disk(report: &Report) -> String {
    let mut table = Table::new(&["when", "p50 µs:", "p99 µs:", "syncs/s:"]);
    for probe in &report.probes {
        table.row([
            probe.when.clone(),
            whole(probe.sync.p50_us),
            whole(probe.sync.p99_us),
            whole(probe.syncs_per_s),
        ]);
    }
    format!(
        "## The disk alone\n\n\
         One append of {} bytes to a file that grows, and its fdatasync, one after the other. That is what one commit \
         of one requester writes.\n\n{}",
        report.bytes_per_sync,
        table.show()
    )
}

fn commits(report: &Report) -> String {
    let heads = [
        "requesters:",
        "interlocks/s:",
        "times one:",
        "wait p50 µs:",
        "p99 µs:",
        "p50 in syncs of the disk:",
        "commits per sync:",
        "syncs/s:",
        "the disk alone:",
        "cores busy:",
    ];
    let mut table = Table::new(&heads);
    let one = report.commits.first().map_or(f64::NAN, |one| one.interlocks_per_s);
    for row in &report.commits {
        table.row([
            row.requesters.to_string(),
            whole(row.interlocks_per_s),
            tenth(row.interlocks_per_s / one),
            whole(row.wait.p50_us),
            whole(row.wait.p99_us),
            tenth(row.wait.p50_us / row.disk_sync_us),
            tenth(row.commits_per_sync),
            whole(row.syncs_per_s),
            whole(1e6 / row.disk_sync_us),
            hundredth(row.cores_busy),
        ]);
    }
    format!(
        "## Interlocks, committed and applied\n\n\
         One voter: a proposal goes through Raft to a RocksDB whose log is synced, and is applied to the ledger. No \
         engine, no gRPC. Each requester has a container of its own, opens its interlock, and has it taken back by a \
         second commit, which is not counted as an interlock. The disk alone does as many syncs as it can one after \
         the other.\n\n{}",
        table.show()
    )
}

fn first_byte(report: &Report) -> String {
    let first = &report.first_byte;
    let mut table = Table::new(&["step", "what it is", "p50 µs:", "p99 µs:", "share of all p50:"]);
    let row = |name: String, what: &str, took: Spread, share: bool| {
        let share =
            if share { format!("{:.0} %", 100.0 * took.p50_us / first.total.p50_us) } else { String::new() };
        [name, what.to_owned(), whole(took.p50_us), whole(took.p99_us), share]
    };
    for step in &first.steps {
        let name = if step.within { format!("– {}", step.name) } else { step.name.to_owned() };
        table.row(row(name, step.what, step.took, true));
    }
    table.row(row("**all**".to_owned(), "from the call to the POST's arrival", first.total, true));
    format!(
        "## From the request to the first byte\n\n\
         One requester over gRPC, one restart at a time, on an engine of {} containers behind a unix socket. The \
         steps are spans: `RELATCH_LOG=info,relatch::step=debug relatch dev` prints them for every restart. Of {} \
         restarts:\n\n{}\n\
         The median is {} times the disk's own sync ({} µs). A whole recovery, to `APPLIED`, had {} syncs, and cost \
         {} ms of processor time: that of the node, the simulated engine and the client together.\n",
        first.containers,
        first.total.count,
        table.show(),
        tenth(first.total.p50_us / first.disk_sync_us),
        whole(first.disk_sync_us),
        tenth(first.syncs_per_recovery),
        hundredth(first.cpu_ms_per_recovery)
    )
}

fn recoveries(report: &Report) -> String {
    let heads = [
        "requesters:",
        "recoveries/s:",
        "times one:",
        "p50 ms:",
        "p99 ms:",
        "p50 in syncs of the disk:",
        "node, cores busy:",
        "engine and clients, cores busy:",
        "ended as",
    ];
    let mut table = Table::new(&heads);
    let one = report.recoveries.first().map_or(f64::NAN, |one| one.recoveries_per_s);
    for row in &report.recoveries {
        let ends: Vec<String> = row.ends.iter().map(|(status, count)| format!("{count} {status}")).collect();
        table.row([
            row.requesters.to_string(),
            whole(row.recoveries_per_s),
            tenth(row.recoveries_per_s / one),
            tenth(row.took.p50_us / 1e3),
            tenth(row.took.p99_us / 1e3),
            tenth(row.took.p50_us / row.disk_sync_us),
            hundredth(row.node_cores),
            hundredth(row.other_cores),
            ends.join(", "),
        ]);
    }
    format!(
        "## Whole recoveries\n\n\
         From the request over gRPC to `APPLIED`: `relatch dev` and the simulated engine as processes of their own, a \
         container that stops at once and is healthy as soon as it runs, each requester with a connection and with \
         containers of its own. Limits were raised first by `relatch limits set {}`.\n\n{}",
        limits().join(" "),
        table.show()
    )
}

fn memory(report: &Report) -> String {
    let needs = &report.memory;
    let heads =
        ["`relatch dev`", "resident MiB:", "most MiB:", "clients can connect, s:", "answers requests, s:"];
    let mut table = Table::new(&heads);
    let large = format!("{} open and {} ended runs", needs.open_runs, needs.ended_runs);
    for (what, node) in [("nothing to do, empty ledger", needs.idle), (large.as_str(), needs.large)] {
        table.row([
            what.to_owned(),
            tenth(node.resident_mib),
            tenth(node.peak_mib),
            hundredth(node.serving_s),
            hundredth(node.admitting_s),
        ]);
    }
    format!(
        "## Memory and start\n\n\
         The open runs are restarts whose answer the engine did not give. The ended ones were committed one by one \
         through the log of the same node. The large ledger has {:.0} MiB on disk. Times count from the start of the \
         process; a node answers requests once what is open was replayed.\n\n{}",
        needs.data_mib,
        table.show()
    )
}

fn ledger(report: &Report) -> String {
    let heading = "## The ledger alone\n\n";
    let Some(found) = &report.criterion else {
        return format!(
            "{heading}Not taken in this run: `make bench` takes it, by criterion (`benches/ledger.rs`).\n"
        );
    };
    let mut table = Table::new(&["ended runs in it:", "entries/s:", "least:", "most:"]);
    for row in found {
        table.row([
            row.ended_runs.to_string(),
            whole(row.entries_per_s),
            whole(row.least_per_s),
            whole(row.most_per_s),
        ]);
    }
    format!(
        "{heading}`apply` on one thread, without disk or Raft, by criterion (`benches/ledger.rs`): the three entries of \
         a whole recovery. The median, and the bounds of its confidence interval.\n\n{}",
        table.show()
    )
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn tenth(value: f64) -> String {
    format!("{value:.1}")
}

fn hundredth(value: f64) -> String {
    format!("{value:.2}")
}
