//! `relatch.v1.Holds`: what must not be restarted, for now.

use tonic::{Request, Response, Status};

use super::backend::Backend;
use super::{convert, status, validate};
use crate::rpc::v1;
use crate::rpc::v1::holds_server::Holds;

/// The service.
pub(super) struct HoldsService<B>(pub(super) B);

#[tonic::async_trait]
impl<B: Backend> Holds for HoldsService<B> {
    async fn place_hold(
        &self,
        request: Request<v1::PlaceHoldRequest>,
    ) -> Result<Response<v1::PlaceHoldResponse>, Status> {
        let request = validate::hold_request(request.get_ref())?;
        let placed = self.0.place_hold(request).await.map_err(status::of)?;
        Ok(Response::new(v1::PlaceHoldResponse {
            hold: Some(convert::hold(&placed.hold, self.0.cluster_time())),
            repeated_answer: placed.repeated,
            note: placed.note,
            open_run_ids: placed.open_runs.iter().map(ToString::to_string).collect(),
        }))
    }

    async fn renew_hold(
        &self,
        request: Request<v1::RenewHoldRequest>,
    ) -> Result<Response<v1::RenewHoldResponse>, Status> {
        let id = validate::renew_request(request.get_ref())?;
        let renewed = self.0.renew_hold(id.clone()).await.map_err(status::of)?;
        let hold = renewed.ok_or_else(|| status::no_such_hold(&format!("hold {id}")))?;
        let hold = Some(convert::hold(&hold, self.0.cluster_time()));
        Ok(Response::new(v1::RenewHoldResponse { hold }))
    }

    async fn lift_hold(
        &self,
        request: Request<v1::LiftHoldRequest>,
    ) -> Result<Response<v1::LiftHoldResponse>, Status> {
        let (which, by) = validate::lift_request(request.get_ref())?;
        let what = validate::shown(&which);
        let lifted = self.0.lift_hold(which, by).await.map_err(status::of)?;
        if lifted.is_empty() {
            return Err(status::no_such_hold(&what));
        }
        let now = self.0.cluster_time();
        let lifted = lifted.iter().map(|hold| convert::hold(hold, now)).collect();
        Ok(Response::new(v1::LiftHoldResponse { lifted }))
    }

    async fn list_holds(
        &self,
        _: Request<v1::ListHoldsRequest>,
    ) -> Result<Response<v1::ListHoldsResponse>, Status> {
        self.0.linearizable().await.map_err(status::of)?;
        let now = self.0.cluster_time();
        let holds = self.0.read(|ledger| {
            ledger.holds().filter(|hold| hold.stands(now)).map(|hold| convert::hold(hold, now)).collect()
        });
        Ok(Response::new(v1::ListHoldsResponse { holds }))
    }
}
