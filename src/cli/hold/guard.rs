//! Looks after a hold while its command runs: renews it, and notices when it does not stand any more.

use std::time::Duration;

use prost_types::Duration as Length;
use tokio::time::sleep;
use tonic::Code;

use super::super::client::{self, CallError, Nodes, Retry};
use super::super::duration;
use super::super::holds;
use super::super::output::Output;
use crate::rpc::v1::{Hold, RenewHoldRequest, RenewHoldResponse};

/// How long the hold of a command stands without a word of relatch, unless it was given a time of its own: so long it
/// outlives a relatch that was killed, or that reaches no node.
pub(super) const LEASE: Duration = Duration::from_secs(600);

/// How often relatch says that the command still runs.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(60);

/// The pause before nodes that did not say whether the hold stands are asked again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What the clocks of two machines may differ by over the time of a hold: it is not over before the node says so.
const CLOCKS: Duration = Duration::from_millis(10);

/// Returns once the hold is known not to stand any more, with how that came. It is renewed so often; without that, its
/// time is awaited.
pub(super) async fn until_over(
    hold: &Hold,
    renew_every: Option<Duration>,
    nodes: &mut Nodes,
    output: &Output,
) -> &'static str {
    match renew_every {
        Some(every) => {
            until_not_renewed(&hold.hold_id, every, nodes, output).await;
            "it was lifted, or it was not renewed in time"
        }
        None => {
            until_not_listed(hold, nodes, output).await;
            "its time (--for) is over, or it was lifted"
        }
    }
}

/// A renewal that no node answers is no end yet: a cluster that does not run counts no time.
async fn until_not_renewed(id: &str, every: Duration, nodes: &mut Nodes, output: &Output) {
    let mut is_silent = false;
    loop {
        sleep(every).await;
        match renew(id, nodes, output).await {
            Ok(_) if std::mem::take(&mut is_silent) => {
                output.note(format!("hold {id} is renewed again; it stood all the time"));
            }
            Ok(_) => {}
            Err(CallError::Answered(status) | CallError::AnsweredLate(status))
                if status.code() == Code::NotFound =>
            {
                return;
            }
            Err(error) if !std::mem::replace(&mut is_silent, true) => {
                let lease = duration::show(LEASE);
                output.note(format!(
                    "hold {id} was not renewed, and that is tried again: it ends {lease} after it was renewed \
                     last: {error}"
                ));
            }
            Err(_) => {}
        }
    }
}

async fn renew(id: &str, nodes: &mut Nodes, output: &Output) -> Result<RenewHoldResponse, CallError> {
    let request = RenewHoldRequest { hold_id: id.to_owned() };
    let call = async |mut client: client::Holds| client.renew_hold(request.clone()).await;
    nodes.call(Retry::READ, output, call).await
}

async fn until_not_listed(hold: &Hold, nodes: &mut Nodes, output: &Output) {
    let id = &hold.hold_id;
    let mut left = length(hold.ends_in);
    let mut is_silent = false;
    while let Some(pause) = left {
        sleep(pause).await;
        left = match holds::list(nodes, output).await {
            Ok(answer) => match answer.holds.into_iter().find(|standing| standing.hold_id == *id) {
                Some(standing) => length(standing.ends_in),
                None => return,
            },
            Err(error) => {
                if !std::mem::replace(&mut is_silent, true) {
                    output.note(format!("the time of hold {id} is over, as far as is known here: {error:#}"));
                }
                Some(ASK_AGAIN)
            }
        };
    }
    // It has no end.
    std::future::pending().await
}

fn length(left: Option<Length>) -> Option<Duration> {
    // The longest that there is does not fit: that is no time to be awaited.
    Some(Duration::try_from(left?).ok()? + CLOCKS)
}
