//! One request without a node: through `relatch::docker` itself, to see the phase that it ended in.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use relatch::docker::{Endpoint, Engine, EngineLimits, Permit, TcpOptions};
use relatch::model::{ContainerId, Exchange, Grace, GraceSource, LostReply, NotWritten, Reply};

use crate::looks::id;
use crate::server::Server;

/// Far beyond what a test takes: what never comes is cut by the server, not by this.
pub const LONG: Duration = Duration::from_secs(600);

/// Lets every request pass.
pub struct Yes;

impl Permit for Yes {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        write();
        Ok(())
    }
}

/// The server's engine, with limits far beyond what a test takes, and the hole that `RELATCH_HOLE` names.
pub fn engine(server: &Server) -> Engine {
    reached_by(server, &TcpOptions::default())
}

/// The same over TLS, by the certificates in that folder.
pub fn engine_over_tls(server: &Server, certificates: &Path) -> Engine {
    reached_by(server, &TcpOptions { certificates: Some(certificates.to_owned()), ..TcpOptions::default() })
}

fn reached_by(server: &Server, tcp: &TcpOptions) -> Engine {
    let endpoint = Endpoint::read(&server.endpoint(), tcp).expect("an endpoint");
    let limits = EngineLimits { connect_ms: 600_000, inspect_ms: 600_000, list_ms: 600_000 };
    Engine::new(endpoint, limits).with_holes(relatch::env::holes().expect("a hole that exists"))
}

/// Connects, and asks for one restart of `web-1`.
pub async fn restart(engine: &Engine, deadline: Duration) -> Exchange {
    restart_by(engine, deadline, Arc::new(Yes)).await
}

/// The same by this permit.
pub async fn restart_by(engine: &Engine, deadline: Duration, permit: Arc<dyn Permit>) -> Exchange {
    let grace = Grace { seconds: 10, source: GraceSource::Policy };
    let container = ContainerId::new(id(1)).expect("an id");
    match engine.connect().await {
        Ok(connection) => connection.restart(&container, grace, deadline, permit).await.into(),
        Err(proof) => proof.into(),
    }
}

/// The whole request that [`restart`] sends there.
pub fn request(engine: &Engine) -> String {
    let host = engine.endpoint().to_string();
    let host = host.split_once("://").filter(|(scheme, _)| *scheme != "unix");
    format!(
        "POST /containers/{}/restart?t=10 HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        id(1),
        host.map_or("localhost", |(_, host)| host)
    )
}

/// How the reply was lost, of an exchange whose first write call was made.
pub fn lost(exchange: &Exchange) -> &LostReply {
    match exchange {
        Exchange::Written { reply: Reply::Lost(lost), .. } => lost,
        other => panic!("not lost: {other:?}"),
    }
}
