//! `relatch dev`: one node, one host, one process.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::beside::Served;
use super::binding::{Binding, EngineWord};
use super::error::NodeError;
use super::own_container::{container_layer, own_container};
use super::panic::abort_on_panic;
use super::parts;
use crate::api;
use crate::consensus::{self, Consensus};
use crate::coordinator::{Coordinator, HostLink, NamedLimits, Parts};
use crate::dispatch::Dispatcher;
use crate::docker::{Endpoint, Engine, EngineLimits, TcpOptions};
use crate::env::{self, Clock, OsRandomness, Randomness, SystemClock, hex_id};
use crate::ledger::{Guard, Limits, Proposer};
use crate::model::{HostName, NodeId, ProcessNonce};
use crate::rpc::{Caller, Peers};
use crate::storage::{DataDir, Identity};

/// The one node.
const NODE: NodeId = NodeId(1);

/// The name of its one host.
const HOST: &str = "local";

/// What `relatch dev` is started with.
#[derive(Debug, Clone)]
pub struct DevOptions {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// The data directory may lie in the writable layer of this process's own container.
    pub ephemeral_data: bool,
    /// The engine's endpoint, as in `unix:///var/run/docker.sock`.
    pub docker: String,
    /// How it is reached, if that is over TCP.
    pub tcp: TcpOptions,
    /// The grace limit, in seconds; `None` leaves the one in force.
    pub grace_max_s: Option<u32>,
    /// The margin of the client deadline, in milliseconds; `None` leaves the one in force.
    pub margin_ms: Option<u64>,
}

/// What a node tells whoever started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DevNotice {
    /// Clients can connect, there. Nothing is said of the engine yet.
    Serving(SocketAddr),
    /// The engine began to answer, or does not (any more).
    Engine(EngineWord),
}

