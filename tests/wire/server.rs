//! A raw server: it answers looks by something small, does to each restart request what a script says, and keeps
//! what really arrived, connection by connection. Nothing of `relatch::sim` is in it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use relatch::env::Stream;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixSocket, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::script::{Entry, Script};
use crate::shared::{Arrived, Shared};
use crate::visit::{Socket, Visit};

/// When waiting for what is to arrive is given up. Not an expectation of speed: a busy machine is slow.
const GIVE_UP_AFTER: Duration = Duration::from_secs(120);

/// How many connections may wait to be accepted.
pub const BACKLOG: u32 = 64;

/// The server. It ends with the value.
pub struct Server {
    address: Address,
    listener: Option<Arc<Listener>>,
    accepting: Option<JoinHandle<()>>,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    _dir: TempDir,
}

enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Server {
    /// One on a unix socket, which answers looks.
    pub fn unix() -> Self {
        Self::listen(true, None, true)
    }

    /// One on a port.
    pub fn tcp() -> Self {
        Self::listen(false, None, true)
    }

    /// One on a port, under TLS.
    pub fn tls(tls: TlsAcceptor) -> Self {
        Self::listen(false, Some(tls), true)
    }

    /// One on a unix socket, or else on a port, to which every connection is a restart's.
    pub fn of_posts(unix: bool) -> Self {
        Self::listen(unix, None, false)
    }

    /// The same under TLS.
    pub fn of_posts_over(tls: TlsAcceptor) -> Self {
        Self::listen(false, Some(tls), false)
    }

    fn listen(unix: bool, tls: Option<TlsAcceptor>, looks: bool) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let address = if unix {
            Address::Unix(dir.path().join("s"))
        } else {
            Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
        };
        let shared = Arc::new(Shared::new(looks));
        let mut server = Self { address, listener: None, accepting: None, tls, shared, _dir: dir };
        server.listen_again();
        server
    }

    /// `unix:///…` or `tcp://…`.
    pub fn endpoint(&self) -> String {
        match &self.address {
            Address::Unix(path) => format!("unix://{}", path.display()),
            Address::Tcp(at) => format!("tcp://{at}"),
        }
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        match &self.address {
            Address::Unix(path) => path,
            Address::Tcp(at) => panic!("{at} is no path"),
        }
    }

    /// What is done to restart requests from now on.
    pub fn script(&self, script: Script) {
        self.shared.set_script(script);
    }

    /// What becomes of the next connection that nothing was said about yet.
    pub fn next(&self, entry: Entry) {
        self.shared.add_entry(entry);
    }

    /// Nobody listens there any more; connections that were made go on.
    pub async fn stop_listening(&mut self) {
        self.stop_accepting().await;
        self.listener = None;
    }

    /// Connections can still be made, and are left waiting.
    pub async fn stop_accepting(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            let _ended = accepting.await;
        }
    }

    /// Listens at the same place, over a socket of its own.
    pub fn listen_again(&mut self) {
        let listener = match &mut self.address {
            Address::Unix(path) => {
                let _first = std::fs::remove_file(&*path);
                let socket = UnixSocket::new_stream().expect("a socket");
                socket.bind(&*path).expect("a path to listen at");
                Listener::Unix(socket.listen(BACKLOG).expect("listening"))
            }
            Address::Tcp(at) => {
                let socket = TcpSocket::new_v4().expect("a socket");
                socket.set_reuseaddr(true).expect("an address that was used before");
                socket.bind(*at).expect("a port");
                let listener = socket.listen(BACKLOG).expect("listening");
                *at = listener.local_addr().expect("its own address");
                Listener::Tcp(listener)
            }
        };
        self.listener = Some(Arc::new(listener));
        self.accept_again();
    }

    /// Accepts what waits, and what comes.
    pub fn accept_again(&mut self) {
        let listener = Arc::clone(self.listener.as_ref().expect("somebody listens"));
        let (shared, tls) = (Arc::clone(&self.shared), self.tls.clone());
        self.accepting = Some(tokio::spawn(async move {
            loop {
                let socket = listener.accept().await.expect("accepting");
                let entry = shared.next_entry();
                let number = shared.begin();
                let visit = Visit::new(socket, Arc::clone(&shared), number);
                tokio::spawn(visit.run(entry, tls.clone()));
            }
        }));
    }

    /// Makes connections until no more can wait: they wait as long as this is kept.
    pub async fn fill_backlog(&self) -> Vec<Box<dyn Stream>> {
        let mut waiting = Vec::new();
        let patience = Duration::from_millis(300);
        loop {
            let connecting = async {
                let stream: Box<dyn Stream> = match &self.address {
                    Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
                    Address::Tcp(at) => Box::new(TcpStream::connect(at).await?),
                };
                io::Result::Ok(stream)
            };
            match tokio::time::timeout(patience, connecting).await {
                Ok(Ok(stream)) => waiting.push(stream),
                // A unix socket says so at once; a port does not answer.
                Ok(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => return waiting,
                Err(_) => return waiting,
                Ok(Err(error)) => panic!("connecting: {error}"),
            }
            assert!(waiting.len() < 10 * BACKLOG as usize, "the backlog never filled");
        }
    }

    /// What arrived so far, on each connection.
    pub fn arrived(&self) -> Vec<Arrived> {
        self.shared.arrived()
    }

    /// The same, once it is as wanted.
    pub async fn once(&self, what: &str, wanted: impl Fn(&[Arrived]) -> bool) -> Vec<Arrived> {
        let mut log = self.shared.log();
        let waited = tokio::time::timeout(GIVE_UP_AFTER, log.wait_for(|log| wanted(log))).await;
        match waited {
            Ok(log) => log.expect("the server goes on").clone(),
            Err(_) => panic!("gave up waiting for {what}: {:#?}", self.arrived()),
        }
    }

    /// What arrived, once that many connections are over.
    pub async fn after(&self, connections: usize) -> Vec<Arrived> {
        let over = |log: &[Arrived]| log.iter().filter(|arrived| arrived.over).count() >= connections;
        self.once(&format!("{connections} connections to be over"), over).await
    }

    /// The connections on which a restart, or its beginning, arrived for this container.
    pub fn posts(&self, id: &str) -> Vec<Arrived> {
        let wanted = format!("POST /containers/{id}/");
        let mut arrived = self.arrived();
        arrived.retain(|arrived| arrived.bytes.starts_with(wanted.as_bytes()));
        arrived
    }

    /// How often the beginning of a restart request arrived, wherever.
    pub fn heads(&self) -> usize {
        self.arrived().iter().map(|arrived| heads(&arrived.bytes)).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

/// How often a restart request begins in what arrived.
pub fn heads(arrived: &[u8]) -> usize {
    String::from_utf8_lossy(arrived).matches("POST ").count()
}

impl Listener {
    async fn accept(&self) -> io::Result<Socket> {
        Ok(match self {
            Self::Unix(listener) => Socket::Unix(listener.accept().await?.0),
            Self::Tcp(listener) => {
                let stream = listener.accept().await?.0;
                // Whoever drops it resets it; its end is told by a shutdown.
                stream.set_zero_linger()?;
                Socket::Tcp(stream)
            }
        })
    }
}
