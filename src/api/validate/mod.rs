//! Whether a message is well-formed. Every field that is not is named, with its rule and what to write.

mod holds;
mod limits;
mod operator;
mod record;

use std::ops::RangeInclusive;
use std::str::FromStr;

use prost::Message;
use prost_types::{Duration, Timestamp};
use sha2::{Digest, Sha256};
use tonic::Status;
use tonic_types::FieldViolation;

use super::status::{invalid, violation};
use crate::coordinator::RecoveryRequest;
use crate::ledger::{ANONYMOUS, Diagnosis, Expectation};
use crate::model::{
    ContainerId, EngineInstant, HostName, InvalidId, LogIndex, RequestId, Target, excerpt, hex,
};
use crate::rpc::v1;

pub(super) use holds::{hold_request, lift_request, renew_request, shown};
pub(super) use limits::limits_change;
pub(super) use operator::{approve_request, resolve_request};
use record::{operator, reason};

/// The seconds of a `google.protobuf.Timestamp`: the years 1 to 9999.
const TIMESTAMP_S: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The longest page of runs, and the usual one.
const PAGE_LONGEST: u32 = 1_000;
const PAGE_USUAL: u32 = 100;

/// Collects what breaks a rule, so that all of it can be said at once.
#[derive(Default)]
struct Check {
    violations: Vec<FieldViolation>,
}

impl Check {
    /// The value, or a violation by `field`.
    fn take<T>(&mut self, field: &str, value: Result<T, impl ToString>) -> Option<T> {
        value.map_err(|rule| self.violations.push(violation(field, rule.to_string()))).ok()
    }

    fn end<T>(self, value: Option<T>) -> Result<T, Status> {
        match value {
            Some(value) if self.violations.is_empty() => Ok(value),
            _ => Err(invalid(self.violations)),
        }
    }
}

/// A request, well-formed; `caller` is who sent it.
pub(super) fn recovery_request(
    message: &v1::RequestRecoveryRequest,
    caller: &str,
) -> Result<RecoveryRequest, Status> {
    let mut check = Check::default();
    let spelling = check.take("target", Target::parse(&message.target));
    let reason = check.take("reason", reason(&message.reason));
    let id = check.take("request_id", optional::<RequestId>(&message.request_id));
    let grace_s = check.take("grace", message.grace.as_ref().map(grace_s).transpose());
    let expect = expectation(&mut check, message.expect.as_ref());
    let by = check.take("requested_by", present(&message.requested_by).map(operator).transpose());
    let request = (|| {
        Some(RecoveryRequest {
            id: id?,
            caller: caller.to_owned(),
            by: by?,
            digest: digest(message, caller),
            spelling: spelling?,
            reason: reason?,
            grace_s: grace_s?,
            expect: expect?,
            dry_run: message.dry_run,
            diagnosis: if message.if_unhealthy { Diagnosis::Unhealthy } else { Diagnosis::Callers },
        })
    })();
    check.end(request)
}

/// What `Explain` asks for: a request that is never sent.
pub(super) fn explain_request(message: &v1::ExplainRequest) -> Result<RecoveryRequest, Status> {
    let mut check = Check::default();
    let spelling = check.take("target", Target::parse(&message.target));
    let grace_s = check.take("grace", message.grace.as_ref().map(grace_s).transpose());
    let request = (|| {
        Some(RecoveryRequest {
            id: None,
            caller: ANONYMOUS.to_owned(),
            by: None,
            digest: String::new(),
            spelling: spelling?,
            reason: "explain".to_owned(),
            grace_s: grace_s?,
            expect: None,
            dry_run: true,
            diagnosis: Diagnosis::Callers,
        })
    })();
    check.end(request)
}

/// The beginning of a run's id, or all of it.
pub(super) fn run_beginning(text: &str) -> Result<String, Status> {
    let mut check = Check::default();
    let beginning = check.take("run_id", beginning(text));
    check.end(beginning)
}

fn beginning(text: &str) -> Result<String, String> {
    let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if hex && (8..=32).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "run id {} is not valid: it is 32 lower-case hex digits, or the first 8 or more of them",
        excerpt(text)
    ))
}

/// SHA-256, in hex, of the request and of who sent it. Fields that are left out do not enter, so a message
/// that gains fields later keeps the digests of requests without them. Nor does the wish for a dry run: one of
/// a request that was answered is told that answer. Nor does the name of who asks: a colleague who asks again is.
fn digest(message: &v1::RequestRecoveryRequest, caller: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"relatch.v1.RequestRecoveryRequest\0");
    // With its length in front, no caller's name can run on into the request.
    hash.update((caller.len() as u64).to_be_bytes());
    hash.update(caller.as_bytes());
    let bare = v1::RequestRecoveryRequest { dry_run: false, requested_by: String::new(), ..message.clone() };
    hash.update(bare.encode_to_vec());
    hex(&hash.finalize())
}

