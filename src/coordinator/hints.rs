//! The engines' own events, as hints to look at once. Never evidence: a stream that dies without a word costs
//! nothing but time, since every open run is looked at again anyway.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::sleep;

use super::shared::{HostLink, Shared};

/// The pauses before a stream is asked for again.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LONGEST: Duration = Duration::from_secs(30);

/// Passes on a host's events for as long as it is polled.
pub(super) async fn listen(shared: Arc<Shared>, host: HostLink) {
    let mut pause = RETRY_FIRST;
    loop {
        match host.dispatcher.engine().events().await {
            Ok(mut events) => {
                while let Some(event) = events.next().await {
                    pause = RETRY_FIRST;
                    tracing::debug!(container = %event.container_id, action = event.action, "an engine's event");
                    // Nobody may be waiting for one just now.
                    let _heard = shared.hints.send(event.container_id);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "an engine's events cannot be heard; runs are looked at anyway")
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_LONGEST);
    }
}
