//! What a transport outcome proves: over raw servers, which keep what really arrived, and through the real binary
//! where the status of a run is what counts. `docs/testing.md` has the rows and the test of each.

#[path = "../support/mod.rs"]
mod support;

mod after;
mod before;
mod cuts;
mod deadlines;
mod direct;
mod judged;
mod looks;
mod once;
mod replies;
mod script;
mod server;
mod shared;
mod tls;
mod visit;
mod world;
