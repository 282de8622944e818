//! A node that keeps holds, and a log of what was asked.

use std::sync::{Arc, Mutex};

use relatch::rpc::v1::holds_server::{Holds, HoldsServer};
use relatch::rpc::v1::{
    Hold, LiftHoldRequest, LiftHoldResponse, ListHoldsRequest, ListHoldsResponse, PlaceHoldRequest,
    PlaceHoldResponse, RenewHoldRequest, RenewHoldResponse,
};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

#[derive(Default)]
struct State {
    standing: Vec<Hold>,
    log: Vec<&'static str>,
}

#[derive(Clone, Default)]
struct Service(Arc<Mutex<State>>);

#[tonic::async_trait]
impl Holds for Service {
    async fn place_hold(
        &self,
        request: Request<PlaceHoldRequest>,
    ) -> Result<Response<PlaceHoldResponse>, Status> {
        let PlaceHoldRequest { hold_id, scope, operator, reason, .. } = request.into_inner();
        let hold = Hold { hold_id, scope, operator, reason, ..Hold::default() };
        let mut state = self.0.lock().unwrap();
        state.log.push("place");
        state.standing.push(hold.clone());
        Ok(Response::new(PlaceHoldResponse { hold: Some(hold), ..PlaceHoldResponse::default() }))
    }

    async fn renew_hold(
        &self,
        request: Request<RenewHoldRequest>,
    ) -> Result<Response<RenewHoldResponse>, Status> {
        let id = request.into_inner().hold_id;
        let mut state = self.0.lock().unwrap();
        state.log.push("renew");
        let hold = state.standing.iter().find(|hold| hold.hold_id == id).cloned();
        let hold = hold.ok_or_else(|| Status::not_found(format!("no hold {id} stands")))?;
        Ok(Response::new(RenewHoldResponse { hold: Some(hold) }))
    }

    async fn lift_hold(
        &self,
        request: Request<LiftHoldRequest>,
    ) -> Result<Response<LiftHoldResponse>, Status> {
        let id = request.into_inner().hold_id;
        let mut state = self.0.lock().unwrap();
        state.log.push("lift");
        let lifted: Vec<Hold> = state.standing.extract_if(.., |hold| hold.hold_id == id).collect();
        if lifted.is_empty() {
            return Err(Status::not_found(format!("no hold {id} stands")));
        }
        Ok(Response::new(LiftHoldResponse { lifted }))
    }

    async fn list_holds(&self, _: Request<ListHoldsRequest>) -> Result<Response<ListHoldsResponse>, Status> {
        let holds = self.0.lock().unwrap().standing.clone();
        Ok(Response::new(ListHoldsResponse { holds }))
    }
}

/// The node; it ends with the test.
pub struct Node {
    pub addr: String,
    service: Service,
    _runtime: Runtime,
}

impl Node {
    pub fn serve() -> Self {
        let runtime = Runtime::new().unwrap();
        let service = Service::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let server = Server::builder().add_service(HoldsServer::new(service.clone()));
        runtime.spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { addr, service, _runtime: runtime }
    }

    /// What was asked, in order.
    pub fn log(&self) -> Vec<&'static str> {
        self.service.0.lock().unwrap().log.clone()
    }
}
