//! What a server does to a connection.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::looks::engine_reply;

/// What is done to a restart request.
#[derive(Clone, Debug)]
pub struct Script {
    /// How much of it is read.
    pub reads: Reads,
    /// Whether its container is then started anew.
    pub takes_effect: bool,
    /// How long it takes until the answer begins.
    pub takes: Duration,
    /// What is answered at once.
    pub answers: Vec<u8>,
    /// What is answered after that, byte by byte, with this pause before each.
    pub drips: (Vec<u8>, Duration),
    /// What then becomes of the connection.
    pub ends: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// As many bytes. None: what has arrived stays in the socket.
    Bytes(usize),
    /// To the end of the head, which is the end of the request.
    Head,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing more is sent; what still comes is read.
    Fin,
    /// The connection is reset: over a unix socket, if something was left unread, and else closed.
    Reset,
    /// Nothing happens any more; what still comes is read.
    Stall,
}

impl Script {
    /// Reads so much and ends so, without an answer.
    pub fn cut(reads: Reads, ends: End) -> Self {
        let (takes, drips) = (Duration::ZERO, (Vec::new(), Duration::ZERO));
        Self { reads, takes_effect: false, takes, answers: Vec::new(), drips, ends }
    }

    /// Reads the request and answers.
    pub fn answers(answer: impl Into<Vec<u8>>) -> Self {
        Self { answers: answer.into(), ..Self::cut(Reads::Head, End::Fin) }
    }

    /// What a well engine does.
    pub fn restarts() -> Self {
        Self { takes_effect: true, ..Self::answers(engine_reply(204, "")) }
    }

    pub fn then(self, ends: End) -> Self {
        Self { ends, ..self }
    }

    /// The rest of the answer, byte by byte.
    pub fn dripping(self, rest: impl Into<Vec<u8>>, pause: Duration) -> Self {
        Self { drips: (rest.into(), pause), ..self }
    }

    /// The answer begins later.
    pub fn taking(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }

    pub fn taking_effect(self) -> Self {
        Self { takes_effect: true, ..self }
    }
}

/// What becomes of a connection before anything is read from it.
pub enum Entry {
    /// It is closed.
    Close,
    /// This is written, unasked; what comes is read.
    Says(Vec<u8>),
    /// Nothing is written; what comes is read, and never understood.
    Ignore,
    /// It is accepted over this TLS.
    Tls(TlsAcceptor),
    /// The same, but after the client's first words nothing is read until this is sent.
    Reluctant(TlsAcceptor, oneshot::Receiver<()>),
}