/// What `ListRuns` asks for.
#[derive(Debug)]
pub(super) struct Page {
    /// Of this target only.
    pub(super) target: Option<Target>,
    /// In these states only; empty for any.
    pub(super) statuses: Vec<v1::RunStatus>,
    /// At most so many.
    pub(super) size: usize,
    /// Opened before this index only.
    pub(super) before: Option<LogIndex>,
    /// Of this host only.
    pub(super) host: Option<HostName>,
    /// The one that answered this request only.
    pub(super) request: Option<RequestId>,
}

/// A page of runs, well-formed.
pub(super) fn page(message: &v1::ListRunsRequest) -> Result<Page, Status> {
    let mut check = Check::default();
    let target = check.take("target", present(&message.target).map(Target::parse).transpose());
    let statuses = check.take("statuses", message.statuses.iter().copied().map(known_status).collect());
    let size = check.take("page_size", page_size(message.page_size));
    let before = check.take("page_token", page_token(&message.page_token));
    let host = check.take("host", optional::<HostName>(&message.host));
    let request = check.take("request_id", optional::<RequestId>(&message.request_id));
    let page = (|| {
        Some(Page {
            target: target?,
            statuses: statuses?,
            size: size?,
            before: before?,
            host: host?,
            request: request?,
        })
    })();
    check.end(page)
}

fn present(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn optional<T: FromStr<Err = InvalidId>>(text: &str) -> Result<Option<T>, InvalidId> {
    present(text).map(str::parse).transpose()
}

fn grace_s(duration: &Duration) -> Result<u32, String> {
    if duration.seconds < 0 || duration.nanos < 0 {
        return Err("it is 0 or more: a negative time would wait for ever".into());
    }
    if duration.nanos != 0 {
        return Err("it is whole seconds, as the engine takes them: leave out the fraction".into());
    }
    u32::try_from(duration.seconds).map_err(|_| "it is far above any limit: ask for less".into())
}

fn expectation(check: &mut Check, message: Option<&v1::Incarnation>) -> Option<Option<Expectation>> {
    let Some(message) = message else { return Some(None) };
    let container_id = check.take("expect.container_id", ContainerId::new(message.container_id.as_str()));
    let started_at = check.take("expect.started_at", instant(message.started_at.as_ref()));
    Some(Some(Expectation { container_id: container_id?, started_at: started_at? }))
}

fn instant(message: Option<&Timestamp>) -> Result<EngineInstant, String> {
    let Some(Timestamp { seconds, nanos }) = message else {
        return Err("it is required: a container id alone does not name one life of the container".into());
    };
    let nanos = u32::try_from(*nanos).map_err(|_| "its nanos are 0 or more".to_owned())?;
    if !TIMESTAMP_S.contains(seconds) {
        return Err("it lies within the years 1 to 9999, as protobuf writes them".into());
    }
    EngineInstant::new(*seconds, nanos).map_err(|error| error.to_string())
}

fn known_status(number: i32) -> Result<v1::RunStatus, String> {
    match v1::RunStatus::try_from(number) {
        Ok(v1::RunStatus::Unspecified) | Err(_) => {
            Err(format!("{number} is no status: leave the list empty for every status"))
        }
        Ok(status) => Ok(status),
    }
}

fn page_size(size: u32) -> Result<usize, String> {
    match size {
        0 => Ok(PAGE_USUAL as usize),
        1..=PAGE_LONGEST => Ok(size as usize),
        _ => Err(format!("it is at most {PAGE_LONGEST}: ask for further pages with page_token")),
    }
}

fn page_token(text: &str) -> Result<Option<LogIndex>, &'static str> {
    let index = present(text).map(str::parse).transpose();
    index.map(|index| index.map(LogIndex)).map_err(|_| "it is the next_page_token of the page before")
}

