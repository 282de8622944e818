//! STAND-IN: signatures only, until the coordinator is there.
#![allow(clippy::unimplemented, clippy::unused_async, missing_docs)]
use super::{Answer, RecoveryRequest, RequestError};
use crate::ledger::Ledger;
use crate::model::{ClusterTime, LogIndex};
use tokio::sync::watch;

#[derive(Clone)]
pub struct Coordinator;

impl Coordinator {
    pub async fn request(&self, _: RecoveryRequest) -> Result<Answer, RequestError> {
        unimplemented!()
    }
    pub async fn linearizable(&self) -> Result<(), RequestError> {
        unimplemented!()
    }
    pub fn read<T>(&self, _: impl FnOnce(&Ledger) -> T) -> T {
        unimplemented!()
    }
    pub fn cluster_time(&self) -> ClusterTime {
        unimplemented!()
    }
    pub fn applied(&self) -> watch::Receiver<LogIndex> {
        unimplemented!()
    }
    pub fn ready(&self) -> watch::Receiver<bool> {
        unimplemented!()
    }
}
