//! Whether clients could reach a node.

use std::net::TcpListener;

use super::super::dev::Setup;
use super::check::Check;

const NAME: &str = "listen";

/// Listens for a moment.
pub(super) fn look(setup: &Setup) -> Check {
    let listen = setup.listen;
    if let Err(error) = setup.require_loopback() {
        return Check::fail(NAME, error.to_string(), "give --listen a loopback address");
    }
    match TcpListener::bind(listen) {
        Ok(_) if listen.port() == 0 => {
            Check::ok(NAME, format!("a free port on {} will be taken", listen.ip()))
        }
        Ok(_) => Check::ok(NAME, format!("{listen} is free")),
        Err(error) => Check::fail(
            NAME,
            format!("listening on {listen}: {error}"),
            "if that is a relatch of yours, it runs already; else give --listen another port, such as 127.0.0.1:0 for any",
        ),
    }
}
