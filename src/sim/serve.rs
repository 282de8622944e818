//! Listening, and the life of each connection.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use tokio::{
    net::{TcpListener, TcpSocket, UnixListener, UnixSocket},
    sync::watch,
};

use super::{
    conn::{Conn, Socket},
    engine::Engine,
    error::SimError,
    exchange::{exchange, refuse},
    intake::{Intake, log_cut, read_head},
    script::ListenMode,
    wire::{ConnectionFault, CutRequest, End},
    wire_log::Ended,
};

/// Where a listener is, so that it can be opened again.
#[derive(Debug, Clone)]
enum Place {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Place {
    fn listen(&self, backlog: u32) -> io::Result<Listener> {
        match self {
            Self::Unix(path) => {
                remove_socket(path)?;
                let socket = UnixSocket::new_stream()?;
                socket.bind(path)?;
                socket.listen(backlog).map(Listener::Unix)
            }
            Self::Tcp(addr) => {
                let socket = match addr {
                    SocketAddr::V4(_) => TcpSocket::new_v4()?,
                    SocketAddr::V6(_) => TcpSocket::new_v6()?,
                };
                // A port is opened again after a refusal while old connections are still in TIME_WAIT.
                socket.set_reuseaddr(true)?;
                socket.bind(*addr)?;
                socket.listen(backlog).map(Listener::Tcp)
            }
        }
    }
}

impl Listener {
    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Socket::Unix(stream)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Dripped bytes are to leave one by one.
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(addr) => write!(f, "{addr}"),
        }
    }
}

impl Engine {
    /// Serves the Engine API on a unix socket. A socket file that is already there is replaced.
    pub async fn serve_unix(&self, path: impl AsRef<Path>) -> Result<(), SimError> {
        self.serve(Place::Unix(path.as_ref().to_owned())).map(|_| ())
    }

    /// Serves the Engine API over TCP; gives the address, in which a port 0 is replaced by the real one.
    pub async fn serve_tcp(&self, addr: SocketAddr) -> Result<SocketAddr, SimError> {
        match self.serve(Place::Tcp(addr))? {
            Place::Tcp(addr) => Ok(addr),
            Place::Unix(_) => Ok(addr),
        }
    }

    /// Sets whether connections are accepted, and returns when every listener has carried it out.
    pub async fn listen(&self, mode: ListenMode) {
        self.inner.listen.send_replace(mode);
        let listeners = self.state().listeners.clone();
        for (_, mut done) in listeners {
            // A listener that has ended accepts nothing, whatever the mode.
            let _ = done.wait_for(|done| *done == mode).await;
        }
    }

    fn serve(&self, place: Place) -> Result<Place, SimError> {
        let failed = |source| SimError::Listen { address: place.to_string(), source };
        let listener = place.listen(self.inner.identity.backlog).map_err(failed)?;
        let place = match &listener {
            Listener::Tcp(listener) => Place::Tcp(listener.local_addr().map_err(failed)?),
            Listener::Unix(_) => place,
        };
        let (done, carried_out) = watch::channel(ListenMode::Open);
        self.state().listeners.push((place.to_string(), carried_out));
        self.inner.tasks.spawn(run_listener(self.clone(), place.clone(), listener, done));
        Ok(place)
    }
}

async fn run_listener(engine: Engine, place: Place, listener: Listener, done: watch::Sender<ListenMode>) {
    let mut wanted = engine.inner.listen.subscribe();
    let name = place.to_string();
    let mut open = Some(listener);
    loop {
        let mode = *wanted.borrow_and_update();
        match mode {
            ListenMode::Open | ListenMode::Deaf if open.is_none() => {
                match place.listen(engine.inner.identity.backlog) {
                    Ok(listener) => open = Some(listener),
                    Err(error) => {
                        tracing::error!(%error, listener = name, "could not listen again");
                        return;
                    }
                }
            }
            ListenMode::Open | ListenMode::Deaf => {}
            ListenMode::Refuse => open = None,
            ListenMode::Unlink => {
                open = None;
                if let Place::Unix(path) = &place
                    && let Err(error) = remove_socket(path)
                {
                    tracing::error!(%error, listener = name, "could not remove the socket file");
                }
            }
        }
        done.send_replace(mode);
        let accepted = match (&open, mode) {
            (Some(listener), ListenMode::Open) => {
                tokio::select! {
                    biased;
                    changed = wanted.changed() => changed.map(|()| None),
                    accepted = listener.accept() => Ok(Some(accepted)),
                }
            }
            _ => wanted.changed().await.map(|()| None),
        };
        match accepted {
            // The engine is gone.
            Err(_) => return,
            Ok(None) => {}
            Ok(Some(Ok(socket))) => {
                let conn = Conn::accepted(engine.clone(), socket, &name);
                engine.inner.tasks.spawn(serve_connection(conn));
            }
            Ok(Some(Err(error))) => tracing::warn!(%error, listener = name, "accepting a connection"),
        }
    }
}

async fn serve_connection(mut conn: Conn) {
    let mut cut = None;
    match conn.engine.take_connection_rule(None) {
        None => {}
        Some((_, ConnectionFault::CloseAtOnce { end })) => {
            let ended = conn.finish_unread(end).await;
            return conn.close(ended);
        }
        Some((rule, ConnectionFault::CutRequest { after_bytes, end })) => {
            cut = Some((rule, CutRequest { after_bytes, end }));
        }
    }
    let ended = loop {
        match read_head(&mut conn, cut.take()).await {
            Intake::Request { head, bytes, cut } => {
                let keeps_alive = head.keeps_alive();
                match exchange(&mut conn, head, bytes, cut).await {
                    Ended::Complete if keeps_alive => {}
                    Ended::Complete => {
                        // In order: the client has said that this is the last exchange.
                        conn.finish(End::Fin).await;
                        break Ended::Complete;
                    }
                    ended => break ended,
                }
            }
            Intake::Cut { rule, end } => {
                // Logged first, because a stall has no end of its own.
                log_cut(&conn, Some(rule), cut_by(end));
                break conn.finish_unread(end).await;
            }
            Intake::Dropped(end) => break conn.finish_unread(end).await,
            Intake::Left(ended) => {
                if !conn.buffered.is_empty() {
                    log_cut(&conn, None, ended);
                }
                break ended;
            }
            Intake::Bad(bad) => {
                let ended = refuse(&mut conn, &bad.to_string()).await;
                log_cut(&conn, None, ended);
                break ended;
            }
        }
    };
    conn.close(ended);
}

fn cut_by(end: End) -> Ended {
    match end {
        End::Fin => Ended::Fin,
        End::Rst => Ended::Rst,
        End::Stall => Ended::Stalled,
    }
}

fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
