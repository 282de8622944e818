//! The engine from outside: every test speaks to it over a real socket.

mod bollard_client;
mod connections;
mod controlled;
mod endpoints;
mod faults;
mod logged;
mod model;
mod raw;
mod rig;
