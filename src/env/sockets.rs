//! Connections, so that a simulated network can take the place of the machine's.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::pin::Pin;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// One connection, both ways.
pub trait Stream: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Debug + Send + Unpin> Stream for S {}

/// A connection that is being made.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + 'a>>;

/// A way to connect. Each waits as long as the system does: limits are the caller's.
pub trait Sockets: Debug + Send + Sync {
    /// Connects to a unix socket.
    fn connect_unix<'a>(&'a self, path: &'a Path) -> Connecting<'a>;

    /// Connects to a TCP port; `host` is a name, which is looked up first, or an address without brackets.
    fn connect_tcp<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;
}

/// The machine's own sockets.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsSockets;

impl Sockets for OsSockets {
    fn connect_unix<'a>(&'a self, path: &'a Path) -> Connecting<'a> {
        Box::pin(async move {
            let stream = UnixStream::connect(path).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn connect_tcp<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            // A request is one small write that nothing follows: it must not wait for more.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// True if something is mounted at that very path: what is there then stays, whatever is put in its place where
/// it came from. A kernel before Linux 5.8 never says so.
#[must_use]
pub fn is_mount_point(path: &Path) -> bool {
    statx(CWD, path, AtFlags::empty(), StatxFlags::empty())
        .is_ok_and(|seen| seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}
