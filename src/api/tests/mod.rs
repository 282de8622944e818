//! The services over real gRPC, with a ledger of the test's own behind them.

mod book;
mod docs;
mod fidelity;
mod forwarding;
mod services;
mod watching;
