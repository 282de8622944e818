//! A snapshot on its way: out of a file, in pieces, into a file.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use tokio::sync::{Mutex, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::super::snapshot::{Snapshot, SnapshotFile};
use super::super::snapshot_folder::{Arriving, SnapshotFolder};
use super::super::type_config::{LogId, Vote};
use super::wire;
use crate::rpc::Link;
use crate::rpc::raft::install_request::Part;
use crate::rpc::raft::raft_client::RaftClient;
use crate::rpc::raft::{InstallRequest, SnapshotHead, SnapshotPiece};

/// How much of the file one message carries.
const PIECE_BYTES: usize = 256 << 10;

/// How long one piece may take to be taken, or to come. A snapshot that moves on may take as long as it needs.
const PIECE: Duration = Duration::from_secs(10);

/// How long a peer may take to make the state of a whole snapshot its own, and its log empty.
const INSTALL: Duration = Duration::from_secs(120);

/// Sends a snapshot, and gives the vote that the peer answers.
pub(super) async fn send(
    mut client: RaftClient<Link>,
    vote: &Vote,
    snapshot: SnapshotFile,
) -> Result<Vote, Status> {
    let bytes = snapshot.file.metadata().map_err(|error| reading(&error))?.len();
    let (pieces, stream) = mpsc::channel(1);
    let head = Part::Head(SnapshotHead { vote: Some(wire::from_vote(vote)), bytes });
    let feeding = async move {
        feed(&pieces, head, snapshot).await?;
        drop(pieces);
        // What is left to wait for is the answer.
        tokio::time::sleep(INSTALL).await;
        Err::<std::convert::Infallible, _>(Status::unavailable(format!("no answer within {INSTALL:?}")))
    };
    tokio::select! {
        answer = client.install(ReceiverStream::new(stream)) => {
            wire::to_vote(answer?.into_inner().vote).map_err(Status::internal)
        }
        Err(fault) = feeding => Err(fault),
    }
}

async fn feed(
    pieces: &mpsc::Sender<InstallRequest>,
    head: Part,
    snapshot: SnapshotFile,
) -> Result<(), Status> {
    let put = async |part| match timeout(PIECE, pieces.send(InstallRequest { part: Some(part) })).await {
        Ok(Ok(())) => Ok(()),
        // The call is over; its answer says why.
        Ok(Err(_)) => std::future::pending().await,
        Err(_) => Err(Status::unavailable(format!("no piece was taken within {PIECE:?}"))),
    };
    put(head).await?;
    let mut file = File::from_std(snapshot.file);
    file.rewind().await.map_err(|error| reading(&error))?;
    let mut offset = 0;
    loop {
        let mut data = Vec::with_capacity(PIECE_BYTES);
        (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut data).await.map_err(|error| reading(&error))?;
        if data.is_empty() {
            return Ok(());
        }
        let crc32c = crc32c::crc32c(&data);
        let next = offset + data.len() as u64;
        put(Part::Piece(SnapshotPiece { offset, data, crc32c })).await?;
        offset = next;
    }
}

fn reading(error: &dyn std::fmt::Display) -> Status {
    Status::internal(format!("reading the snapshot: {error}"))
}

fn writing(error: &dyn std::fmt::Display) -> Status {
    Status::internal(format!("writing the snapshot: {error}"))
}

/// Takes in snapshots, one at a time.
#[derive(Debug, Clone)]
pub(in super::super) struct Installer {
    snapshots: Arc<SnapshotFolder>,
    one: Arc<Mutex<()>>,
}

/// A snapshot that came whole, and the vote of the leader that sent it. Its file goes away with this.
pub(super) struct Arrived {
    pub(super) vote: Vote,
    pub(super) snapshot: Snapshot,
    _file: Arriving,
}

impl Installer {
    pub(in super::super) fn new(snapshots: Arc<SnapshotFolder>) -> Self {
        Self { snapshots, one: Arc::default() }
    }

