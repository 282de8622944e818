//! Where an engine listens.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use super::tls::{InvalidCertificates, TlsPeer};
use crate::model::Wire;

/// The address of one Docker Engine, with what it takes to connect there.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// A unix socket.
    Unix(SocketPath),
    /// Plain TCP: whoever reaches that port is root there.
    Tcp(Authority),
    /// TCP under TLS, with a certificate on both sides.
    Tls(Authority, TlsPeer),
}

/// The path of a unix socket: absolute, and no longer than the kernel takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketPath(PathBuf);

/// A host, by its name or its address without brackets, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    host: String,
    port: u16,
}

/// How an engine is reached over TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// The folder of `ca.pem`, `cert.pem` and `key.pem`; without one, TCP is plain.
    pub certificates: Option<PathBuf>,
    /// Lets plain TCP leave this machine.
    pub insecure: bool,
}

/// A text that is no address of an engine, or of one that is not to be reached that way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoint {
    /// Neither a path nor an address.
    #[error(
        "engine endpoint {0:?} is not valid: write it as unix:///var/run/docker.sock, or as tcp://HOST:PORT, such \
         as tcp://10.0.0.7:2376"
    )]
    Shape(String),
    /// An address of a kind that other Docker clients know.
    #[error(
        "engine endpoint {endpoint:?}: {scheme:?} is not supported; unix:///PATH, tcp://HOST:PORT and \
         https://HOST:PORT are"
    )]
    Unsupported {
        /// The whole text.
        endpoint: String,
        /// The part before `://`.
        scheme: String,
    },
    /// Longer than the kernel takes.
    #[error("engine endpoint {0:?} is not valid: the path of a unix socket has at most 107 bytes")]
    TooLong(String),
    /// No port, where clients differ in what they take then.
    #[error(
        "engine endpoint {0:?} has no port: name it, as in tcp://10.0.0.7:2376 (2376 is Docker's with TLS, 2375 \
         without)"
    )]
    NoPort(String),
    /// Plain TCP to another machine.
    #[error(
        "engine endpoint {0:?} is another machine without TLS: whoever is on the way there, or reaches that port, \
         is root on it; name the folder of its certificates with --docker-tls, or accept that with --docker-insecure"
    )]
    Insecure(String),
    /// `https` without certificates.
    #[error(
        "engine endpoint {0:?} needs certificates: name the folder of ca.pem, cert.pem and key.pem with --docker-tls"
    )]
    NoCertificates(String),
    /// Certificates for a unix socket.
    #[error("engine endpoint {0:?} is a unix socket, where there is no TLS: leave --docker-tls out")]
    TlsOverUnix(String),
    /// The certificates.
    #[error(transparent)]
    Certificates(#[from] InvalidCertificates),
}

/// `sun_path` has 108 bytes, the closing zero included (`unix(7)`).
const LONGEST_SOCKET_PATH_BYTES: usize = 107;

/// Of a name in the DNS (RFC 1035, section 2.3.4).
const LONGEST_HOST_BYTES: usize = 253;

impl Endpoint {
    /// Reads `unix:///path/to/socket`, a bare absolute path, or `tcp://` to a port of this machine.
    ///
    /// # Errors
    ///
    /// [`InvalidEndpoint`] names what is supported.
    pub fn parse(text: &str) -> Result<Self, InvalidEndpoint> {
        Self::read(text, &TcpOptions::default())
    }

    /// The same, and `tcp://host:port` or `https://host:port` with certificates, which are read now.
    ///
    /// # Errors
    ///
    /// [`InvalidEndpoint`] names what is supported, and the file if a certificate cannot be used.
    pub fn read(text: &str, tcp: &TcpOptions) -> Result<Self, InvalidEndpoint> {
        match text.split_once("://") {
            None => Self::unix(text, text, tcp),
            Some(("unix", path)) => Self::unix(text, path, tcp),
            Some((scheme @ ("tcp" | "https"), address)) => {
                let authority = Authority::parse(text, address)?;
                match &tcp.certificates {
                    Some(dir) => {
                        let peer = TlsPeer::load(&authority.host, dir)?;
                        Ok(Self::Tls(authority, peer))
                    }
                    None if scheme == "https" => Err(InvalidEndpoint::NoCertificates(text.to_owned())),
                    None if authority.is_loopback() || tcp.insecure => Ok(Self::Tcp(authority)),
                    None => Err(InvalidEndpoint::Insecure(text.to_owned())),
                }
            }
            Some(("", _)) => Err(InvalidEndpoint::Shape(text.to_owned())),
            Some((scheme, _)) => {
                Err(InvalidEndpoint::Unsupported { endpoint: text.to_owned(), scheme: scheme.to_owned() })
            }
        }
    }

    fn unix(text: &str, path: &str, tcp: &TcpOptions) -> Result<Self, InvalidEndpoint> {
        if !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
            return Err(InvalidEndpoint::Shape(text.to_owned()));
        }
        if path.len() > LONGEST_SOCKET_PATH_BYTES {
            return Err(InvalidEndpoint::TooLong(text.to_owned()));
        }
        if tcp.certificates.is_some() {
            return Err(InvalidEndpoint::TlsOverUnix(text.to_owned()));
        }
        Ok(Self::Unix(SocketPath(PathBuf::from(path))))
    }

    /// The kind of connection that leads there.
    #[must_use]
    pub fn wire(&self) -> Wire {
        match self {
            Self::Unix(_) => Wire::Unix,
            Self::Tcp(_) | Self::Tls(..) => Wire::Tcp,
        }
    }

    /// What a request names as its host: HTTP/1.1 demands one, which means nothing over a unix socket.
    pub(super) fn http_host(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Tcp(authority) | Self::Tls(authority, _) => authority.to_string(),
        }
    }
}

