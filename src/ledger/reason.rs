//! Why something is refused or uncertain, since when, and what would end it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{ClusterTime, WallTime};

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The kind.
    pub code: ReasonCode,
    /// The particulars, in one line.
    pub detail: String,
    /// Since when it has been so, on the wall clock of the node that said it. For people.
    pub since: WallTime,
    /// When it ends by itself, on the cluster clock, where it does.
    pub until: Option<ClusterTime>,
}

impl Reason {
    /// A reason without an end of its own.
    pub fn new(code: ReasonCode, detail: impl Into<String>, since: WallTime) -> Self {
        Self { code, detail: detail.into(), since, until: None }
    }

    /// A reason that ends by itself.
    pub fn until(code: ReasonCode, detail: impl Into<String>, since: WallTime, until: ClusterTime) -> Self {
        Self { code, detail: detail.into(), since, until: Some(until) }
    }

    /// What would end it. A hold without an end of its own is only ever lifted.
    #[must_use]
    pub fn ends_when(&self) -> &'static str {
        match (self.code, self.until) {
            (ReasonCode::Held, None) => "the hold is lifted",
            (code, _) => code.ends_when(),
        }
    }
}

macro_rules! reason_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, ends $ends:literal;)*) => {
        /// The kinds of reason. Their texts are stable: scripts match on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum ReasonCode {
            $($(#[$doc])* $name,)*
        }

        impl ReasonCode {
            /// The stable text.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What would end it.
            #[must_use]
            pub fn ends_when(self) -> &'static str {
                match self { $(Self::$name => $ends,)* }
            }

            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

reason_codes! {
    // Refusals before an interlock.
    /// No container answers to the target.
    TargetNotFound = "target-not-found", ends "a container of that name is created on the host";
    /// More than one container answers to the target.
    TargetAmbiguous = "target-ambiguous", ends "the request names one of the containers listed";
    /// The container is not running.
    TargetNotRunning = "target-not-running", ends "the container is started; relatch never turns a restart into a start";
    /// The container is paused.
    TargetPaused = "target-paused", ends "the container is resumed";
    /// The engine's own restart policy is at work.
    TargetRestarting = "target-restarting", ends "the engine's own restart policy has started the container";
    /// The container is being removed.
    TargetRemoving = "target-removing", ends "the container is gone, or its removal is given up";
    /// Swarm replaces its own tasks.
    TargetSwarmTask = "target-swarm-task", ends "never: update the Swarm service instead";
    /// The container is relatch itself.
    TargetIsRelatch = "target-is-relatch", ends "never: restart relatch by other means";
    /// The container could not be looked at.
    BaselineUnreadable = "baseline-unreadable", ends "the engine answers an inspect of the container";
    /// The host is not bound in the cluster.
    HostUnknown = "host-unknown", ends "the host is bound";
    /// The host answers as another engine, or through another dispatcher, than it is bound to.
    HostDiffers = "host-differs", ends "the bound engine and dispatcher answer again";
    /// A label of the container cannot be read.
    LabelInvalid = "label-invalid", ends "the container is created again with a label that can be read";
    /// The grace is above the limit.
    GraceAboveLimit = "grace-above-limit", ends "the request or the container's label asks for less, or the limit is raised";
    /// The caller meant another incarnation.
    ExpectationMismatch = "expectation-mismatch", ends "the request names the incarnation that there is";
    /// The exchange of the run before is not known to have ended.
    Quarantined = "quarantined", ends "the dispatcher reports the end of that exchange, or the quarantine time is over";
    /// The attempts of the window are used up.
    AttemptsExhausted = "attempts-exhausted", ends "the oldest attempt leaves the window";
    /// Too soon after the last attempt.
    BackingOff = "backing-off", ends "the pause after the last attempt is over";
    /// The cluster has as many restarts in flight as it may.
    InFlightCluster = "in-flight-cluster", ends "one of the cluster's restarts in flight is settled or past its deadline";
    /// The host has as many restarts in flight as it may.
    InFlightHost = "in-flight-host", ends "one of the host's restarts in flight is settled or past its deadline";
    /// The host has as many unresolved runs as it may.
    UnresolvedHost = "unresolved-host", ends "one of the host's unresolved runs is settled";

    /// The container's health check does not say unhealthy, and the request is only for that.
    TargetNotUnhealthy = "target-not-unhealthy", ends "the container's health check says unhealthy";
    /// A hold stands.
    Held = "held", ends "the hold is lifted, or its time is over";

    // Refusals of a start.
    /// The run is not open any more.
    RunSettled = "run-settled", ends "never: a run that is settled stays so";
    /// The restart is not known to have been sent.
    RestartNotSent = "restart-not-sent", ends "the dispatcher reports that the restart was sent";
    /// The restart may still be under way.
    RestartUnderWay = "restart-under-way", ends "the engine answers the restart, or its deadline passes";
    /// Another start may still take effect.
    StartOutstanding = "start-outstanding", ends "the start's exchange ends, or its deadline passes";
    /// The run has had as many starts as it may.
    StartsExhausted = "starts-exhausted", ends "never for this run: start the container by hand, or end the run by an operator's word (relatch resolve RUN)";
    /// The container is not the one, or not the life, that the restart ended.
    IncarnationChanged = "incarnation-changed", ends "never: this run is of another life of the container";
    /// The container is not exited.
    TargetNotDown = "target-not-down", ends "the container exits; one that runs needs no start";

    // Uncertainty while an interlock is open.
    /// Nobody knows yet whether the request left.
    AwaitingDispatch = "awaiting-dispatch", ends "the dispatcher reports what became of the request";
    /// The request may have left; who could tell how it went is gone.
    ExchangeUnknown = "exchange-unknown", ends "a later StartedAt shows the effect";
    /// The request was written and no whole reply came.
    ReplyLost = "reply-lost", ends "a later StartedAt shows the effect";
    /// The client deadline passed without a whole reply.
    DeadlinePassed = "deadline-passed", ends "a later StartedAt shows the effect";
    /// The engine answered with success.
    AwaitingStart = "awaiting-start", ends "a later StartedAt confirms what the engine answered";
    /// The engine, or something in between, answered with an error. The stop may have landed.
    ErrorReply = "error-reply", ends "a later StartedAt shows the effect";
    /// The journal that could tell cannot be asked.
    JournalUnreachable = "journal-unreachable", ends "the journal named in the interlock answers";
    /// The container has not been looked at since.
    NotObserved = "not-observed", ends "the engine answers an inspect of the container";
    /// The container could not be looked at.
    EngineUnreadable = "engine-unreadable", ends "the engine answers an inspect of the container";
    /// Another engine answers at the host's address.
    EngineDiffers = "engine-differs", ends "the engine of the interlock answers again";
    /// The same `StartedAt` as before.
    StartedAtEqual = "started-at-equal", ends "the engine shows a later StartedAt, or removes the container";
    /// An earlier `StartedAt` than before.
    StartedAtEarlier = "started-at-earlier", ends "the engine shows a later StartedAt, or removes the container";
    /// Go's zero time.
    StartedAtZero = "started-at-zero", ends "the engine shows a later StartedAt, or removes the container";
    /// No `StartedAt`.
    StartedAtEmpty = "started-at-empty", ends "the engine shows a later StartedAt, or removes the container";
    /// A `StartedAt` that is no instant.
    StartedAtUnreadable = "started-at-unreadable", ends "the engine shows a later StartedAt, or removes the container";
    /// The container does not run.
    TargetDown = "target-down", ends "an operator approves a start (relatch approve-start RUN), or the container is started by hand or by its own restart policy";
    /// An approved start may be on its way, or may have had its effect.
    StartAwaited = "start-awaited", ends "a later StartedAt shows the start's effect, or its deadline passes";

    // Not well after it was applied.
    /// The container ran after the restart, and does not run any more.
    TargetWentDown = "target-went-down", ends "somebody starts the container, or its own restart policy does; relatch restarts only what runs";
    /// The container's health check did not say healthy within the verify window.
    TargetNotHealthy = "target-not-healthy", ends "the container's health check says healthy, maybe after another restart";
    /// The container could not be seen when the verify window ended.
    TargetNotSeen = "target-not-seen", ends "the engine answers an inspect of the container";
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_text_of_a_code_is_its_stable_text() {
        for code in ReasonCode::ALL {
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{code}\""));
        }
    }

    #[test]
    fn every_reason_says_what_would_end_it() {
        for code in ReasonCode::ALL {
            assert!(!code.ends_when().is_empty(), "{code}");
        }
    }

    #[test]
    fn a_hold_without_an_end_is_not_said_to_end_by_itself() {
        let ends = |reason: Reason| reason.ends_when();
        assert_eq!(ends(Reason::new(ReasonCode::Held, "x", WallTime(1))), "the hold is lifted");
        let until = Reason::until(ReasonCode::Held, "x", WallTime(1), ClusterTime(9));
        assert_eq!(ends(until), "the hold is lifted, or its time is over");
    }
}
