//! The engine as a process of its own.

use std::{future::Future, io::Write, net::SocketAddr, path::PathBuf};

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{control::ControlAddress, engine::Engine, error::SimError, spec::EngineSpec};

/// What a scripted engine process is started with.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Serve the Engine API on this unix socket.
    pub socket: Option<PathBuf>,
    /// Serve the Engine API on this TCP address.
    pub tcp: Option<SocketAddr>,
    /// Open the control listener here.
    pub control: Option<ControlAddress>,
    /// A JSON file with an [`EngineSpec`]; an engine without containers if absent.
    pub spec: Option<PathBuf>,
    /// Append the wire log to this file.
    pub log: Option<PathBuf>,
}

/// Reads a specification file.
pub fn read_spec(path: &std::path::Path) -> Result<EngineSpec, SimError> {
    let file = |source| SimError::File { action: "reading", path: path.to_owned(), source };
    let text = std::fs::read(path).map_err(file)?;
    serde_json::from_slice(&text).map_err(|source| SimError::Format { path: path.to_owned(), source })
}

/// Runs an engine until SIGINT, SIGTERM or `POST /shutdown`. Once it serves, it prints one line of JSON on stdout
/// with its real addresses and the id of each container, so that whoever started it knows that it is ready.
pub async fn run(options: RunOptions) -> Result<(), SimError> {
    let spec = options.spec.as_deref().map(read_spec).transpose()?.unwrap_or_default();
    let mut builder = Engine::builder().spec(spec);
    if let Some(log) = &options.log {
        builder = builder.log_file(log);
    }
    let engine = builder.build()?;
    if let Some(path) = &options.socket {
        engine.serve_unix(path).await?;
    }
    let tcp = match options.tcp {
        Some(addr) => Some(engine.serve_tcp(addr).await?),
        None => None,
    };
    let control = match options.control {
        Some(address) => Some(engine.control(address).await?),
        None => None,
    };
    let containers: serde_json::Map<_, _> = engine
        .state()
        .containers
        .iter()
        .map(|container| (container.name.clone(), container.id.clone().into()))
        .collect();
    let ready = json!({
        "socket": options.socket,
        "tcp": tcp.map(|addr| addr.to_string()),
        "control": control.map(|address| address.to_string()),
        "engine_id": engine.engine_id(),
        "containers": containers,
    });
    // Signals are caught before anybody is told that the engine is ready.
    let ended = wait_for_end(&engine)?;
    say(&ready.to_string())?;
    ended.await;
    engine.shutdown().await
}

fn say(line: &str) -> Result<(), SimError> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(|source| SimError::File {
        action: "writing",
        path: "stdout".into(),
        source,
    })
}

fn wait_for_end(engine: &Engine) -> Result<impl Future<Output = ()>, SimError> {
    let failed = |source| SimError::Listen { address: "signals".into(), source };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = engine.end_asked() => {}
        }
    })
}
