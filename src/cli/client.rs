//! The nodes that a command asks: in order, and again for a bounded time where that cannot do harm.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use super::address::Address;
use super::duration;
use super::output::Output;
use super::status::{Left, may_be_repeated, told};
use crate::rpc::v1::holds_client::HoldsClient;
use crate::rpc::v1::limits_client::LimitsClient;
use crate::rpc::v1::recovery_client::RecoveryClient;

/// A client of one node's `Recovery`.
pub(super) type Client = RecoveryClient<Channel>;

/// A client of one node's `Holds`.
pub(super) type Holds = HoldsClient<Channel>;

/// A client of one node's `Limits`.
pub(super) type Limits = LimitsClient<Channel>;

const CONNECT_WITHIN: Duration = Duration::from_secs(3);
const CALL_WITHIN: Duration = Duration::from_secs(10);
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_LONGEST: Duration = Duration::from_secs(2);

/// A node that stopped talking is noticed within the sum of these, also during a long wait.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_WITHIN: Duration = Duration::from_secs(5);

/// A page of runs may be larger than the 4 MiB that clients take by themselves.
const ANSWER_BYTES: usize = 32 << 20;

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// A node answered with an error that another try would not change.
    #[error("{}", told(.0))]
    Answered(Status),
    /// The same, but an earlier try of the call may have been carried out.
    #[error("{}", told(.0))]
    AnsweredLate(Status),
    /// No node could answer.
    #[error("{tried}")]
    Nobody {
        /// What each node said, or why it could not be reached.
        tried: String,
        /// What the tries may have left behind, all of them taken together.
        left: Left,
    },
}

impl CallError {
    /// Adds what to do next after a call that changes nothing.
    pub(super) fn advise(self) -> anyhow::Error {
        match self {
            Self::Answered(_) | Self::AnsweredLate(_) => self.into(),
            Self::Nobody { tried, left: Left::NothingAsked } => anyhow::anyhow!(
                "{tried}; no node could be reached: start one with `relatch dev`, or name it with --addr or \
                 RELATCH_ADDR"
            ),
            Self::Nobody { tried, .. } => {
                anyhow::anyhow!("{tried}; no node could answer: try again in a moment, or look at their logs")
            }
        }
    }

    /// Adds what to do next after a call that changes something. `done` completes "it is not known whether",
    /// and `again` is what finds out, and does nothing twice.
    pub(super) fn advise_change(self, done: &str, again: &str) -> anyhow::Error {
        match self {
            Self::Nobody { ref tried, left: Left::Unknown } => {
                anyhow::anyhow!(
                    "{tried}; it is not known whether {done}: {again} finds out, and does nothing twice"
                )
            }
            Self::AnsweredLate(status) => anyhow::anyhow!(
                "{}; an earlier try had no answer, so it is not known whether {done}: {again} finds out, and does \
                 nothing twice",
                told(&status)
            ),
            Self::Nobody { tried, left: Left::NothingDecided } => anyhow::anyhow!(
                "{tried}; no node can decide now, and nothing was decided: try again in a moment, or look at \
                 their logs"
            ),
            error => error.advise(),
        }
    }
}

/// The nodes of one command.
#[derive(Debug, Clone)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// The one that is asked first: the last that answered.
    first: usize,
}

#[derive(Debug, Clone)]
struct Node {
    address: Address,
    channel: Channel,
}

/// A client of one of a node's services.
pub(super) trait Service {
    fn at(channel: Channel) -> Self;
}

impl Service for Client {
    fn at(channel: Channel) -> Self {
        Self::new(channel).max_decoding_message_size(ANSWER_BYTES)
    }
}

impl Service for Holds {
    fn at(channel: Channel) -> Self {
        Self::new(channel).max_decoding_message_size(ANSWER_BYTES)
    }
}

impl Service for Limits {
    fn at(channel: Channel) -> Self {
        Self::new(channel)
    }
}

