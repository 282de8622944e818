//! Exit codes. They are stable: scripts act on them.

use std::io;
use std::process::ExitCode;

use super::client::CallError;
use super::wait::WaitFor;
use crate::rpc::v1::{Run, RunStatus, Verification};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// What was asked for is so: recovered, or applied where that is enough.
    Done = 0,
    /// It could not be done, for a reason that is told.
    Error = 1,
    /// The command was not well-formed.
    Usage = 2,
    /// Admission refused the request.
    Refused = 3,
    /// It is still uncertain.
    Uncertain = 4,
    /// Proven to have had no effect.
    NotApplied = 5,
    /// The container is gone.
    Superseded = 6,
    /// Applied, but the container did not become well, or not yet.
    NotRecovered = 7,
    /// An operator ended the run.
    OperatorResolved = 8,
}

impl Exit {
    /// What the run, as it was when the wait ended, means.
    pub(super) fn of_run(run: &Run, wait: WaitFor) -> Self {
        match run.status() {
            RunStatus::Refused => Self::Refused,
            RunStatus::Interlocked | RunStatus::Unresolved | RunStatus::Unspecified => Self::Uncertain,
            RunStatus::NotApplied => Self::NotApplied,
            RunStatus::Superseded => Self::Superseded,
            RunStatus::OperatorResolved => Self::OperatorResolved,
            RunStatus::Applied => match (wait, run.verification()) {
                (WaitFor::Applied, _) | (_, Verification::Recovered | Verification::Unverified) => Self::Done,
                (
                    WaitFor::Recovered,
                    Verification::NotRecovered | Verification::Pending | Verification::Unspecified,
                ) => Self::NotRecovered,
            },
        }
    }

    /// What an error means.
    pub(super) fn of_error(error: &anyhow::Error) -> Self {
        if let Some(CallError::Answered(status)) = error.downcast_ref()
            && status.code() == tonic::Code::InvalidArgument
        {
            return Self::Usage;
        }
        // Whoever read our output had seen enough, as `head` has.
        let pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if error.downcast_ref().is_some_and(pipe) { Self::Done } else { Self::Error }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_codes_of_a_wait() {
        use RunStatus as S;
        use Verification as V;
        use WaitFor::{Applied, Recovered};
        for (status, verification, wait, code) in [
            (S::Applied, V::Recovered, Recovered, 0),
            (S::Applied, V::Unverified, Recovered, 0),
            (S::Applied, V::Pending, Applied, 0),
            (S::Applied, V::NotRecovered, Applied, 0),
            (S::Refused, V::Unspecified, Recovered, 3),
            (S::Refused, V::Unspecified, Applied, 3),
            (S::Interlocked, V::Unspecified, Recovered, 4),
            (S::Unresolved, V::Unspecified, Applied, 4),
            (S::NotApplied, V::Unspecified, Recovered, 5),
            (S::Superseded, V::Unspecified, Recovered, 6),
            (S::Applied, V::NotRecovered, Recovered, 7),
            (S::Applied, V::Pending, Recovered, 7),
            (S::Applied, V::Unspecified, Recovered, 7),
            (S::OperatorResolved, V::Unspecified, Recovered, 8),
        ] {
            let run = Run { status: status.into(), verification: verification.into(), ..Run::default() };
            assert_eq!(Exit::of_run(&run, wait) as u8, code, "{status:?} {verification:?} {wait:?}");
        }
    }

    #[test]
    fn a_malformed_request_is_a_matter_of_usage() {
        let error = |code| anyhow::Error::from(CallError::Answered(tonic::Status::new(code, "x")));
        assert_eq!(Exit::of_error(&error(tonic::Code::InvalidArgument)), Exit::Usage);
        assert_eq!(Exit::of_error(&error(tonic::Code::NotFound)), Exit::Error);
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Exit::of_error(&closed.into()), Exit::Done);
    }
}
