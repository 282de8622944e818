//! What the error of a call says, and what it leaves open.

use std::error::Error;

use tonic::{Code, ConnectError, Status};
use tonic_types::StatusExt;

use super::duration;
use super::text::{plain, with_causes};

/// What the tries of a call may have left behind, in the order of how much is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    /// No node could be connected to: nothing was asked of any.
    NothingAsked,
    /// Whoever answered said that nothing was decided.
    NothingDecided,
    /// The call may have been carried out, or still be.
    Unknown,
}

impl Left {
    /// What a try with this error left behind.
    pub(super) fn by(status: &Status) -> Self {
        if is_unreachable(status) {
            Self::NothingAsked
        } else if is_not_admitting(status) {
            Self::NothingDecided
        } else {
            Self::Unknown
        }
    }
}

/// True if the same call may find another answer: no leader, an unknown decision, or an error that no node
/// sent but that arose on the way to it.
pub(super) fn may_be_repeated(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded) || status.source().is_some()
}

/// What a status says, with the causes of an error on the way, and the details that its message leaves out.
pub(super) fn told(status: &Status) -> String {
    // Between an unreachable node and the system's own word for it stand only names of layers.
    if is_unreachable(status)
        && let Some(cause) = causes(status).last()
    {
        return format!("connecting: {}", with_causes(std::iter::once(cause)));
    }
    let mut text = plain(status.message());
    for detail in std::iter::once(with_causes(causes(status))).chain(details(status)) {
        if text.is_empty() {
            text = detail;
        } else if !text.contains(&detail) {
            text = format!("{text}: {detail}");
        }
    }
    let text = if text.is_empty() { status.code().description().to_owned() } else { text };
    format!("{text}{}", next_step(status))
}

/// The connection was never made, so that nothing can have arrived.
fn is_unreachable(status: &Status) -> bool {
    causes(status).any(|cause| cause.is::<ConnectError>())
}

/// A node's own word that nothing was decided. An UNAVAILABLE that arose on the way has no such details.
fn is_not_admitting(status: &Status) -> bool {
    status.code() == Code::Unavailable
        && status.source().is_none()
        && status.get_details_retry_info().is_some()
}

/// What must be so first, and whose share is full.
fn details(status: &Status) -> Vec<String> {
    let conditions = status.get_details_precondition_failure().map(|failure| failure.violations);
    let quotas = status.get_details_quota_failure().map(|failure| failure.violations);
    let conditions = conditions.into_iter().flatten().map(|violation| violation.description);
    let quotas = quotas.into_iter().flatten().map(|violation| violation.description);
    conditions.chain(quotas).map(|text| plain(&text)).collect()
}

/// What to do next, where every command has the same answer.
fn next_step(status: &Status) -> String {
    match status.code() {
        // A run that is settled stays so: the same command would have the same answer for ever.
        Code::FailedPrecondition if is_settled(status) => String::new(),
        Code::FailedPrecondition => "; see to that first, then give the command again".into(),
        Code::ResourceExhausted => match status.get_details_retry_info().and_then(|info| info.retry_delay) {
            Some(delay) => format!("; nothing was decided: try again in {}", duration::show(delay)),
            None => "; nothing was decided: try again later".into(),
        },
        _ => String::new(),
    }
}

fn is_settled(status: &Status) -> bool {
    let failure = status.get_details_precondition_failure();
    failure
        .is_some_and(|failure| failure.violations.iter().any(|violation| violation.r#type == "RUN_SETTLED"))
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut next = status.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic_types::{ErrorDetails, PreconditionViolation};

    use super::*;

    fn cut() -> Status {
        Status::from_error(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset)))
    }

    fn not_admitting() -> Status {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(500)));
        Status::with_error_details(Code::Unavailable, "no leader", details)
    }

    #[test]
    fn only_what_may_find_another_answer_is_repeated() {
        for (code, repeated) in [
            (Code::Unavailable, true),
            (Code::DeadlineExceeded, true),
            (Code::InvalidArgument, false),
            (Code::NotFound, false),
            (Code::FailedPrecondition, false),
            (Code::ResourceExhausted, false),
            (Code::Internal, false),
        ] {
            assert_eq!(may_be_repeated(&Status::new(code, "x")), repeated, "{code:?}");
        }
        assert!(may_be_repeated(&cut()), "{:?}", cut());
        assert!(told(&cut()).contains("reset"), "{}", told(&cut()));
    }

    #[test]
    fn only_a_nodes_own_word_says_that_nothing_was_decided() {
        assert_eq!(Left::by(&not_admitting()), Left::NothingDecided);
        // As a proxy in between would say it.
        assert_eq!(Left::by(&Status::unavailable("upstream connect error")), Left::Unknown);
        assert_eq!(Left::by(&Status::deadline_exceeded("x")), Left::Unknown);
        assert_eq!(Left::by(&cut()), Left::Unknown);
        assert!(Left::NothingAsked < Left::NothingDecided && Left::NothingDecided < Left::Unknown);
    }

    #[test]
    fn what_must_be_so_first_is_told_once_with_what_to_do_next() {
        let status = |message: &str| {
            let violation = PreconditionViolation::new("REVOKED", "run ab", "the agent did not\nacknowledge");
            let details = ErrorDetails::with_precondition_failure(vec![violation]);
            Status::with_error_details(Code::FailedPrecondition, message, details)
        };
        let next = "; see to that first, then give the command again";
        assert_eq!(told(&status("run ab")), format!("run ab: the agent did not acknowledge{next}"));
        assert_eq!(told(&status("")), format!("the agent did not acknowledge{next}"));
        let said = "run ab: the agent did not acknowledge";
        assert_eq!(told(&status(said)), format!("{said}{next}"));
    }

    #[test]
    fn a_full_share_is_told_with_when_it_has_room_again() {
        let mut details = ErrorDetails::with_quota_failure_violation("anonymous", "10,000 refusals are kept");
        let status = |details: &ErrorDetails| {
            Status::with_error_details(Code::ResourceExhausted, "full", details.clone())
        };
        assert_eq!(
            told(&status(&details)),
            "full: 10,000 refusals are kept; nothing was decided: try again later"
        );
        details.set_retry_info(Some(Duration::from_secs(90)));
        assert!(told(&status(&details)).ends_with("try again in 1m30s"), "{}", told(&status(&details)));
    }
}
