//! Certificates that are made for one test.

use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

/// A CA of the test's own.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, both in PEM.
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("making a key");
        let pem = params.self_signed(&key).expect("signing a CA").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Its own certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a server of these names and addresses.
    pub fn server(&self, names: &[&str]) -> Issued {
        self.issue(names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate for a client.
    pub fn client(&self) -> Issued {
        self.issue(&[], ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, names: &[&str], usage: ExtendedKeyUsagePurpose) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names for a certificate");
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("making a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signing a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Issued {
    /// Writes the folder that a Docker client or engine has: `ca.pem` to check the other side by, `cert.pem` and
    /// `key.pem`.
    pub fn write(&self, dir: &Path, checks_by: &Authority) {
        std::fs::create_dir_all(dir).expect("making the folder of certificates");
        for (name, text) in
            [("ca.pem", checks_by.pem()), ("cert.pem", &self.certificate), ("key.pem", &self.key)]
        {
            std::fs::write(dir.join(name), text).expect("writing a certificate");
        }
    }
}

/// The two CAs of a test: who signs engines, and whose clients those let in.
pub struct Pki {
    pub engines: Authority,
    pub clients: Authority,
}

impl Pki {
    pub fn new() -> Self {
        Self { engines: Authority::new("engines"), clients: Authority::new("clients") }
    }

    /// What an engine with this certificate accepts by: clients of the clients' CA, over these versions.
    pub fn acceptor(&self, server: &Issued, versions: &[&'static SupportedProtocolVersion]) -> TlsAcceptor {
        let provider = Arc::new(default_provider());
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(self.clients.pem().as_bytes()).expect("a CA in PEM");
        roots.add(ca).expect("a CA");
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let chain = CertificateDer::from_pem_slice(server.certificate.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(server.key.as_bytes()).expect("a key");
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions of TLS")
            .with_client_cert_verifier(clients.build().expect("a verifier"))
            .with_single_cert(vec![chain], key)
            .expect("a certificate and its key");
        TlsAcceptor::from(Arc::new(config))
    }
}
