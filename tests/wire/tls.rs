//! TLS: a handshake that fails is proof; a certificate that is refused after the first write is none.

use std::sync::{Arc, Mutex};

use relatch::docker::Permit;
use relatch::model::{Exchange, NotWritten, Wire};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::SupportedProtocolVersion;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use crate::direct::{LONG, engine_over_tls, lost, restart_by};
use crate::judged::judged;
use crate::script::Entry;
use crate::server::Server;
use crate::support::certificates::Pki;
use crate::support::node::Hold;
use crate::world::{World, detail};

/// Lets in the clients of another CA alone.
fn refusing(version: &'static SupportedProtocolVersion, pki: &Pki) -> TlsAcceptor {
    let others = Pki { engines: Pki::new().engines, clients: Pki::new().clients };
    others.acceptor(&pki.engines.server(&["127.0.0.1"]), &[version])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_fails_is_proof_that_nothing_was_sent() {
    let pki = Pki::new();
    let certificates = tempfile::tempdir().expect("a folder");
    pki.clients.client().write(certificates.path(), &pki.engines);
    let own = pki.acceptor(&pki.engines.server(&["127.0.0.1"]), &[&TLS12, &TLS13]);
    let folder = certificates.path().to_str().expect("a path").to_owned();
    let world = World::held(Server::tls(own), |options| options.arg("--docker-tls").arg(&folder));
    let limit = world.node.cli(&["limits", "set", "connect_ms=2s"]);
    assert_eq!(limit.exit, 0, "{limit:#?}");
    let another = Pki::new().engines.server(&["127.0.0.1"]);
    let renamed = pki.engines.server(&["engine.example"]);
    for (entry, said) in [
        (Entry::Close, ""),
        (Entry::Says(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), "speaks no TLS"),
        (Entry::Ignore, "not ended within 2000 ms"),
        (Entry::Tls(pki.acceptor(&another, &[&TLS12])), "this side refused the engine's certificate"),
        (Entry::Tls(pki.acceptor(&another, &[&TLS13])), "this side refused the engine's certificate"),
        (Entry::Tls(pki.acceptor(&renamed, &[&TLS13])), "subjectAltName"),
        (Entry::Tls(refusing(&TLS12, &pki)), "the engine refused, with the alert"),
    ] {
        let (number, run) = world.opened();
        world.stands_before_the_connection();
        world.server.next(entry);
        world.goes_on();
        let settlement = world.unsent(number, &run);
        // Of one that is closed at once the end may be seen before the handshake begins.
        let of_tls = said.is_empty() || settlement.contains("TLS handshake: ");
        assert!(of_tls && settlement.contains(said), "{said:?}: {settlement}");
        world.hold_again();
        world.refused(number, &["backing-off"]);
    }
    assert_eq!(world.server.heads(), 0);
}

/// Under TLS 1.3 the engine may refuse the client's certificate after the handshake has ended for the client: here
/// after its first write call.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_refused_after_the_first_write_is_uncertain() {
    let pki = Pki::new();
    let certificates = tempfile::tempdir().expect("a folder");
    pki.clients.client().write(certificates.path(), &pki.engines);
    let own = pki.acceptor(&pki.engines.server(&["127.0.0.1"]), &[&TLS13]);
    let folder = certificates.path().to_str().expect("a path").to_owned();
    let written = Hold::new(certificates.path(), "written");
    let world = World::held(Server::tls(own), |options| {
        let failpoints = options.failpoints.clone().expect("it is held before it connects");
        let failpoints = format!("{failpoints};dispatch-after-first-byte={}", written.action());
        options.failpoints(&failpoints).arg("--docker-tls").arg(&folder)
    });
    let (_, run) = world.opened();
    world.stands_before_the_connection();
    let (tell, told) = oneshot::channel();
    world.server.next(Entry::Reluctant(refusing(&TLS13, &pki), told));
    world.goes_on();
    written.reached();
    tell.send(()).expect("the server waits");
    written.release();
    let run = world.unresolved(&run, &["reply-lost", "started-at-equal"]);
    let said = detail(&run, "reply-lost");
    assert!(said.contains("TLS: the engine refused") && said.contains("cert.pem"), "{said}");
    assert_eq!(world.server.heads(), 0, "what was written was never read, and is not sent again");
}

/// Lets the server read on, once the request was written.
struct Tells(Mutex<Option<oneshot::Sender<()>>>);

impl Permit for Tells {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        write();
        self.0.lock().unwrap().take().expect("it is asked once").send(()).expect("the server waits");
        Ok(())
    }
}

#[tokio::test]
async fn a_certificate_that_is_refused_after_the_first_write_counts_as_written() {
    let pki = Pki::new();
    let certificates = tempfile::tempdir().expect("a folder");
    pki.clients.client().write(certificates.path(), &pki.engines);
    let server = Server::of_posts_over(refusing(&TLS13, &pki));
    let (tell, told) = oneshot::channel();
    server.next(Entry::Reluctant(refusing(&TLS13, &pki), told));
    let engine = engine_over_tls(&server, certificates.path());
    let exchange = restart_by(&engine, LONG, Arc::new(Tells(Mutex::new(Some(tell))))).await;
    let Exchange::Written { wire: Wire::Tcp, bytes: 1.., .. } = exchange else { panic!("{exchange:?}") };
    assert!(lost(&exchange).detail.contains("the engine refused"), "{exchange:?}");
    assert_eq!(judged(&exchange).status.word(), "UNRESOLVED", "{exchange:?}");
    let arrived = server.after(1).await;
    assert_eq!((arrived.len(), server.heads()), (1, 0), "{arrived:?}");
}
