//! The way from one node to another: one long-lived channel to each, and who calls whom in every call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::model::{ClusterId, NodeId, ProcessNonce};

/// The cluster of whoever calls.
const CLUSTER: &str = "relatch-cluster";
/// The node that calls.
const NODE: &str = "relatch-node";
/// The process that calls: another one after each start of the node.
const PROCESS: &str = "relatch-process";
/// The node that is meant.
const TO: &str = "relatch-to";

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(2);

/// A peer whose machine is gone, or whose process is stopped, is noticed within the sum of these.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);
const KEEPALIVE_WITHIN: Duration = Duration::from_secs(2);

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its node.
    pub node: NodeId,
    /// This life of its process.
    pub process: ProcessNonce,
}

/// A channel to one node on which every call says who calls, and whom.
pub type Link = InterceptedService<Channel, Introduction>;

/// Says in every call who calls, and whom.
#[derive(Debug, Clone)]
pub struct Introduction {
    words: [(&'static str, MetadataValue<Ascii>); 4],
}

impl Introduction {
    fn new(caller: &Caller, to: NodeId) -> Self {
        // Ids are printable ASCII, as their types know; what was not would be refused by whoever is called.
        let value = |text: String| MetadataValue::try_from(text).unwrap_or(MetadataValue::from_static(""));
        Self {
            words: [
                (CLUSTER, value(caller.cluster.to_string())),
                (NODE, value(caller.node.to_string())),
                (PROCESS, value(caller.process.to_string())),
                (TO, value(to.to_string())),
            ],
        }
    }
}

impl Interceptor for Introduction {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        for (name, value) in &self.words {
            request.metadata_mut().insert(*name, value.clone());
        }
        Ok(request)
    }
}

/// Who calls, and whom, as a call says it.
///
/// # Errors
///
/// What is missing, or is none.
pub fn introduced(metadata: &MetadataMap) -> Result<(Caller, NodeId), String> {
    let word = |name: &'static str| {
        let value = metadata.get(name).ok_or_else(|| format!("the call has no {name}"))?;
        value.to_str().map(str::to_owned).map_err(|_| format!("the call's {name} is no text"))
    };
    let node = |name: &'static str| {
        let text = word(name)?;
        text.parse().map(NodeId).map_err(|_| format!("the call's {name} is {text:?}, which is no node"))
    };
    let caller = Caller {
        cluster: ClusterId::new(word(CLUSTER)?).map_err(|error| error.to_string())?,
        node: node(NODE)?,
        process: ProcessNonce::new(word(PROCESS)?).map_err(|error| error.to_string())?,
    };
    Ok((caller, node(TO)?))
}

/// The channels of one node to the others. Clones share them.
#[derive(Debug, Clone)]
pub struct Peers {
    caller: Caller,
    channels: Arc<Mutex<BTreeMap<String, Channel>>>,
}

/// An address that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{address:?} is no address of a node: {detail}; it is written as host:port")]
pub struct InvalidAddress {
    /// As given.
    pub address: String,
    /// What is wrong with it.
    pub detail: String,
}

impl Peers {
    /// The channels of `caller`, none of which is open yet.
    #[must_use]
    pub fn new(caller: Caller) -> Self {
        Self { caller, channels: Arc::default() }
    }

    /// This node.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The channel to a node. It connects when it is first needed, and again whenever it was cut.
    ///
    /// # Errors
    ///
    /// [`InvalidAddress`]
    pub fn link(&self, node: NodeId, address: &str) -> Result<Link, InvalidAddress> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let channel = match channels.get(address) {
            Some(channel) => channel.clone(),
            None => {
                let channel = channel(address)?;
                channels.insert(address.to_owned(), channel.clone());
                channel
            }
        };
        Ok(InterceptedService::new(channel, Introduction::new(&self.caller, node)))
    }
}

/// A channel to an address that connects when it is first needed.
///
/// # Errors
///
/// [`InvalidAddress`]
pub fn channel(address: &str) -> Result<Channel, InvalidAddress> {
    let invalid = |detail: String| InvalidAddress { address: address.to_owned(), detail };
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let endpoint = endpoint.map_err(|error| invalid(error.to_string()))?;
    if endpoint.uri().port().is_none() {
        return Err(invalid("it has no port".to_owned()));
    }
    Ok(endpoint
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WITHIN)
        .keep_alive_while_idle(true)
        .connect_lazy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> Caller {
        Caller {
            cluster: ClusterId::new("c".repeat(32)).unwrap(),
            node: NodeId(7),
            process: ProcessNonce::new("a".repeat(32)).unwrap(),
        }
    }

    #[test]
    fn a_call_says_who_calls_and_whom() {
        let said = Introduction::new(&caller(), NodeId(9)).call(Request::new(())).unwrap();
        assert_eq!(introduced(said.metadata()), Ok((caller(), NodeId(9))));
        for name in [CLUSTER, NODE, PROCESS, TO] {
            let mut without = said.metadata().clone();
            without.remove(name);
            assert!(introduced(&without).unwrap_err().contains(name));
        }
    }

    #[tokio::test]
    async fn an_address_is_a_host_and_a_port() {
        let peers = Peers::new(caller());
        for good in ["127.0.0.1:7371", "[::1]:7371", "edge-1.example:7371"] {
            peers.link(NodeId(9), good).unwrap();
        }
        for bad in ["", "edge-1", "a b:7371", "127.0.0.1:port"] {
            assert!(peers.link(NodeId(9), bad).unwrap_err().to_string().contains("host:port"), "{bad:?}");
        }
    }
}
