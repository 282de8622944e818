//! The nodes that a command asks: in order, and again for a bounded time where that cannot do harm.

use std::error::Error;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, ConnectError, Response, Status};

use super::address::Address;
use super::output::Output;
use super::text::{plain, with_causes};
use crate::rpc::v1::recovery_client::RecoveryClient;

/// A client of one node.
pub(super) type Client = RecoveryClient<Channel>;

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
    /// No node could answer.
    #[error("{tried}")]
    Nobody {
        /// What each node said, or why it could not be reached.
        tried: String,
        /// True if no node could ever be connected to: nothing was asked of any.
        all_unreachable: bool,
    },
}

impl CallError {
    /// Adds what to do next, where nothing was asked of any node, or nothing that changes anything.
    pub(super) fn advise(self) -> anyhow::Error {
        match self {
            Self::Answered(_) => self.into(),
            Self::Nobody { tried, all_unreachable: true } => anyhow::anyhow!(
                "{tried}; no node could be reached: start one with `relatch dev`, or name it with --addr or \
                 RELATCH_ADDR"
            ),
            Self::Nobody { tried, all_unreachable: false } => {
                anyhow::anyhow!("{tried}; no node could answer: try again in a moment, or look at their logs")
            }
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
    client: Client,
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
            Ok(Node { address, client: Client::new(channel).max_decoding_message_size(ANSWER_BYTES) })
        };
        let nodes = addresses.into_iter().map(node).collect::<anyhow::Result<_>>()?;
        Ok(Self { nodes, first: 0 })
    }

    /// Makes one call: at each node in turn, until one answers, and again for as long as `retry` says.
    ///
    /// `call` must be safe to repeat: it may have been carried out although its answer was lost.
    pub(super) async fn call<T>(
        &mut self,
        retry: Retry,
        output: &Output,
        call: impl AsyncFn(Client) -> Result<Response<T>, Status>,
    ) -> Result<T, CallError> {
        let begun = Instant::now();
        let mut pause = PAUSE_FIRST;
        let mut all_unreachable = true;
        loop {
            let mut tried = Vec::new();
            for step in 0..self.nodes.len() {
                let at = (self.first + step) % self.nodes.len();
                let node = &self.nodes[at];
                let answer = timeout(CALL_WITHIN, call(node.client.clone())).await.unwrap_or_else(|_| {
                    Err(Status::deadline_exceeded(format!("no answer within {} s", CALL_WITHIN.as_secs())))
                });
                match answer {
                    Ok(response) => {
                        self.first = at;
                        return Ok(response.into_inner());
                    }
                    Err(status) if may_be_repeated(&status) => {
                        all_unreachable &= is_unreachable(&status);
                        tried.push(format!("{}: {}", node.address, told(&status)));
                    }
                    Err(status) => return Err(CallError::Answered(status)),
                }
            }
            let tried = tried.join("; ");
            let time_is_up = begun.elapsed() + pause > retry.within;
            if time_is_up || (all_unreachable && !retry.unreachable) {
                return Err(CallError::Nobody { tried, all_unreachable });
            }
            if pause == PAUSE_FIRST {
                output.note(format!("{tried}; trying again for up to {} s", retry.within.as_secs()));
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }
}

/// True if the same call may find another answer: no leader, an unknown decision, or an error that no node
/// sent but that arose on the way to it.
pub(super) fn may_be_repeated(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded) || status.source().is_some()
}

/// True if there was no connection, so that nothing can have arrived.
fn is_unreachable(status: &Status) -> bool {
    causes(status).any(|cause| cause.is::<ConnectError>())
}

/// What a status says, with the causes of an error on the way.
pub(super) fn told(status: &Status) -> String {
    // Between an unreachable node and the system's own word for it stand only names of layers.
    if is_unreachable(status)
        && let Some(cause) = causes(status).last()
    {
        return format!("connecting: {}", with_causes(std::iter::once(cause)));
    }
    let message = plain(status.message());
    let causes = with_causes(causes(status));
    match (message.is_empty(), causes.is_empty()) {
        (true, true) => status.code().description().to_owned(),
        (true, false) => causes,
        (false, _) if message.contains(&causes) => message,
        (false, _) => format!("{message}: {causes}"),
    }
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
    use super::*;

    #[test]
    fn only_what_may_find_another_answer_is_repeated() {
        for (code, repeated) in [
            (Code::Unavailable, true),
            (Code::DeadlineExceeded, true),
            (Code::InvalidArgument, false),
            (Code::NotFound, false),
            (Code::ResourceExhausted, false),
            (Code::Internal, false),
        ] {
            assert_eq!(may_be_repeated(&Status::new(code, "x")), repeated, "{code:?}");
        }
        let cut = Status::from_error(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset)));
        assert!(may_be_repeated(&cut), "{cut:?}");
        assert!(told(&cut).contains("reset"), "{}", told(&cut));
    }

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
        assert!(matches!(error, CallError::Nobody { all_unreachable: true, .. }), "{error:?}");
        let advice = format!("{:#}", error.advise());
        assert!(advice.contains("relatch dev") && advice.contains(&port.to_string()), "{advice}");
    }
}
