//! The wire log: what really arrived, byte for byte, and what was done about it.
//!
//! A judge who knows nothing of the client can tell from it how many restart requests reached a container, which of
//! them took effect, and how each exchange ended. Bytes are counted as they are read from the socket.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{clock, error::SimError, script::Endpoint};

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// 1, 2, 3, … over the whole log.
    pub seq: u64,
    /// The machine's wall clock, RFC 3339.
    pub time: String,
    /// What happened.
    pub event: Event,
}

/// What happened on the wire or in the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// A connection was accepted.
    Accepted {
        /// Its number, from 1.
        connection: u64,
        /// The socket path or TCP address that accepted it.
        listener: String,
    },
    /// The head of a request was read whole: the request arrived.
    Request {
        /// The connection.
        connection: u64,
        /// Its number over all connections, from 1.
        request: u64,
        /// The method.
        method: String,
        /// Path and query as received.
        target: String,
        /// What it asks for.
        endpoint: Endpoint,
        /// The full id of the container that its path meant at that moment.
        container: Option<String>,
        /// The head as received; bytes that are no UTF-8 are replaced.
        head: String,
        /// Bytes of the head.
        head_bytes: u64,
        /// The rule that treats it: its name, or `unnamed`.
        rule: Option<String>,
    },
    /// A request never became whole: its head was cut by the script, or the client left before its end.
    CutRequest {
        /// The connection.
        connection: u64,
        /// Bytes of it that were read.
        bytes: u64,
        /// Those bytes; what is no UTF-8 is replaced.
        received: String,
        /// The rule that cut it, if one did.
        rule: Option<String>,
        /// Who ended it.
        ended: Ended,
    },
    /// Something happened to a container.
    Effect {
        /// The request that caused it; none for what the script or the restart policy does.
        request: Option<u64>,
        /// The full id.
        container: String,
        /// What happened.
        effect: EffectKind,
        /// `StartedAt` after it.
        started_at: String,
    },
    /// An exchange is over, as far as the wire goes.
    Exchanged {
        /// The connection.
        connection: u64,
        /// The request.
        request: u64,
        /// Bytes of the request that were read, head and body.
        received_bytes: u64,
        /// The status that was sent, or begun.
        status: Option<u16>,
        /// Bytes of the reply that were handed to the socket.
        sent_bytes: u64,
        /// How it ended.
        ended: Ended,
    },
    /// A connection is over.
    Closed {
        /// The connection.
        connection: u64,
        /// All bytes read from it.
        received_bytes: u64,
        /// All bytes handed to it.
        sent_bytes: u64,
        /// How it ended.
        ended: Ended,
    },
}

/// What happened to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum EffectKind {
    /// It was added to the engine.
    Added,
    /// A stop sent SIGTERM.
    Sigterm,
    /// The grace was over and SIGKILL was sent.
    Sigkill,
    /// Its process ended.
    Exited,
    /// It was started: a new `StartedAt`.
    Started,
    /// A start failed.
    StartFailed,
    /// It was paused.
    Paused,
    /// It was unpaused.
    Unpaused,
    /// It has another name.
    Renamed,
    /// It was removed.
    Removed,
    /// The script set its state, health or `StartedAt`.
    Scripted,
}

/// How an exchange or a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ended {
    /// The reply was sent whole. Of a connection: it was kept alive until then and closed in order.
    Complete,
    /// The script closed it.
    Fin,
    /// The script reset it.
    Rst,
    /// The script keeps it open, reads no more of it and says nothing.
    Stalled,
    /// The client closed it, or its writing half.
    ClientClosed,
    /// The client reset it.
    ClientReset,
    /// What was received is no request; it was answered 400.
    BadRequest,
    /// The engine was shut down.
    Shutdown,
}

/// A list of entries, and what can be asked of it.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// In order.
    pub entries: Vec<Entry>,
}

