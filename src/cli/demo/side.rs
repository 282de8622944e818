//! The engine of the story: all in which a scripted engine and a real one differ.

use std::time::Duration;

use super::judge::{Witness, short};
use crate::rpc::v1::Run;

/// The container that the story is about.
#[derive(Debug)]
pub(super) struct Container {
    /// Its name.
    pub(super) name: String,
    /// Its full id.
    pub(super) id: String,
}

impl Container {
    /// How it is asked for.
    pub(super) fn target(&self) -> String {
        format!("local/{}", self.name)
    }

    /// A request line or path with its id cut short, for people.
    pub(super) fn shortened(&self, text: &str) -> String {
        text.replace(&self.id, &format!("{}…", short(&self.id)))
    }
}

/// An engine, with a container that runs, and somebody beside it who counts what arrives.
///
/// It listens, for the node, at the folder's `engine_socket`. What happens in it, it tells by itself, and it
/// tells that a restart request arrived before [`Self::post_arrived`] ends.
pub(super) trait EngineSide {
    /// What kind of engine it is, in one word.
    const KIND: &'static str;
    /// What was real and what was not, once the story is over.
    const CLOSING: &'static str;
    /// What to know if the story was ended early.
    const INTERRUPTED: &'static str;
    /// Whether the story goes on after `APPLIED` until it is known that the container is well again.
    const WAITS_FOR_HEALTH: bool;

    /// The container that is restarted.
    fn container(&self) -> &Container;

    /// Why it is restarted, as the request says it.
    fn reason(&self) -> &'static str;

    /// How long the run may take until it is settled (and well, where that is waited for).
    fn settled_within(&self, opened: &Run) -> Duration;

    /// Waits until a restart request has arrived whole.
    async fn post_arrived(&mut self);

    /// What was seen here, independently of relatch; told as well.
    async fn witness(&self) -> anyhow::Result<Witness>;

    /// Leaves the engine in order.
    async fn end(self) -> anyhow::Result<()>;
}
