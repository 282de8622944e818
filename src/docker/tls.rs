//! TLS to an engine, with the files that Docker's own clients use (`DOCKER_CERT_PATH`).
//!
//! The engine's certificate must be of the CA in `ca.pem`, and for the name that was connected to. Nothing
//! is resumed: each connection proves both sides anew, so that a certificate that was replaced counts at once.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error as TlsError, RootCertStore,
};

use super::reply::{MESSAGE_BYTES, harmless};
use crate::env::Stream;

/// What it takes to shake hands with one engine: its name, the CA of its certificate, and a certificate of
/// one's own.
#[derive(Clone)]
pub struct TlsPeer {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    dir: PathBuf,
}

impl fmt::Debug for TlsPeer {
    /// The key is never shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsPeer").field("name", &self.name).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Why there is nothing to shake hands with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCertificates {
    /// The engine's host could be in no certificate.
    #[error(
        "{0:?} is no name that an engine's certificate could hold: write it as DNS does, or as an address"
    )]
    NoName(String),
    /// A file is missing, or may not be read.
    #[error(
        "reading {}: {detail}; the folder for TLS must hold ca.pem, cert.pem and key.pem, as DOCKER_CERT_PATH does",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's own words.
        detail: String,
    },
    /// A file holds something else.
    #[error("reading {}: it holds no {expected} in PEM: {detail}", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What was to be there.
        expected: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The CA's certificate cannot be one that others are checked against.
    #[error("reading {}: it is no certificate of a CA: {detail}", path.display())]
    NotACa {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The client's certificate and key cannot be used together.
    #[error(
        "reading cert.pem and key.pem in {}: {detail}; key.pem must hold the key of the first certificate in cert.pem",
        dir.display()
    )]
    Unusable {
        /// The folder.
        dir: PathBuf,
        /// What is wrong with them.
        detail: String,
    },
}

impl TlsPeer {
    /// Reads `ca.pem`, `cert.pem` and `key.pem` in that folder, once: what is replaced later needs a restart.
    ///
    /// # Errors
    ///
    /// [`InvalidCertificates`] names the file.
    pub(super) fn load(host: &str, dir: &Path) -> Result<Self, InvalidCertificates> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| InvalidCertificates::NoName(host.to_owned()))?;
        let ca = dir.join("ca.pem");
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&ca)? {
            roots.add(certificate).map_err(|error| InvalidCertificates::NotACa {
                path: ca.clone(),
                detail: error.to_string(),
            })?;
        }
        let chain = certificates(&dir.join("cert.pem"))?;
        let key_path = dir.join("key.pem");
        let key = PrivateKeyDer::from_pem_file(&key_path)
            .map_err(|error| not_pem(&key_path, "private key (an encrypted one cannot be used)", error))?;
        let unusable = |error: TlsError| InvalidCertificates::Unusable {
            dir: dir.to_owned(),
            detail: error.to_string(),
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        config.resumption = Resumption::disabled();
        Ok(Self { name, config: Arc::new(config), dir: dir.to_owned() })
    }

    /// Shakes hands over a fresh connection. The error is half a line: which side refused, and what to check.
    pub(super) async fn shake_hands(&self, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, String> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(self.name.clone(), stream).await.map(|stream| Box::new(stream) as _).map_err(
            |error| {
                let why = refusal(&error).unwrap_or_else(|| {
                    format!("{error}; does an engine with TLS (--tlsverify) listen there?")
                });
                format!("{why} (the certificates are in {})", self.dir.display())
            },
        )
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, InvalidCertificates> {
    let read = |error| not_pem(path, "certificate", error);
    let found = CertificateDer::pem_file_iter(path).map_err(read)?.collect::<Result<Vec<_>, _>>();
    match found.map_err(read)? {
        found if found.is_empty() => Err(read(pem::Error::NoItemsFound)),
        found => Ok(found),
    }
}

fn not_pem(path: &Path, expected: &'static str, error: pem::Error) -> InvalidCertificates {
    let path = path.to_owned();
    match error {
        pem::Error::Io(error) => InvalidCertificates::Unreadable { path, detail: error.to_string() },
        error => InvalidCertificates::NotPem { path, expected, detail: error.to_string() },
    }
}

/// What TLS says of an error, if TLS is its cause: which side refused, and what to check. Under TLS 1.3 an
/// engine refuses a certificate only after the handshake, so that this may come with any read.
pub(super) fn refusal(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(cause) = next {
        // What an I/O error wraps is not among its sources.
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = wrapped.and_then(|inner| inner.downcast_ref::<TlsError>());
        if let Some(tls) = tls {
            // A certificate's names are foreign text.
            return Some(harmless(&explain(tls), MESSAGE_BYTES));
        }
        next = cause.source();
    }
    None
}

/// The same of a connection that has ended.
pub(super) fn refused<T>(ended: &Option<Result<T, hyper::Error>>) -> Option<String> {
    ended.as_ref().and_then(|ended| refusal(ended.as_ref().err()?))
}

fn explain(error: &TlsError) -> String {
    use AlertDescription as Alert;
    use CertificateError as Certificate;
    match error {
        TlsError::InvalidCertificate(why) => {
            let check = match why {
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                    "connect by a name that it holds, or give the engine one with this name as subjectAltName"
                }
                Certificate::Expired
                | Certificate::ExpiredContext { .. }
                | Certificate::NotValidYet
                | Certificate::NotValidYetContext { .. } => "renew it; or is this machine's clock wrong?",
                _ => "is ca.pem the CA that signed the engine's certificate?",
            };
            format!("this side refused the engine's certificate: {why}; {check}")
        }
        TlsError::AlertReceived(Alert::ProtocolVersion) => {
            "the engine refused: it speaks neither TLS 1.3 nor 1.2; update it".to_owned()
        }
        TlsError::AlertReceived(alert) => format!(
            "the engine refused, with the alert {alert:?}; is cert.pem signed by the CA that the engine trusts (its \
             --tlscacert), for a client, and not expired?"
        ),
        TlsError::InvalidMessage(_) => {
            format!("{error}; what listens there speaks no TLS: is it plain TCP?")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
#[path = "tests/tls.rs"]
mod tests;
