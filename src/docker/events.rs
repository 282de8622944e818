//! Engine events, as a hint to look sooner. Never as evidence.
//!
//! A stream may die without a word when the engine restarts, and the engine keeps only the last 256 events
//! (docker-archive/classicswarm#2237, luc-ass/docker-telegram-notifier#142): whoever polls besides loses
//! nothing but time.
//!
//! The lines are split here: bollard's decoder keeps an unfinished line without bound, and drops every event
//! that came together with a line which it cannot read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use http::StatusCode;
use hyper::body::{Body, Incoming};
use serde::Deserialize;

use super::engine::Engine;
use super::error::EngineError;
use super::reply::harmless;
use super::session::{Carried, Extent, Look, Session, Wire};
use crate::model::ContainerId;

/// Something happened to a container; what, is only to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventHint {
    /// The container.
    pub container_id: ContainerId,
    /// The engine's word, as in `start` or `health_status: unhealthy`.
    pub action: String,
}

/// The hints of one engine, over one connection. It ends when that connection does, for whatever reason (the
/// bound on what is read over one connection is one, after tens of thousands of events); a new one is the
/// caller's to ask for.
pub struct EventHints {
    connection: Option<Carried>,
    body: Incoming,
    unread: BytesMut,
    /// How much of `unread` has no line break: it is not searched again for every piece that comes.
    searched: usize,
    _session: Session,
}

/// The longest event that is read; longer ones end the stream.
const EVENT_BYTES: usize = 1024 * 1024;

/// What makes a look worth while: `{"type":["container"],"event":["start","die",…]}`.
const PATH: &str = "/events?filters=%7B%22type%22%3A%5B%22container%22%5D%2C%22event%22%3A%5B%22start%22%2C\
                    %22die%22%2C%22health_status%22%2C%22destroy%22%2C%22rename%22%5D%7D";

impl Engine {
    /// Asks the engine for its events from now on. The inspect limit covers the time until it agrees; the
    /// stream itself has no limit.
    ///
    /// # Errors
    ///
    /// [`EngineError`] if the engine does not agree. Later trouble only ends the stream.
    pub async fn events(&self) -> Result<EventHints, EngineError> {
        let limits = self.limits();
        let doing = "listening to events".to_owned();
        let (connect_ms, limit_ms) = (limits.connect_ms, limits.inspect_ms);
        let look = Look { doing, connect_ms, limit_ms, extent: Extent::Many };
        let agreed = async {
            let (wire, connection) = Wire::open(self.sockets(), self.endpoint(), &look).await?;
            let mut connection = Some(connection);
            let asked = async {
                let session = Session::agree(wire, look.of(self.endpoint())).await?;
                let response = session.get(PATH).await?;
                if response.status() != StatusCode::OK {
                    return Err(session.unreadable(format!("status {}", response.status().as_u16())));
                }
                Ok((session, response.into_body()))
            };
            let (session, body) = look.over(self.endpoint(), &mut connection, asked).await?;
            Ok(EventHints { connection, body, unread: BytesMut::new(), searched: 0, _session: session })
        };
        look.within_limit(self.endpoint(), agreed).await
    }
}

impl EventHints {
    /// The next whole line that is an event of a container. Lines that are none are passed over.
    fn next_read(&mut self) -> Option<EventHint> {
        while let Some(end) = self.unread[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = self.unread.split_to(self.searched + end + 1).freeze();
            self.searched = 0;
            if let Some(hint) = hint(&line) {
                return Some(hint);
            }
        }
        self.searched = self.unread.len();
        None
    }
}

impl Stream for EventHints {
    type Item = EventHint;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<EventHint>> {
        loop {
            if let Some(hint) = self.next_read() {
                return Poll::Ready(Some(hint));
            }
            if self.unread.len() > EVENT_BYTES {
                return Poll::Ready(None);
            }
            // The connection moves only while it is polled; once it has ended, what it brought remains.
            if let Some(connection) = &mut self.connection
                && Pin::new(connection).poll(cx).is_ready()
            {
                self.connection = None;
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.unread.extend_from_slice(&data);
                    }
                }
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
    }
}

/// What is read of an event.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: Option<String>,
    actor: Actor,
}

#[derive(Deserialize)]
struct Actor {
    #[serde(rename = "ID")]
    id: ContainerId,
}

fn hint(line: &Bytes) -> Option<EventHint> {
    let event: Event = serde_json::from_slice(line).ok()?;
    let action = harmless(&event.action.unwrap_or_default(), 128);
    Some(EventHint { container_id: event.actor.id, action })
}