impl SocketPath {
    /// The path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl Authority {
    /// Reads `host:port` of `text`, for its errors; a closing slash is left out.
    fn parse(text: &str, address: &str) -> Result<Self, InvalidEndpoint> {
        let shape = || InvalidEndpoint::Shape(text.to_owned());
        let address = address.strip_suffix('/').unwrap_or(address);
        let (host, rest) = match address.strip_prefix('[') {
            Some(bracketed) => {
                let (host, rest) = bracketed.split_once(']').ok_or_else(shape)?;
                host.parse::<Ipv6Addr>().map_err(|_| shape())?;
                (host, rest)
            }
            None => address.split_at(address.find(':').unwrap_or(address.len())),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        let is_host = host.contains(':') || (!host.is_empty() && host.bytes().all(plain));
        if !is_host || host.len() > LONGEST_HOST_BYTES {
            return Err(shape());
        }
        let Some(port) = rest.strip_prefix(':').filter(|port| !port.is_empty()) else {
            let no_port = matches!(rest, "" | ":");
            return Err(if no_port { InvalidEndpoint::NoPort(text.to_owned()) } else { shape() });
        };
        // A number's own parser takes a sign.
        if !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(shape());
        }
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(shape)?;
        Ok(Self { host: host.to_owned(), port })
    }

    /// The host, by its name or its address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// True if it cannot be another machine.
    fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            // RFC 6761, section 6.3: it resolves to this machine alone.
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.0.display()),
            Self::Tcp(authority) => write!(f, "tcp://{authority}"),
            Self::Tls(authority, _) => write!(f, "https://{authority}"),
        }
    }
}

impl std::str::FromStr for Endpoint {
    type Err = InvalidEndpoint;
    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_socket_may_be_written_with_or_without_its_scheme() {
        for text in ["unix:///var/run/docker.sock", "/var/run/docker.sock"] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.to_string(), "unix:///var/run/docker.sock");
            assert_eq!((endpoint.wire(), endpoint.http_host().as_str()), (Wire::Unix, "localhost"));
        }
    }

    #[test]
    fn a_port_of_this_machine_may_be_plain() {
        for (text, shown) in [
            ("tcp://127.0.0.1:2375", "tcp://127.0.0.1:2375"),
            ("tcp://localhost:2375/", "tcp://localhost:2375"),
            ("tcp://[::1]:65535", "tcp://[::1]:65535"),
            ("tcp://[::ffff:127.0.0.1]:1", "tcp://[::ffff:127.0.0.1]:1"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!((endpoint.to_string().as_str(), endpoint.wire()), (shown, Wire::Tcp));
            assert_eq!(format!("tcp://{}", endpoint.http_host()), shown);
        }
    }

    #[test]
    fn another_machine_without_tls_is_refused_unless_told() {
        for text in ["tcp://10.0.0.1:2375", "tcp://engine.example:2375", "tcp://[2001:db8::1]:2375"] {
            let refused = Endpoint::parse(text).unwrap_err();
            assert!(matches!(refused, InvalidEndpoint::Insecure(_)), "{text}: {refused}");
            assert!(refused.to_string().contains("--docker-insecure"), "{refused}");
            let told = TcpOptions { insecure: true, ..TcpOptions::default() };
            assert_eq!(Endpoint::read(text, &told).unwrap().to_string(), text);
        }
        // Never without TLS, whatever is told: that is what was written.
        let told = TcpOptions { insecure: true, ..TcpOptions::default() };
        let refused = Endpoint::read("https://10.0.0.1:2376", &told).unwrap_err();
        assert!(matches!(refused, InvalidEndpoint::NoCertificates(_)), "{refused}");
    }

    #[test]
    fn a_kind_that_is_not_supported_is_refused_by_name_with_what_is() {
        for (address, scheme) in [
            ("ssh://root@engine", "ssh"),
            ("npipe:////./pipe/x", "npipe"),
            ("fd://", "fd"),
            ("http://127.0.0.1:2375", "http"),
        ] {
            let text = Endpoint::parse(address).unwrap_err().to_string();
            assert!(text.contains(&format!("{scheme:?} is not supported")), "{text}");
            assert!(text.contains("unix:///") && text.contains("tcp://HOST:PORT"), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in [
            "",
            "docker.sock",
            "unix://docker.sock",
            "unix://",
            "/run/",
            "://x",
            "localhost:2375",
            "tcp://",
            "tcp://:2375",
            "tcp://127.0.0.1:x",
            "tcp://127.0.0.1:0",
            "tcp://127.0.0.1:+1",
            "tcp://127.0.0.1:65536",
            "tcp://127.0.0.1:2375/path",
            "tcp://me@127.0.0.1:2375",
            "tcp://[::1:2375",
            "tcp://[x]:2375",
            "tcp://::1:2375",
            "tcp://[::1]2375",
            "tcp://a b:2375",
        ] {
            assert!(matches!(Endpoint::parse(bad), Err(InvalidEndpoint::Shape(_))), "{bad:?} was accepted");
        }
        for bad in ["tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://[::1]", "https://engine/"] {
            assert!(matches!(Endpoint::parse(bad), Err(InvalidEndpoint::NoPort(_))), "{bad:?} was accepted");
        }
        let long = format!("/{}", "a".repeat(200));
        assert!(matches!(Endpoint::parse(&long), Err(InvalidEndpoint::TooLong(_))));
    }

    #[test]
    fn a_unix_socket_takes_no_certificates() {
        let tcp = TcpOptions { certificates: Some("/certs".into()), ..TcpOptions::default() };
        let refused = Endpoint::read("/var/run/docker.sock", &tcp).unwrap_err();
        assert!(matches!(refused, InvalidEndpoint::TlsOverUnix(_)), "{refused}");
    }
}
