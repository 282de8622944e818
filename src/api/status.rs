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

/// One field that breaks a rule.
pub(super) fn violation(field: &str, rule: impl Into<String>) -> FieldViolation {
    FieldViolation::new(field, rule)
}

/// `INVALID_ARGUMENT`, naming each field and its rule.
pub(super) fn invalid(violations: Vec<FieldViolation>) -> Status {
    let lines: Vec<String> = violations.iter().map(|v| format!("{}: {}", v.field, v.description)).collect();
    let details = ErrorDetails::with_bad_request(violations);
    Status::with_error_details(Code::InvalidArgument, lines.join("; "), details)
}

/// `NOT_FOUND` for a run.
pub(super) fn no_such_run(id: &RunId) -> Status {
    let advice = "there is no run of this id; `relatch runs list` shows the runs that there are";
    let details = ErrorDetails::with_resource_info("relatch.v1.Run", id.as_str(), "", advice);
    Status::with_error_details(Code::NotFound, format!("run {id}: {advice}"), details)
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
    Status::with_error_details(Code::NotFound, format!("run {beginning}: {advice}"), details)
}

/// `NOT_FOUND` for holds.
pub(super) fn no_such_hold(what: &str) -> Status {
    let advice = "no hold of this id or of exactly this scope stands; `relatch holds` shows those that do";
    let details = ErrorDetails::with_resource_info("relatch.v1.Hold", what, "", advice);
    Status::with_error_details(Code::NotFound, format!("{what}: {advice}"), details)
}

/// `UNAVAILABLE` at the end of a stream that this node cannot go on with.
pub(super) fn shutting_down() -> Status {
    unavailable("this node is shutting down: go on at another node, after the last index that you saw".into())
}

/// Why a request was not decided, or a read not made.
pub(super) fn of(error: RequestError) -> Status {
    let message = error.to_string();
    match error {
        RequestError::Invalid { field, rule } => invalid(vec![violation(&field, rule)]),
        RequestError::RequestIdReused { run } => {
            let rule = "it was used for another request; use a new id";
            let mut details = ErrorDetails::with_bad_request_violation("request_id", rule);
            details.set_error_info("REQUEST_ID_REUSED", DOMAIN, HashMap::from([("run".into(), run.into())]));
            Status::with_error_details(Code::InvalidArgument, message, details)
        }
        RequestError::NoSuchRun { run } => {
            let details =
                ErrorDetails::with_resource_info("relatch.v1.Run", run.as_str(), "", message.clone());
            Status::with_error_details(Code::NotFound, message, details)
        }
        RequestError::Precondition { kind, subject, detail } => {
            let details = ErrorDetails::with_precondition_failure_violation(kind, subject, detail);
            Status::with_error_details(Code::FailedPrecondition, message, details)
        }
        RequestError::Exhausted { caller, frees_in_ms, .. } => {
            let mut details = ErrorDetails::with_quota_failure_violation(caller, message.clone());
            details.set_retry_info(Some(Duration::from_millis(frees_in_ms)));
            Status::with_error_details(Code::ResourceExhausted, message, details)
        }
        RequestError::Unavailable { .. } => unavailable(message),
        RequestError::Unknown { .. } => {
            let mut details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
            details.set_error_info("DECISION_UNKNOWN", DOMAIN, HashMap::new());
            Status::with_error_details(Code::DeadlineExceeded, message, details)
        }
    }
}

fn unavailable(message: String) -> Status {
    Status::with_error_details(Code::Unavailable, message, ErrorDetails::with_retry_info(Some(RETRY_AFTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
