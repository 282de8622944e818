//! What to type next, for a run that needs somebody.

use super::id_ref::short;
use super::text::plain;
use super::times::length;
use crate::rpc::v1::{Run, RunStatus};

/// The reason that says that the container does not run.
const TARGET_DOWN: &str = "target-down";

/// The reason that says that a start is approved already: another one would be refused.
const START_AWAITED: &str = "start-awaited";

/// The reason that says that the container ran after the restart, and does not run any more.
const TARGET_WENT_DOWN: &str = "target-went-down";

/// The reason that says that the health check did not come to say healthy.
const TARGET_NOT_HEALTHY: &str = "target-not-healthy";

/// The reason that says that nobody saw how the container was when its verify window ended.
const TARGET_NOT_SEEN: &str = "target-not-seen";

/// The reason that says that a hold stands.
const HELD: &str = "held";

/// The next command for a run that is open or refused by a hold, or whose container is not well; empty for any other.
pub(super) fn next(run: &Run) -> String {
    let advice = match run.status() {
        RunStatus::Interlocked | RunStatus::Unresolved => Some(open(run)),
        RunStatus::Refused => is_for(run, HELD).then(|| {
            "ask who placed the hold; `relatch holds` shows it, and `relatch unhold --id HOLD` lifts it"
                .to_owned()
        }),
        _ => not_well(run),
    };
    advice.map(|advice| format!("\nnext: {advice}\n")).unwrap_or_default()
}

/// How an operator starts the container that the restart left down; none if it runs, or if a start is approved.
pub(super) fn start(run: &Run) -> Option<String> {
    // What a start did may not have been seen yet, though the engine has answered it.
    let is_started = run.starts.last().is_some_and(|start| (200..300).contains(&start.reply_status));
    if !is_for(run, TARGET_DOWN) || is_for(run, START_AWAITED) || is_started {
        return None;
    }
    let id = plain(short(&run.run_id));
    let when = match restart_ends_in(run) {
        Some(left) => format!(" once the restart may not start it any more, in {} at most", length(&left)),
        None => String::new(),
    };
    let failed = match run.starts.last() {
        Some(start) if start.reply_status >= 400 => {
            format!("mend what made the last start fail (reply {}); then ", start.reply_status)
        }
        _ => String::new(),
    };
    Some(format!("{failed}`relatch approve-start {id} --reason TEXT` starts it{when}"))
}

fn open(run: &Run) -> String {
    let id = plain(short(&run.run_id));
    let start = start(run).map(|start| format!("{start}; ")).unwrap_or_default();
    format!("{start}`relatch runs watch {id}` follows the run")
}

/// Of a container that did not become well, or went down again.
fn not_well(run: &Run) -> Option<String> {
    let id = plain(short(&run.observed.as_ref()?.container_id));
    if is_for(run, TARGET_WENT_DOWN) {
        return Some(format!(
            "`docker logs {id}` on its host may tell why; `docker start {id}` starts it, for relatch restarts only \
             what runs"
        ));
    }
    if is_for(run, TARGET_NOT_HEALTHY) {
        return Some(format!(
            "`docker logs {id}` on its host may tell why, and `docker inspect {id}` what its health check said"
        ));
    }
    let target = plain(&run.target);
    is_not_seen(run).then(|| format!("`relatch explain {target}` looks at the container again"))
}

/// True if nobody could see the container when its verify window ended.
pub(super) fn is_not_seen(run: &Run) -> bool {
    is_for(run, TARGET_NOT_SEEN)
}

/// How much longer the restart may still start the container by itself; none once it cannot, and a start is admitted.
fn restart_ends_in(run: &Run) -> Option<prost_types::Duration> {
    run.deadline_in.filter(|left| run.reply_status == 0 && (left.seconds, left.nanos) > (0, 0))
}