impl History {
    /// Reads a log file. A torn last line is left out: the writer was killed in it.
    pub fn read(path: &Path) -> Result<Self, SimError> {
        let text = std::fs::read_to_string(path).map_err(|source| SimError::File {
            action: "reading",
            path: path.to_owned(),
            source,
        })?;
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let entries = whole
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|source| SimError::Format { path: path.to_owned(), source })?;
        Ok(Self { entries })
    }

    /// The requests to `endpoint` (or any) that arrived for the container with this full id.
    pub fn requests(&self, container_id: &str, endpoint: Endpoint) -> Vec<&Entry> {
        let wanted = |entry: &&Entry| match &entry.event {
            Event::Request { container, endpoint: asked, .. } => {
                container.as_deref() == Some(container_id)
                    && (endpoint == Endpoint::Any || endpoint == *asked)
            }
            _ => false,
        };
        self.entries.iter().filter(wanted).collect()
    }

    /// The restart requests that arrived for the container with this full id.
    pub fn posts(&self, container_id: &str) -> Vec<&Entry> {
        self.requests(container_id, Endpoint::Restart)
    }

    /// The requests that never became whole.
    pub fn cut_requests(&self) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| matches!(entry.event, Event::CutRequest { .. })).collect()
    }

    /// How often the container with this full id was started, by whatever.
    pub fn starts(&self, container_id: &str) -> usize {
        let started = |entry: &&Entry| match &entry.event {
            Event::Effect { container, effect, .. } => {
                container == container_id && *effect == EffectKind::Started
            }
            _ => false,
        };
        self.entries.iter().filter(started).count()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.event, Event::Accepted { .. })).count()
    }

    /// How the exchange of this request ended; none while it lasts.
    pub fn ended(&self, wanted: u64) -> Option<Ended> {
        self.entries.iter().find_map(|entry| match &entry.event {
            Event::Exchanged { request, ended, .. } if *request == wanted => Some(*ended),
            _ => None,
        })
    }
}

#[derive(Debug, Default)]
struct Written {
    history: History,
    file: Option<(PathBuf, File)>,
    problem: Option<String>,
}

/// The log of a running engine.
#[derive(Debug)]
pub struct WireLog {
    written: Mutex<Written>,
    length: watch::Sender<u64>,
}

impl WireLog {
    /// A log in memory, and in a file if one is named: one JSON object per line, flushed per entry, appended to what
    /// is there.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, SimError> {
        let file = match path {
            None => None,
            Some(path) => {
                let opened = OpenOptions::new().create(true).append(true).open(path);
                let file = opened.map_err(|source| SimError::File {
                    action: "opening",
                    path: path.to_owned(),
                    source,
                })?;
                Some((path.to_owned(), file))
            }
        };
        let written = Written { file, ..Written::default() };
        Ok(Self { written: Mutex::new(written), length: watch::Sender::new(0) })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn append(&self, event: Event) {
        let mut written = self.written();
        let seq = written.history.entries.len() as u64 + 1;
        let entry = Entry { seq, time: clock::rfc3339(Timestamp::now()), event };
        if let Some((path, file)) = &mut written.file {
            let line = serde_json::to_string(&entry).map(|line| line + "\n").map_err(std::io::Error::from);
            // One write per line: a reader never sees half an entry unless this process dies in the call.
            let result = line.and_then(|line| file.write_all(line.as_bytes()).and_then(|()| file.flush()));
            if let Err(error) = result {
                let problem = format!("{}: {error}", path.display());
                tracing::error!(%problem, "the wire log is incomplete");
                written.problem.get_or_insert(problem);
            }
        }
        written.history.entries.push(entry);
        drop(written);
        self.length.send_replace(seq);
    }

    /// Everything so far.
    pub fn history(&self) -> History {
        self.written().history.clone()
    }

    /// Everything after entry `seq`.
    pub fn since(&self, seq: u64) -> Vec<Entry> {
        let written = self.written();
        let entries = &written.history.entries;
        let from = usize::try_from(seq).unwrap_or(usize::MAX).min(entries.len());
        entries[from..].to_vec()
    }

    /// The restart requests that arrived for the container with this full id.
    pub fn posts(&self, container_id: &str) -> Vec<Entry> {
        self.written().history.posts(container_id).into_iter().cloned().collect()
    }

    /// Waits until the log satisfies `condition`, and gives it back. Nothing is logged while the condition looks at
    /// it, so it must not ask the engine for anything.
    pub async fn wait_until(&self, condition: impl Fn(&History) -> bool) -> History {
        let mut length = self.length.subscribe();
        loop {
            length.mark_unchanged();
            {
                let written = self.written();
                if condition(&written.history) {
                    return written.history.clone();
                }
            }
            // The sender lives as long as the log that is borrowed here, so waiting cannot fail.
            let _ = length.changed().await;
        }
    }

    /// Fails if any entry is missing in the file.
    pub(crate) fn check(&self) -> Result<(), SimError> {
        match &self.written().problem {
            None => Ok(()),
            Some(problem) => Err(SimError::LogIncomplete { problem: problem.clone() }),
        }
    }
}
