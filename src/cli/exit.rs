//! Exit codes. They are stable: scripts act on them.

use std::io;
use std::process::ExitCode;

use anyhow::bail;

use super::client::CallError;
use super::wait::WaitFor;
use crate::rpc::v1::{Decision, Run, RunStatus, Verification};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// What was asked for is so: recovered, or applied where that is enough.
    Done,
    /// It could not be done, for a reason that is told.
    Error,
    /// The command was not well-formed.
    Usage,
    /// Admission refused the request.
    Refused,
    /// It is still uncertain.
    Uncertain,
    /// Proven to have had no effect.
    NotApplied,
    /// The container is gone.
    Superseded,
    /// Applied, but the container did not become well, or not yet.
    NotRecovered,
    /// An operator ended the run.
    OperatorResolved,
    /// As the command ended that was run under a hold.
    Command(u8),
}

/// What was typed breaks a rule that depends on more than the command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WrongUsage(pub(super) String);

impl Exit {
    /// The code itself.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Error => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Uncertain => 4,
            Self::NotApplied => 5,
            Self::Superseded => 6,
            Self::NotRecovered => 7,
            Self::OperatorResolved => 8,
            Self::Command(code) => code,
        }
    }

    /// What a decision means, before any effect is known.
    pub(super) fn of_decision(decision: Decision) -> anyhow::Result<Self> {
        match decision {
            Decision::Opened | Decision::Attached => Ok(Self::Done),
            Decision::Refused => Ok(Self::Refused),
            Decision::Unspecified => bail!("the node answered without a decision; it is not a relatch node"),
        }
    }

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
        if let Some(CallError::Answered(status) | CallError::AnsweredLate(status)) = error.downcast_ref()
            && status.code() == tonic::Code::InvalidArgument
        {
            return Self::Usage;
        }
        if error.is::<WrongUsage>() {
            return Self::Usage;
        }
        // Whoever read our output had seen enough, as `head` has.
        let pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if error.downcast_ref().is_some_and(pipe) { Self::Done } else { Self::Error }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
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
            assert_eq!(Exit::of_run(&run, wait).code(), code, "{status:?} {verification:?} {wait:?}");
        }
    }

    #[test]
    fn a_malformed_request_is_a_matter_of_usage() {
        let error = |code| anyhow::Error::from(CallError::Answered(tonic::Status::new(code, "x")));
        assert_eq!(Exit::of_error(&error(tonic::Code::InvalidArgument)), Exit::Usage);
        assert_eq!(Exit::of_error(&error(tonic::Code::NotFound)), Exit::Error);
        assert_eq!(Exit::of_error(&WrongUsage("x".into()).into()), Exit::Usage);
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Exit::of_error(&closed.into()), Exit::Done);
    }
}