/// Runs until `stop` resolves, or the node cannot go on. The answers of restarts that are under way then are
/// waited for, unless `hurry` resolves: an answer that is lost keeps its target closed for a long time. `tell`
/// is called once clients can connect, and whenever the engine begins to answer or ceases to.
///
/// What is open when it stops stays open, and is replayed at the next start.
///
/// # Errors
///
/// [`NodeError`]; the process is to exit with an error then.
pub async fn run_dev(
    options: DevOptions,
    tell: impl Fn(DevNotice),
    stop: impl Future<Output = ()>,
    hurry: impl Future<Output = ()>,
) -> Result<(), NodeError> {
    abort_on_panic();
    #[cfg(feature = "failpoints")]
    let _failpoints = fail::FailScenario::setup();
    let holes = env::holes()?;
    let endpoint = Endpoint::read(&options.docker, &options.tcp)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let randomness: Arc<dyn Randomness> = Arc::new(OsRandomness);
    let named = NamedLimits { grace_max_s: options.grace_max_s, margin_ms: options.margin_ms };
    Limits::default().with(&named.over(&Limits::default())).check()?;
    if let Some(kind) = container_layer(&options.data_dir).filter(|_| !options.ephemeral_data) {
        return Err(NodeError::WritableLayer { data_dir: options.data_dir, kind });
    }
    let identity = Identity::mint(randomness.as_ref(), NODE)?;
    let dir = DataDir::open(&options.data_dir, || Ok(identity))?;
    let cluster = dir.identity().cluster.clone();

    let (journal, database) = parts::open(&dir, NODE, randomness.as_ref(), holes)?;
    let process = ProcessNonce::new(hex_id(randomness.as_ref())?)?;
    let settings = consensus::Settings {
        peers: Peers::new(Caller { cluster, node: NODE, process: process.clone() }),
        holes,
        clock: Arc::clone(&clock),
        dir: dir.path().to_owned(),
        tuning: consensus::Tuning::default(),
    };
    let consensus = Consensus::start(settings, database).await?;
    consensus.initialize_single().await?;
    dir.mark_initialized()?;

    let in_force = consensus.read(|ledger| ledger.limits().clone());
    let engine_limits = EngineLimits {
        connect_ms: in_force.connect_ms,
        inspect_ms: in_force.inspect_ms,
        ..EngineLimits::default()
    };
    let engine = Engine::new(endpoint, engine_limits).with_holes(holes);
    let host = HostName::new(HOST)?;
    let served = serve_again(&consensus, &host, &engine, dir.path()).await?;
    let mut failed = [consensus.fatal(), journal.failed()];
    let dispatcher = Dispatcher::new(engine, journal, Arc::clone(&clock));
    let link = HostLink { dispatcher: dispatcher.clone(), guard: Guard::Agent };
    let (coordinator, supervision) = Coordinator::start(Parts {
        consensus: consensus.clone(),
        hosts: BTreeMap::from([(host.clone(), link)]),
        proposer: Proposer { node: NODE, nonce: process },
        clock,
        randomness,
        own_container: own_container(),
        named_limits: named,
        holes,
    });

    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|source| NodeError::Listen { listen: options.listen, source })?;
    let listen =
        listener.local_addr().map_err(|source| NodeError::Listen { listen: options.listen, source })?;
    let (stopping, stopped) = watch::channel(false);
    let (closing, mut under_way) = (coordinator.clone(), dispatcher.under_way());
    let heard = watch::Sender::new(None);
    let hears = heard.subscribe();
    let taken = watch::Sender::new(None);
    let mut is_taken = taken.subscribe();
    let data_dir = dir.path().to_owned();
    let binding = Binding { consensus: consensus.clone(), host, dispatcher, heard, data_dir, served, taken };
    let binder = tokio::spawn(binding.keep(stopped.clone()));
    let mut stop_serving = stopped;
    let mut server = tokio::spawn(api::serve(coordinator, None, listener, async move {
        // The sender lives until the node has ended.
        let _stopped = stop_serving.wait_for(|stop| *stop).await;
    }));
    tell(DevNotice::Serving(listen));

    let [fatal, journal_failed] = &mut failed;
    let serve_error = |detail: String| NodeError::Serve { listen, detail };
    let ended = tokio::select! {
        () = stop => Ok(()),
        why = first(fatal) => Err(NodeError::Fatal { detail: why }),
        why = first(journal_failed) => Err(NodeError::Fatal { detail: why }),
        taken = first(&mut is_taken) => Err(taken.into()),
        served = &mut server => Err(serve_error(match served {
            Ok(Ok(())) => "it ended by itself".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        })),
        never = pass_on(hears, &tell) => match never {},
    };
    // A node that cannot go on must not wait for parts that may hang on the same trouble.
    ended?;
    closing.stop_admitting();
    let count = *under_way.borrow();
    if count > 0 {
        tracing::warn!(
            restarts = count,
            "waiting for the engine's answer; a second signal ends it now, and each of their containers is then \
             closed to another restart for about 10 minutes"
        );
        tokio::select! {
            _ = under_way.wait_for(|count| *count == 0) => {}
            () = hurry => {}
        }
    }
    drop(closing);
    stopping.send_replace(true);
    supervision.shutdown().await;
    let served = server.await.map_err(|error| serve_error(error.to_string()))?;
    served.map_err(|error| serve_error(error.to_string()))?;
    // It only ever ends because it was told to.
    let _bound = binder.await;
    consensus.shutdown().await;
    Ok(())
}

/// Serves the engine that the host was bound to before, ahead of everything that may be sent to it. One that another
/// process serves is no matter if it is another engine that answers now.
async fn serve_again(
    consensus: &Consensus,
    host: &HostName,
    engine: &Engine,
    data_dir: &Path,
) -> Result<Option<Served>, NodeError> {
    let bound = consensus.read(|ledger| ledger.host(host).map(|host| host.engine_id.clone()));
    let Some(bound) = bound else { return Ok(None) };
    match Served::begin(&bound, data_dir) {
        Ok(served) => Ok(Some(served)),
        Err(taken) => match engine.identify().await {
            Ok(now) if now.engine_id != bound => Ok(None),
            _ => Err(taken.into()),
        },
    }
}

/// Tells what is heard of the engine, for as long as it is polled.
async fn pass_on(mut heard: watch::Receiver<Option<EngineWord>>, tell: &impl Fn(DevNotice)) -> Infallible {
    while heard.changed().await.is_ok() {
        let word = heard.borrow_and_update().clone();
        word.map(DevNotice::Engine).into_iter().for_each(tell);
    }
    std::future::pending().await
}

/// Resolves with the first reason.
async fn first<T: Clone>(reasons: &mut watch::Receiver<Option<T>>) -> T {
    let reason = reasons.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
    match reason {
        Some(reason) => reason,
        None => std::future::pending().await,
    }
}