fn is_for(run: &Run, code: &str) -> bool {
    run.reasons.iter().any(|reason| reason.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::ReasonCode;
    use crate::rpc::v1::{Incarnation, Reason, Start};

    const FOLLOW: &str = "`relatch runs watch abababababab` follows the run\n";

    fn run(status: RunStatus, reasons: &[ReasonCode]) -> Run {
        let reason = |code: &ReasonCode| Reason { code: code.to_string(), ..Reason::default() };
        Run {
            run_id: "ab".repeat(16),
            target: "local/web".into(),
            status: status.into(),
            observed: Some(Incarnation { container_id: "cd".repeat(32), ..Incarnation::default() }),
            reply_status: 500,
            reasons: reasons.iter().map(reason).collect(),
            ..Run::default()
        }
    }

    #[test]
    fn an_open_run_is_followed_and_one_that_left_its_container_down_is_started() {
        let open = RunStatus::Unresolved;
        assert_eq!(next(&run(open, &[ReasonCode::ErrorReply])), format!("\nnext: {FOLLOW}"));
        let start = "\nnext: `relatch approve-start abababababab --reason TEXT` starts it; ";
        assert_eq!(next(&run(open, &[ReasonCode::TargetDown])), format!("{start}{FOLLOW}"));
        let awaited = run(open, &[ReasonCode::TargetDown, ReasonCode::StartAwaited]);
        assert_eq!(next(&awaited), format!("\nnext: {FOLLOW}"));
        let mut followed = run(open, &[ReasonCode::TargetDown]);
        let answered = |reply_status| Start { reply_status, ..Start::default() };
        followed.starts = vec![answered(400), answered(204)];
        assert_eq!(next(&followed), format!("\nnext: {FOLLOW}"), "its effect is to be seen");
        followed.starts.pop();
        let again = next(&followed);
        assert!(
            again.starts_with("\nnext: mend what made the last start fail (reply 400); then "),
            "{again}"
        );
        assert!(again.ends_with(&format!("{}{FOLLOW}", start.trim_start_matches("\nnext: "))), "{again}");
    }

    #[test]
    fn a_start_is_not_advised_for_now_while_the_restart_may_still_be_under_way() {
        let mut down = run(RunStatus::Unresolved, &[ReasonCode::TargetDown]);
        let now = "`relatch approve-start abababababab --reason TEXT` starts it";
        let left = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        down.deadline_in = left(24);
        assert_eq!(start(&down).unwrap(), now, "the engine answered");
        down.reply_status = 0;
        let later = start(&down).unwrap();
        assert!(later.starts_with(now) && later.ends_with(", in 24s at most"), "{later}");
        down.deadline_in = left(0);
        assert_eq!(start(&down).unwrap(), now, "its deadline passed");
    }

    #[test]
    fn a_container_that_is_not_well_ends_in_what_its_operator_may_do() {
        let after = |code| next(&run(RunStatus::Applied, &[code]));
        let down = after(ReasonCode::TargetWentDown);
        assert!(down.contains("`docker logs cdcdcdcdcdcd`") && down.contains("`docker start cdcd"), "{down}");
        let ill = after(ReasonCode::TargetNotHealthy);
        assert!(ill.contains("`docker logs cdcd") && ill.contains("`docker inspect cdcd"), "{ill}");
        assert!(after(ReasonCode::TargetNotSeen).contains("`relatch explain local/web`"));
    }

    #[test]
    fn a_hold_in_the_way_is_told_with_what_shows_and_lifts_it() {
        let held = next(&run(RunStatus::Refused, &[ReasonCode::Held]));
        assert!(held.contains("`relatch holds`") && held.contains("`relatch unhold --id HOLD`"), "{held}");
    }

    #[test]
    fn what_needs_nobody_has_no_next_command() {
        for status in [RunStatus::Applied, RunStatus::Refused, RunStatus::OperatorResolved] {
            assert_eq!(
                next(&run(status, &[ReasonCode::TargetDown, ReasonCode::ReplyLost])),
                "",
                "{status:?}"
            );
        }
    }
}
