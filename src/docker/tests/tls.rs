//! TCP and TLS over real sockets of this machine, with certificates that are made here.

use std::time::Duration;

use tempfile::TempDir;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use super::super::certificates::{self, Authority, Issued};
use super::super::raw::{RawEngine, Visit, engine_reply, patient};
use super::super::{
    Endpoint, Engine, EngineError, EngineLimits, InvalidEndpoint, NeverWritten, Permit, Sealed, TcpOptions,
    Written,
};
use super::*;
use crate::model::{ContainerId, EngineProof, Grace, GraceSource, NotWritten, NotWrittenCause, Reply, Wire};

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const LONG: Duration = Duration::from_secs(600);

struct Yes;

impl Permit for Yes {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        write();
        Ok(())
    }
}

/// The two CAs of a test, and a folder for the files of its clients.
struct Pki {
    pki: certificates::Pki,
    dir: TempDir,
}

impl std::ops::Deref for Pki {
    type Target = certificates::Pki;
    fn deref(&self) -> &certificates::Pki {
        &self.pki
    }
}

impl Pki {
    fn new() -> Self {
        Self { pki: certificates::Pki::new(), dir: tempfile::tempdir().unwrap() }
    }

    /// An engine at that endpoint, for a client with this certificate that trusts this CA.
    fn engine(&self, endpoint: &str, client: &Issued, trusts: &Authority) -> Engine {
        client.write(self.dir.path(), trusts);
        let tcp = TcpOptions { certificates: Some(self.dir.path().to_owned()), ..TcpOptions::default() };
        patient(Endpoint::read(endpoint, &tcp).unwrap())
    }
}

async fn restart(engine: &Engine) -> Result<Sealed, NeverWritten> {
    let grace = Grace { seconds: 10, source: GraceSource::Policy };
    let connection = engine.connect().await?;
    Ok(connection.restart(&ContainerId::new(ID).unwrap(), grace, LONG, Arc::new(Yes)).await)
}

