//! `relatch.v1.Limits`: the limits that admission keeps.

use tonic::{Request, Response, Status};

use super::backend::Backend;
use super::{convert, status, validate};
use crate::rpc::v1;
use crate::rpc::v1::limits_server::Limits;

/// The service.
pub(super) struct LimitsService<B>(pub(super) B);

impl<B: Backend> LimitsService<B> {
    async fn in_force(&self) -> Result<Option<v1::LimitSet>, Status> {
        self.0.linearizable().await.map_err(status::of)?;
        Ok(Some(self.0.read(|ledger| convert::limits(ledger.limits()))))
    }
}

#[tonic::async_trait]
impl<B: Backend> Limits for LimitsService<B> {
    async fn get_limits(
        &self,
        _: Request<v1::GetLimitsRequest>,
    ) -> Result<Response<v1::GetLimitsResponse>, Status> {
        Ok(Response::new(v1::GetLimitsResponse { limits: self.in_force().await? }))
    }

    async fn set_limits(
        &self,
        request: Request<v1::SetLimitsRequest>,
    ) -> Result<Response<v1::SetLimitsResponse>, Status> {
        let change = validate::limits_change(request.get_ref())?;
        self.0.change_limits(change).await.map_err(status::of)?;
        Ok(Response::new(v1::SetLimitsResponse { limits: self.in_force().await? }))
    }
}