    /// Receives a snapshot, checks all of it, and hands it to `install`. Whatever does not check out leaves nothing
    /// behind.
    pub(super) async fn take<T, F>(
        &self,
        mut parts: impl Stream<Item = Result<InstallRequest, Status>> + Unpin,
        install: impl FnOnce(Vote, Snapshot) -> F,
    ) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let Ok(_one) = self.one.try_lock() else {
            return Err(Status::resource_exhausted("another snapshot is on its way to this node"));
        };
        let Arrived { vote, snapshot, _file } = self.receive(&mut parts).await?;
        install(vote, snapshot).await
    }

    async fn receive(
        &self,
        parts: &mut (impl Stream<Item = Result<InstallRequest, Status>> + Unpin),
    ) -> Result<Arrived, Status> {
        let Some(Part::Head(head)) = next(parts).await? else {
            return Err(broken("it does not begin with its head"));
        };
        let vote = wire::to_vote(head.vote).map_err(broken)?;
        let (arriving, file) =
            self.snapshots.arriving().map_err(|error| Status::internal(error.to_string()))?;
        let mut file = File::from_std(file);
        let mut offset = 0;
        while let Some(part) = next(parts).await? {
            let Part::Piece(piece) = part else {
                return Err(broken("a second head stands among its pieces"));
            };
            if piece.offset != offset || piece.data.is_empty() {
                return Err(broken(format!(
                    "a piece for byte {} comes where byte {offset} is due",
                    piece.offset
                )));
            }
            if crc32c::crc32c(&piece.data) != piece.crc32c {
                return Err(broken(format!("the checksum of the piece at byte {offset} does not match")));
            }
            offset += piece.data.len() as u64;
            if offset > head.bytes {
                return Err(broken(format!("it has more than the {} bytes that were said", head.bytes)));
            }
            file.write_all(&piece.data).await.map_err(|error| writing(&error))?;
        }
        if offset != head.bytes {
            return Err(broken(format!("it ends after {offset} of {} bytes", head.bytes)));
        }
        file.flush().await.map_err(|error| writing(&error))?;
        let snapshots = Arc::clone(&self.snapshots);
        let checked =
            spawn_blocking(move || snapshots.arrived(&arriving).map(|snapshot| (snapshot, arriving)));
        let (snapshot, arriving) = checked
            .await
            .map_err(|error| Status::internal(error.to_string()))?
            .map_err(|error| broken(error.to_string()))?;
        Ok(Arrived { vote, snapshot, _file: arriving })
    }
}

/// The next part, if there is one.
async fn next(
    parts: &mut (impl Stream<Item = Result<InstallRequest, Status>> + Unpin),
) -> Result<Option<Part>, Status> {
    let part =
        timeout(PIECE, parts.next()).await.map_err(|_| broken(format!("no piece came within {PIECE:?}")))?;
    part.transpose()?.map(|request| request.part.ok_or_else(|| broken("a part of it is empty"))).transpose()
}

fn broken(detail: impl Into<String>) -> Status {
    Status::data_loss(format!("the snapshot is refused: {}", detail.into()))
}

/// Whether a protocol-following leader of `vote` can have a snapshot of `last`, beside what is `committed` here. The
/// library takes it for granted.
pub(super) fn is_consistent(
    vote: &Vote,
    last: Option<&LogId>,
    committed: Option<&LogId>,
) -> Result<(), Status> {
    use openraft::vote::RaftLeaderId as _;
    let Some(last) = last else { return Err(broken("it contains no entry")) };
    let term = |id: &LogId| id.committed_leader_id().term;
    if term(last) > vote.leader_id().term() {
        return Err(broken(format!("its last entry is of term {}, beyond its leader's own", term(last))));
    }
    match committed {
        Some(own) if last > own && last.index() <= own.index() => Err(broken(format!(
            "entry {} is of term {} there, and of term {} here, where it is committed",
            last.index(),
            term(last),
            term(own)
        ))),
        _ => Ok(()),
    }
}