/// The token of the page that follows after the run opened at `index`.
pub(super) fn token_after(index: LogIndex) -> String {
    index.to_string()
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn good() -> v1::RequestRecoveryRequest {
        v1::RequestRecoveryRequest {
            target: "local/web".into(),
            reason: "its queue is stuck".into(),
            request_id: "r-1".into(),
            grace: Some(Duration { seconds: 10, nanos: 0 }),
            expect: Some(v1::Incarnation {
                engine_id: String::new(),
                container_id: ID.into(),
                started_at: Some(Timestamp { seconds: 1_700_000_000, nanos: 5 }),
            }),
            dry_run: false,
            if_unhealthy: false,
            requested_by: "kim".into(),
        }
    }

    /// The fields that are named for a request with one change.
    fn named(change: impl FnOnce(&mut v1::RequestRecoveryRequest)) -> Vec<String> {
        let mut message = good();
        change(&mut message);
        let Err(status) = recovery_request(&message, "anonymous") else { return Vec::new() };
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        let details = status.get_details_bad_request().expect("google.rpc.BadRequest");
        details.field_violations.into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn a_well_formed_request_is_taken_as_it_is() {
        let request = recovery_request(&good(), "anonymous").unwrap();
        assert_eq!(request.spelling.to_string(), "local/web");
        assert_eq!(request.id.unwrap().as_str(), "r-1");
        assert_eq!(request.grace_s, Some(10));
        let expect = request.expect.unwrap();
        assert_eq!((expect.container_id.as_str(), expect.started_at.nanos()), (ID, 5));
    }

    #[test]
    fn what_may_be_left_out_may_be_left_out() {
        let bare = v1::RequestRecoveryRequest {
            target: "local/shop/web".into(),
            reason: "x".repeat(1_000),
            ..v1::RequestRecoveryRequest::default()
        };
        let request = recovery_request(&bare, "anonymous").unwrap();
        assert_eq!((request.id, request.grace_s, request.expect), (None, None, None));
        assert_eq!(request.by, None);
    }

    #[test]
    fn each_rule_names_its_field() {
        type Change = fn(&mut v1::RequestRecoveryRequest);
        let cases: &[(&str, Change)] = &[
            ("target", |m| m.target = String::new()),
            ("target", |m| m.target = "web".into()),
            ("target", |m| m.target = "local/a/b/c/d".into()),
            ("reason", |m| m.reason = String::new()),
            ("reason", |m| m.reason = "  ".into()),
            ("reason", |m| m.reason = "ä".repeat(1_001)),
            ("reason", |m| m.reason = "two\nlines".into()),
            ("reason", |m| m.reason = "two\u{2028}lines".into()),
            ("request_id", |m| m.request_id = "with space".into()),
            ("request_id", |m| m.request_id = "x".repeat(129)),
            ("requested_by", |m| m.requested_by = " ".into()),
            ("requested_by", |m| m.requested_by = "x".repeat(129)),
            ("requested_by", |m| m.requested_by = "two\nlines".into()),
            ("grace", |m| m.grace = Some(Duration { seconds: -1, nanos: 0 })),
            ("grace", |m| m.grace = Some(Duration { seconds: 1, nanos: 1 })),
            ("grace", |m| m.grace = Some(Duration { seconds: 0, nanos: -1 })),
            ("grace", |m| m.grace = Some(Duration { seconds: i64::MAX, nanos: 0 })),
            ("expect.container_id", |m| m.expect.as_mut().unwrap().container_id = ID[..12].into()),
            ("expect.started_at", |m| m.expect.as_mut().unwrap().started_at = None),
            ("expect.started_at", |m| {
                m.expect.as_mut().unwrap().started_at = Some(Timestamp { seconds: 1, nanos: -1 });
            }),
            ("expect.started_at", |m| {
                m.expect.as_mut().unwrap().started_at = Some(Timestamp { seconds: i64::MAX, nanos: 0 });
            }),
            ("expect.started_at", |m| {
                m.expect.as_mut().unwrap().started_at = Some(Timestamp { seconds: 1, nanos: 1_000_000_000 });
            }),
        ];
        for (field, change) in cases {
            assert_eq!(named(change), [*field]);
        }
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let fields = named(|m| {
            *m = v1::RequestRecoveryRequest {
                expect: Some(v1::Incarnation::default()),
                request_id: "\n".into(),
                ..v1::RequestRecoveryRequest::default()
            };
        });
        let expected = ["target", "reason", "request_id", "expect.container_id", "expect.started_at"];
        assert_eq!(fields, expected);
    }

    #[test]
    fn the_digest_is_of_the_whole_request_and_its_caller() {
        let of =
            |message: &v1::RequestRecoveryRequest, caller| recovery_request(message, caller).unwrap().digest;
        let first = of(&good(), "anonymous");
        assert_eq!(first.len(), 64);
        assert_eq!(first, of(&good(), "anonymous"));
        assert_ne!(first, of(&good(), "someone"));
        let dry_run = v1::RequestRecoveryRequest { dry_run: true, ..good() };
        assert_eq!(first, of(&dry_run, "anonymous"), "a dry run asks about the same request");
        let colleague = v1::RequestRecoveryRequest { requested_by: "lee".into(), ..good() };
        assert_eq!(first, of(&colleague, "anonymous"), "so does whoever else asks for it");
        let changes: &[fn(&mut v1::RequestRecoveryRequest)] = &[
            |m| m.target = "local/web2".into(),
            |m| m.reason = "another".into(),
            |m| m.grace = None,
            |m| m.grace = Some(Duration { seconds: 0, nanos: 0 }),
            |m| m.expect = None,
        ];
        for change in changes {
            let mut other = good();
            change(&mut other);
            assert_ne!(first, of(&other, "anonymous"));
        }
    }

    #[test]
    fn a_page_has_bounds_and_a_token() {
        let list = |change: fn(&mut v1::ListRunsRequest)| {
            let mut message = v1::ListRunsRequest::default();
            change(&mut message);
            page(&message)
        };
        assert_eq!(list(|_| ()).unwrap().size, 100);
        assert_eq!(list(|m| m.page_size = 1_000).unwrap().size, 1_000);
        assert_eq!(list(|m| m.page_token = token_after(LogIndex(7))).unwrap().before, Some(LogIndex(7)));
        for bad in [
            list(|m| m.page_size = 1_001),
            list(|m| m.page_token = "x".into()),
            list(|m| m.statuses = vec![0]),
            list(|m| m.statuses = vec![99]),
            list(|m| m.target = "web".into()),
        ] {
            assert_eq!(bad.unwrap_err().code(), tonic::Code::InvalidArgument);
        }
    }
}
