//! Any node answers: what only the leader can answer is passed on to it, as it came, over the nodes' own channel.
//!
//! Nothing is read on the way. The leader serves the same methods to its peers, and does not pass them on again: so a
//! call is passed on once, and a node that was taken for the leader says that it is not.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic::{ConnectError, Status};

use super::status;
use crate::consensus::Leader;
use crate::model::NodeId;
use crate::rpc::{Link, Peers};

/// What every node answers by itself: it follows what is applied there.
const ANSWERED_HERE: [&str; 1] = ["/relatch.v1.Recovery/WatchRuns"];

/// The way to whoever leads.
#[derive(Clone)]
pub struct WayToLeader {
    peers: Peers,
    leader: watch::Receiver<Option<Leader>>,
}

impl WayToLeader {
    /// The way over the channels of this node, to whom `leader` names.
    #[must_use]
    pub fn new(peers: Peers, leader: watch::Receiver<Option<Leader>>) -> Self {
        Self { peers, leader }
    }

    /// The channel to the leader, if that is another node.
    fn link(&self) -> Option<(NodeId, Link)> {
        let leader = self.leader.borrow().clone().filter(|leader| leader.node != self.peers.caller().node)?;
        // A member without an address has no peers either.
        self.peers.link(leader.node, &leader.address).ok().map(|link| (leader.node, link))
    }
}

/// A service whose calls go to the leader, where that is another node.
#[derive(Clone)]
pub(super) struct Forwarded<S> {
    service: S,
    way: Option<WayToLeader>,
}

impl<S> Forwarded<S> {
    /// Passes calls on if there is a way.
    pub(super) fn new(service: S, way: Option<WayToLeader>) -> Self {
        Self { service, way }
    }
}

impl<S: NamedService> NamedService for Forwarded<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Forwarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let way = self.way.as_ref().filter(|_| !ANSWERED_HERE.contains(&request.uri().path()));
        match way.and_then(WayToLeader::link) {
            None => Box::pin(self.service.call(request)),
            Some((node, link)) => Box::pin(async move {
                let passed_on = pass_on(link, request).await;
                Ok(passed_on.unwrap_or_else(|error| lost(node, error.as_ref()).into_http()))
            }),
        }
    }
}

async fn pass_on(
    mut link: Link,
    request: Request<Body>,
) -> Result<Response<Body>, Box<dyn Error + Send + Sync>> {
    std::future::poll_fn(|cx| link.poll_ready(cx)).await?;
    Ok(link.call(request).await?.map(Body::new))
}

/// No answer came back. Only where no connection stood is it known that nothing was asked.
fn lost(node: NodeId, error: &(dyn Error + Send + Sync + 'static)) -> Status {
    let mut causes = Vec::new();
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(known) = cause {
        if known.is::<ConnectError>() {
            return status::unavailable(format!(
                "node {node}, which leads, cannot be reached: {known}; ask again"
            ));
        }
        causes.push(known.to_string());
        cause = known.source();
    }
    status::unknown(format!(
        "the answer of node {node}, to which this was passed on, was lost ({}); it may have been decided: ask again, with \
         the same id",
        causes.join(": ")
    ))
}