/// How long a call may be tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    /// In all. The tries that are at work then are awaited.
    pub(super) within: Duration,
    /// Also while no node can be connected to.
    pub(super) unreachable: bool,
}

impl Retry {
    /// For a read: an election is waited for, a node that does not run is not.
    pub(super) const READ: Self = Self { within: Duration::from_secs(3), unreachable: false };
}

/// How long a call that changes something is sent again.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct RetryFor {
    /// How long the request is sent again while no node answers
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    retry_for: Duration,
}

impl RetryFor {
    pub(super) fn retry(self) -> Retry {
        Retry { within: self.retry_for, unreachable: true }
    }
}

impl Nodes {
    /// Nodes at these addresses; nothing is connected yet. Must be called within a tokio runtime.
    pub(super) fn new(addresses: Vec<Address>) -> anyhow::Result<Self> {
        let node = |address: Address| -> anyhow::Result<Node> {
            let channel = Endpoint::from_shared(address.as_str().to_owned())?
                .connect_timeout(CONNECT_WITHIN)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(KEEPALIVE_EVERY)
                .keep_alive_timeout(KEEPALIVE_WITHIN)
                .connect_lazy();
            Ok(Node { address, channel })
        };
        let nodes = addresses.into_iter().map(node).collect::<anyhow::Result<_>>()?;
        Ok(Self { nodes, first: 0 })
    }

    /// Makes one call: at each node in turn, until one answers, and again for as long as `retry` says.
    ///
    /// `call` must be safe to repeat: it may have been carried out although its answer was lost.
    pub(super) async fn call<S: Service, T>(
        &mut self,
        retry: Retry,
        output: &Output,
        call: impl AsyncFn(S) -> Result<Response<T>, Status>,
    ) -> Result<T, CallError> {
        let begun = Instant::now();
        let mut pause = PAUSE_FIRST;
        let mut left = Left::NothingAsked;
        loop {
            let mut tried = Vec::new();
            for step in 0..self.nodes.len() {
                let at = (self.first + step) % self.nodes.len();
                let node = &self.nodes[at];
                let answer =
                    timeout(CALL_WITHIN, call(S::at(node.channel.clone()))).await.unwrap_or_else(|_| {
                        Err(Status::deadline_exceeded(format!(
                            "no answer within {} s",
                            CALL_WITHIN.as_secs()
                        )))
                    });
                match answer {
                    Ok(response) => {
                        self.first = at;
                        return Ok(response.into_inner());
                    }
                    Err(status) if may_be_repeated(&status) => {
                        left = left.max(Left::by(&status));
                        tried.push(format!("{}: {}", node.address, told(&status)));
                    }
                    Err(status) if left == Left::Unknown => return Err(CallError::AnsweredLate(status)),
                    Err(status) => return Err(CallError::Answered(status)),
                }
            }
            let tried = tried.join("; ");
            let time_is_up = begun.elapsed() + pause > retry.within;
            if time_is_up || (left == Left::NothingAsked && !retry.unreachable) {
                return Err(CallError::Nobody { tried, left });
            }
            if pause == PAUSE_FIRST {
                output.note(format!("{tried}; trying again for up to {} s", retry.within.as_secs()));
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_node_that_does_not_run_is_said_to_be_unreachable() {
        // Bound and dropped: nobody listens there now.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut nodes = Nodes::new(vec![format!("127.0.0.1:{port}").parse().unwrap()]).unwrap();
        let output = Output::new(super::super::output::Format::Json);
        let call = async |mut client: Client| {
            client.get_run(crate::rpc::v1::GetRunRequest { run_id: String::new() }).await
        };
        let error = nodes.call(Retry::READ, &output, call).await.unwrap_err();
        assert!(matches!(error, CallError::Nobody { left: Left::NothingAsked, .. }), "{error:?}");
        let advice = format!("{:#}", error.advise());
        assert!(advice.contains("relatch dev") && advice.contains(&port.to_string()), "{advice}");
    }
}
