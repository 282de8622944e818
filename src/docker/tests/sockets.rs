//! An engine in memory: nothing in this module reaches a socket but through the trait.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::{Endpoint, Engine, EngineLimits, Permit, Sealed, TcpOptions, Written};
use crate::env::{Connecting, Sockets, Stream};
use crate::model::{ContainerId, Grace, GraceSource, Holes, NotWritten, NotWrittenCause, Reply, Wire};

/// Keeps the head of each request, and answers it with 204.
#[derive(Debug, Default)]
struct Memory {
    heads: Arc<Mutex<Vec<String>>>,
    /// The hosts and ports that TCP was asked for.
    asked: Arc<Mutex<Vec<(String, u16)>>>,
    refuses: bool,
}

impl Sockets for Memory {
    fn connect_unix<'a>(&'a self, _: &'a Path) -> Connecting<'a> {
        self.answer()
    }

    fn connect_tcp<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        self.asked.lock().unwrap().push((host.to_owned(), port));
        self.answer()
    }
}

impl Memory {
    fn answer(&self) -> Connecting<'_> {
        let heads = Arc::clone(&self.heads);
        Box::pin(async move {
            if self.refuses {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (near, mut far) = duplex(4096);
            tokio::spawn(async move {
                let mut head = vec![0; 4096];
                let count = far.read(&mut head).await.unwrap();
                heads.lock().unwrap().push(String::from_utf8_lossy(&head[..count]).into_owned());
                far.write_all(b"HTTP/1.1 204 No Content\r\nServer: Docker/27.0\r\n\r\n").await.unwrap();
            });
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

struct Yes;

impl Permit for Yes {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        write();
        Ok(())
    }
}

fn engine(memory: Memory) -> Engine {
    engine_at("unix:///nowhere", memory)
}

fn engine_at(endpoint: &str, memory: Memory) -> Engine {
    let told = TcpOptions { insecure: true, ..TcpOptions::default() };
    let endpoint = Endpoint::read(endpoint, &told).unwrap();
    Engine::over(Arc::new(memory), endpoint, EngineLimits::default(), Holes::none())
}

#[tokio::test]
async fn a_restart_goes_over_the_sockets_that_the_engine_was_given() {
    let memory = Memory::default();
    let heads = Arc::clone(&memory.heads);
    let id = ContainerId::new("a".repeat(64)).unwrap();
    let grace = Grace { seconds: 7, source: GraceSource::Request };
    let connection = engine(memory).connect().await.unwrap();
    let sealed = connection.restart(&id, grace, Duration::from_secs(60), Arc::new(Yes)).await;
    let Sealed::Written(Written { reply: Reply::Complete { status: 204, .. }, .. }) = sealed else {
        panic!("{sealed:?}")
    };
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 1);
    assert!(heads[0].starts_with(&format!("POST /containers/{id}/restart?t=7 HTTP/1.1\r\n")), "{heads:?}");
}

#[tokio::test]
async fn sockets_that_refuse_are_proof_that_nothing_was_written() {
    let proof = engine(Memory { refuses: true, ..Memory::default() }).connect().await.unwrap_err();
    assert_eq!(proof.why().cause, NotWrittenCause::Unreachable);
}

#[tokio::test]
async fn tcp_is_asked_for_by_host_and_port_and_the_request_names_both() {
    for (endpoint, host, port) in [
        ("tcp://engine.example:2375", "engine.example", 2375),
        ("tcp://[2001:db8::1]:4243", "2001:db8::1", 4243),
    ] {
        let memory = Memory::default();
        let (heads, asked) = (Arc::clone(&memory.heads), Arc::clone(&memory.asked));
        let id = ContainerId::new("a".repeat(64)).unwrap();
        let connection = engine_at(endpoint, memory).connect().await.unwrap();
        let sealed = connection.start(&id, Duration::from_secs(60), Arc::new(Yes)).await;
        assert!(matches!(sealed, Sealed::Written(Written { wire: Wire::Tcp, .. })), "{sealed:?}");
        assert_eq!(*asked.lock().unwrap(), [(host.to_owned(), port)]);
        let host_line = format!("host: {}\r\n", endpoint.trim_start_matches("tcp://"));
        assert!(heads.lock().unwrap()[0].contains(&host_line), "{heads:?}");
    }
}

#[tokio::test]
async fn a_tcp_connection_that_is_refused_is_proof_that_nothing_was_written() {
    let refusing = Memory { refuses: true, ..Memory::default() };
    let proof = engine_at("tcp://engine.example:2375", refusing).connect().await.unwrap_err();
    assert_eq!(proof.why().cause, NotWrittenCause::Unreachable);
    assert!(proof.why().detail.starts_with("connecting to tcp://engine.example:2375: "), "{proof:?}");
}
