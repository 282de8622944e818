//! `DOCKER_HOST`: where an engine listens.

use std::net::IpAddr;

use relatch::docker::{Endpoint, InvalidEndpoint, TcpOptions};
use relatch::model::Wire;

/// What is read is shown in a form that reads as the same, and plain TCP never leaves this machine unasked.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let told = TcpOptions { insecure: true, ..TcpOptions::default() };
    let (parsed, told_so) = (Endpoint::parse(text), Endpoint::read(text, &told));
    for endpoint in [&parsed, &told_so].into_iter().flatten() {
        let shown = endpoint.to_string();
        let again = Endpoint::read(&shown, &told).unwrap_or_else(|error| panic!("{shown:?}: {error}"));
        assert_eq!((again.to_string(), again.wire()), (shown, endpoint.wire()));
    }
    match &parsed {
        Ok(Endpoint::Unix(socket)) => {
            assert!(socket.as_path().is_absolute(), "{text:?}");
            assert!(socket.as_path().as_os_str().len() <= 107, "{text:?}");
        }
        Ok(Endpoint::Tcp(authority)) => {
            let host = authority.host();
            let local = host.parse::<IpAddr>().map(|address| address.to_canonical().is_loopback());
            assert!(local.unwrap_or(host.eq_ignore_ascii_case("localhost")), "{text:?} is another machine");
            assert!(authority.port() != 0, "{text:?}");
        }
        Ok(Endpoint::Tls(..)) => panic!("{text:?} has no certificates"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // Only what is refused for that may be allowed by the word for it.
    match (&parsed, &told_so) {
        (Err(InvalidEndpoint::Insecure(_)), Ok(endpoint)) => assert_eq!(endpoint.wire(), Wire::Tcp),
        (Ok(one), Ok(other)) => assert_eq!(one.to_string(), other.to_string()),
        (Err(one), Err(other)) => assert_eq!(one, other),
        (one, other) => panic!("{text:?}: {one:?}, and {other:?} when told"),
    }
}
