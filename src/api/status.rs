//! Errors as gRPC has them: a canonical code, a message for people, and google.rpc details for programs.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use crate::coordinator::RequestError;
use crate::model::RunId;

/// The domain of every `google.rpc.ErrorInfo` from here.
const DOMAIN: &str = "relatch";

/// When another try makes sense: an election and a replay take about so long.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// A status travels in the head of an answer, of which clients take 16 KiB by themselves: no text in it is longer
/// than so many bytes, each of which may take three there.
const MESSAGE_BYTES: usize = 1_500;
const DETAIL_BYTES: usize = 500;

/// One field that breaks a rule.
pub(super) fn violation(field: &str, rule: impl Into<String>) -> FieldViolation {
    FieldViolation::new(field, bounded(rule.into(), DETAIL_BYTES))
}

fn error(code: Code, message: String, details: ErrorDetails) -> Status {
    Status::with_error_details(code, bounded(message, MESSAGE_BYTES), details)
}

/// The beginning of a text that is too long.
fn bounded(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('…');
    }
    text
}

/// `INVALID_ARGUMENT`, naming each field and its rule.
pub(super) fn invalid(violations: Vec<FieldViolation>) -> Status {
    let lines: Vec<String> = violations.iter().map(|v| format!("{}: {}", v.field, v.description)).collect();
    let details = ErrorDetails::with_bad_request(violations);
    error(Code::InvalidArgument, lines.join("; "), details)
}

/// `NOT_FOUND` for a run.
pub(super) fn no_such_run(id: &RunId) -> Status {
    let advice = "there is no run of this id; `relatch runs list` shows the runs that there are";
    let details = ErrorDetails::with_resource_info("relatch.v1.Run", id.as_str(), "", advice);
    error(Code::NotFound, format!("run {id}: {advice}"), details)
}

/// `INVALID_ARGUMENT` for the beginning of an id that is the beginning of several.
pub(super) fn ambiguous_run(beginning: &str) -> Status {
    let rule = format!("several runs begin with {beginning}: write more of it");
    invalid(vec![violation("run_id", rule)])
}

/// `NOT_FOUND` for the beginning of an id.
pub(super) fn no_run_begins(beginning: &str) -> Status {
    let advice = "no run's id begins so; `relatch runs list` shows the runs that there are";
    let details = ErrorDetails::with_resource_info("relatch.v1.Run", beginning, "", advice);
    error(Code::NotFound, format!("run {beginning}: {advice}"), details)
}

/// `NOT_FOUND` for holds.
pub(super) fn no_such_hold(what: &str) -> Status {
    let advice = "no hold of this id or of exactly this scope stands; `relatch holds` shows those that do";
    let details = ErrorDetails::with_resource_info("relatch.v1.Hold", what, "", advice);
    error(Code::NotFound, format!("{what}: {advice}"), details)
}

/// `UNAVAILABLE` at the end of a stream that this node cannot go on with.
pub(super) fn shutting_down() -> Status {
    unavailable("this node is shutting down: go on at another node, after the last index that you saw".into())
}

/// Why a request was not decided, or a read not made.
pub(super) fn of(why: RequestError) -> Status {
    let message = why.to_string();
    match why {
        RequestError::Invalid { field, rule } => invalid(vec![violation(&field, rule)]),
        RequestError::RequestIdReused { run } => {
            let rule = "it was used for another request; use a new id";
            let mut details = ErrorDetails::with_bad_request_violation("request_id", rule);
            details.set_error_info(
                "REQUEST_ID_REUSED",
                DOMAIN,
                HashMap::from([("run".into(), run.to_string())]),
            );
            error(Code::InvalidArgument, message, details)
        }
        RequestError::NoSuchRun { run } => {
            let details =
                ErrorDetails::with_resource_info("relatch.v1.Run", run.as_str(), "", message.clone());
            error(Code::NotFound, message, details)
        }
        RequestError::Precondition { kind, subject, detail } => {
            let detail = bounded(detail, DETAIL_BYTES);
            let details = ErrorDetails::with_precondition_failure_violation(kind, subject, detail);
            error(Code::FailedPrecondition, message, details)
        }
        RequestError::Exhausted { caller, frees_in_ms, .. } => {
            let mut details =
                ErrorDetails::with_quota_failure_violation(caller, bounded(message.clone(), DETAIL_BYTES));
            details.set_retry_info(Some(Duration::from_millis(frees_in_ms)));
            error(Code::ResourceExhausted, message, details)
        }
        RequestError::Unavailable { .. } => unavailable(message),
        RequestError::Unknown { .. } => unknown(message),
    }
}

/// `UNAVAILABLE`: nothing was decided.
pub(super) fn unavailable(message: String) -> Status {
    error(Code::Unavailable, message, ErrorDetails::with_retry_info(Some(RETRY_AFTER)))
}

/// `DEADLINE_EXCEEDED` with `DECISION_UNKNOWN`: it may have been decided.
pub(super) fn unknown(message: String) -> Status {
    let mut details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
    details.set_error_info("DECISION_UNKNOWN", DOMAIN, HashMap::new());
    error(Code::DeadlineExceeded, message, details)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_never_longer_than_clients_take() {
        // What is not ASCII takes three bytes for one in the message, and details four for three.
        let long = || "ä".repeat(60_000);
        let fields = ["target", "reason", "request_id", "grace", "expect.container_id", "expect.started_at"];
        for status in [
            invalid(fields.map(|field| violation(field, long())).to_vec()),
            of(RequestError::Unavailable { detail: long() }),
            of(RequestError::Precondition { kind: "RULE", subject: "ledger".into(), detail: long() }),
            of(RequestError::Exhausted {
                caller: "anonymous".into(),
                what: "refusals",
                most: 3,
                frees_in_ms: u64::MAX,
                detail: long(),
            }),
        ] {
            let head = 3 * status.message().len() + status.details().len() * 4 / 3;
            assert!(head < 12 << 10, "{head} bytes: {:?}", status.code());
            assert!(status.message().ends_with('…'));
        }
    }

    #[test]
    fn each_error_has_its_code_and_its_details() {
        let run = RunId::new("ab".repeat(16)).unwrap();
        let detail = || "no leader".to_owned();

        let status = of(RequestError::Unavailable { detail: detail() });
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(RETRY_AFTER));

        let status = of(RequestError::Unknown { detail: detail() });
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert_eq!(status.get_details_error_info().unwrap().reason, "DECISION_UNKNOWN");
        assert!(status.get_details_retry_info().is_some());

        let status = of(RequestError::RequestIdReused { run: run.clone() });
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.get_details_error_info().unwrap().metadata["run"], run.as_str());
        assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, "request_id");

        let status =
            of(RequestError::Invalid { field: "target".into(), rule: "no host of that name".into() });
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "target: no host of that name");

        let status = no_such_run(&run);
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.get_details_resource_info().unwrap().resource_name, run.as_str());
    }
}