/// An engine that knows itself, and answers a restart by this status.
async fn scripted(mut visit: Visit, status: u16) {
    visit
        .serve(|path| match path {
            "/_ping" => engine_reply(200, "OK"),
            "/info" => engine_reply(200, r#"{"ID":"ENGI:NE","Name":"edge"}"#),
            _ => engine_reply(status, "{\"message\":\"so be it\"}"),
        })
        .await;
}

/// A look and a restart there; what arrived must be one connection each, and one POST.
async fn look_and_restart(raw: &RawEngine, engine: &Engine, status: u16) {
    let info = engine.identify().await.unwrap();
    assert_eq!(info.engine_id.as_str(), "ENGI:NE");
    let sealed = restart(engine).await.unwrap();
    let Sealed::Written(Written { wire: Wire::Tcp, bytes, reply }) = sealed else { panic!("{sealed:?}") };
    let message = "so be it".to_owned();
    assert_eq!(reply, Reply::Complete { status, proof: EngineProof::Proven, message });
    let arrived = raw.after(2).await;
    assert_eq!(arrived.len(), 2, "one connection for the look, one for the restart");
    let text = String::from_utf8(arrived[1].clone()).unwrap();
    assert!(text.starts_with(&format!("POST /containers/{ID}/restart?t=10 HTTP/1.1\r\n")), "{text}");
    assert!(text.contains(&format!("host: {}\r\n", engine.endpoint().http_host())), "{text}");
    assert_eq!(text.matches("POST ").count(), 1, "{text}");
    assert_eq!(bytes, arrived[1].len() as u64, "the bytes are those of the plain text");
}

/// That nothing was written, for this reason, and that no byte of a request arrived.
async fn never_written(raw: &RawEngine, engine: &Engine, expected: &[&str]) {
    let error = engine.identify().await.unwrap_err();
    assert!(matches!(error, EngineError::Unreachable { .. }), "{error:?}");
    let why = restart(engine).await.unwrap_err().into_why();
    println!("{}", why.detail);
    assert_eq!(why.cause, NotWrittenCause::Unreachable);
    for text in [error.to_string(), why.detail] {
        assert!(text.contains("TLS handshake: "), "{text}");
        for part in expected {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }
    assert_eq!(raw.after(2).await, [Vec::<u8>::new(), Vec::new()]);
}

#[tokio::test]
async fn a_look_and_a_restart_go_over_plain_tcp() {
    for status in [500, 400, 404] {
        let raw = RawEngine::start_tcp(None, move |visit| scripted(visit, status)).await;
        // A 400 or 404 is the engine's own word here too, but over TCP: the ledger takes that for no proof.
        look_and_restart(&raw, &raw.engine(), status).await;
    }
}

#[tokio::test]
async fn a_look_and_a_restart_go_over_tls() {
    for version in [&TLS12, &TLS13] {
        let pki = Pki::new();
        let server = pki.engines.server(&["127.0.0.1", "localhost"]);
        let tls = pki.acceptor(&server, &[version]);
        let raw = RawEngine::start_tcp(Some(tls), |visit| scripted(visit, 404)).await;
        let by_name = raw.endpoint().replace("tcp://127.0.0.1", "https://localhost");
        let engine = pki.engine(raw.endpoint(), &pki.clients.client(), &pki.engines);
        look_and_restart(&raw, &engine, 404).await;
        let engine = pki.engine(&by_name, &pki.clients.client(), &pki.engines);
        assert_eq!(engine.identify().await.unwrap().name, "edge");
        assert_eq!(engine.endpoint().to_string(), by_name);
    }
}

#[tokio::test]
async fn an_engine_of_another_ca_gets_no_byte() {
    let pki = Pki::new();
    let tls = pki.acceptor(&pki.engines.server(&["127.0.0.1"]), &[&TLS12, &TLS13]);
    let raw = RawEngine::start_tcp(Some(tls), |visit| scripted(visit, 500)).await;
    let engine = pki.engine(raw.endpoint(), &pki.clients.client(), &Authority::new("others"));
    never_written(&raw, &engine, &["this side refused", "UnknownIssuer", "ca.pem"]).await;
}

#[tokio::test]
async fn an_engine_of_another_name_gets_no_byte() {
    let pki = Pki::new();
    let tls = pki.acceptor(&pki.engines.server(&["engine.example"]), &[&TLS12, &TLS13]);
    let raw = RawEngine::start_tcp(Some(tls), |visit| scripted(visit, 500)).await;
    let engine = pki.engine(raw.endpoint(), &pki.clients.client(), &pki.engines);
    never_written(&raw, &engine, &["this side refused", "engine.example", "subjectAltName"]).await;
}

#[tokio::test]
async fn a_certificate_that_the_engine_refuses_in_the_handshake_proves_that_nothing_was_written() {
    let pki = Pki::new();
    let tls = pki.acceptor(&pki.engines.server(&["127.0.0.1"]), &[&TLS12]);
    let raw = RawEngine::start_tcp(Some(tls), |visit| scripted(visit, 500)).await;
    let engine = pki.engine(raw.endpoint(), &Authority::new("others").client(), &pki.engines);
    never_written(&raw, &engine, &["the engine refused", "UnknownCA", "cert.pem", "--tlscacert"]).await;
}

#[tokio::test]
async fn what_speaks_no_tls_gets_no_request() {
    let pki = Pki::new();
    let raw = RawEngine::start_tcp(None, |mut visit: Visit| async move {
        visit.write(engine_reply(400, "what?").as_bytes()).await;
        visit.read_to_end().await;
    })
    .await;
    let engine = pki.engine(raw.endpoint(), &pki.clients.client(), &pki.engines);
    let why = restart(&engine).await.unwrap_err().into_why();
    assert!(why.detail.contains("speaks no TLS"), "{}", why.detail);
    let arrived = raw.after(1).await;
    assert!(!String::from_utf8_lossy(&arrived[0]).contains("POST"), "{arrived:?}");
}

#[tokio::test]
async fn a_handshake_that_hangs_is_over_at_the_connect_limit_and_proves_that_nothing_was_written() {
    let pki = Pki::new();
    let raw = RawEngine::start_tcp(None, |mut visit: Visit| async move { visit.read_to_end().await }).await;
    let engine = pki.engine(raw.endpoint(), &pki.clients.client(), &pki.engines);
    let engine =
        Engine::new(engine.endpoint().clone(), EngineLimits { connect_ms: 50, ..EngineLimits::default() });
    let why = restart(&engine).await.unwrap_err().into_why();
    assert_eq!(why.cause, NotWrittenCause::Unreachable);
    assert!(why.detail.contains("TLS handshake: not ended within 50 ms"), "{}", why.detail);
    raw.after(1).await;
}

#[tokio::test]
async fn a_look_with_a_certificate_that_is_refused_says_which_side_refused() {
    let pki = Pki::new();
    let tls = pki.acceptor(&pki.engines.server(&["127.0.0.1"]), &[&TLS13]);
    let raw = RawEngine::start_tcp(Some(tls), |visit| scripted(visit, 500)).await;
    let engine = pki.engine(raw.endpoint(), &Authority::new("others").client(), &pki.engines);
    let error = engine.identify().await.unwrap_err();
    assert!(matches!(&error, EngineError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("the engine refused"), "{error}");
    assert_eq!(raw.after(1).await, [Vec::<u8>::new()]);
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_what_is_wrong() {
    let pki = Pki::new();
    let (client, other) = (pki.clients.client(), pki.clients.client());
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (file, text, expected) in [
        ("ca.pem", None, "ca.pem: No such file or directory"),
        ("cert.pem", None, "DOCKER_CERT_PATH"),
        ("key.pem", None, "key.pem: No such file or directory"),
        ("ca.pem", Some(""), "it holds no certificate in PEM"),
        ("cert.pem", Some(client.key.as_str()), "it holds no certificate in PEM"),
        ("key.pem", Some("no key\n"), "it holds no private key"),
        ("key.pem", Some(encrypted), "an encrypted one cannot be used"),
        ("key.pem", Some(other.key.as_str()), "key.pem must hold the key of the first certificate"),
        (
            "ca.pem",
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "ca.pem: it is no certificate of a CA",
        ),
        ("cert.pem", Some("-----BEGIN CERTIFICATE-----\nA!\n-----END CERTIFICATE-----\n"), "base64"),
    ] {
        client.write(pki.dir.path(), &pki.engines);
        let path = pki.dir.path().join(file);
        match text {
            Some(text) => std::fs::write(path, text).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        let tcp = TcpOptions { certificates: Some(pki.dir.path().to_owned()), ..TcpOptions::default() };
        let error = Endpoint::read("tcp://10.0.0.1:2376", &tcp).unwrap_err();
        assert!(matches!(error, InvalidEndpoint::Certificates(_)), "{file}: {error:?}");
        assert!(error.to_string().contains(expected), "{file}: {expected:?} is not in {error}");
    }
    let tcp = TcpOptions { certificates: Some(pki.dir.path().to_owned()), ..TcpOptions::default() };
    let error = Endpoint::read("tcp://a..b:2376", &tcp).unwrap_err().to_string();
    assert!(error.contains("no name"), "{error}");
}
