//! Every method of every service, every bad input, and the command line: the real binary over the scripted
//! engine, asked by a raw gRPC client as others would write one.

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod beside;
mod commands;
mod explain;
mod help;
mod holds;
mod limits;
mod malformed;
mod quotas;
mod reference;
mod requests;
mod resolve;
mod runs;
mod services;
mod starts;
mod world;
