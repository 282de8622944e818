//! One deadline over send, head and body, which counts from the first byte (fussybeaver/bollard#514).

use std::time::{Duration, Instant};

use futures::future::join_all;
use relatch::docker::EngineLimits;
use relatch::ledger::ReasonCode;
use relatch::model::{Exchange, Reply};
use tokio::sync::oneshot;
use tokio_rustls::rustls::version::TLS12;

use crate::direct::{engine, engine_over_tls, lost, restart};
use crate::judged::judged;
use crate::looks::engine_reply;
use crate::script::{End, Entry, Reads, Script};
use crate::server::{Server, heads};
use crate::support::certificates::Pki;
use crate::world::World;

const HEAD: &str = "HTTP/1.1 500 Some\r\nApi-Version: 1.41\r\nContent-Length: 100\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_stalls_or_drips_wherever_is_uncertain_at_the_deadline() {
    let soon = Duration::from_millis(300);
    // Where a head is to arrive before the deadline, a busy machine is given time for it.
    let ample = Duration::from_secs(2);
    let (often, rarely) = (Duration::from_millis(1), Duration::from_millis(100));
    let drops = vec![b'x'; 60_000];
    let stalls = |answer: &str| Script::answers(answer).then(End::Stall);
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let cases = [
        ("nothing is read", Script::cut(Reads::Bytes(0), End::Stall), soon, None),
        ("one byte is read", Script::cut(Reads::Bytes(1), End::Stall), soon, None),
        ("the request is read", Script::cut(Reads::Head, End::Stall), soon, None),
        ("half a head", stalls("HTTP/1.1 204 No Con"), soon, None),
        ("an interim reply", stalls(interim), soon, None),
        ("interim replies without end", stalls(&interim.repeat(400_000)), soon, None),
        (
            "a head that drips",
            Script::answers("HTTP/1.1 204 X\r\na: ").dripping(drops.clone(), often),
            soon,
            None,
        ),
        ("half a body", stalls(&format!("{HEAD}half")), ample, Some(500)),
        ("a body that drips", Script::answers(HEAD).dripping(&drops[..99], rarely), ample, Some(500)),
    ];
    let all = cases.map(|(name, script, deadline, status)| async move {
        let server = Server::of_posts(true);
        server.script(script);
        let exchange = restart(&engine(&server), deadline).await;
        let lost = lost(&exchange);
        assert_eq!((lost.status, lost.timed_out), (status, true), "{name}: {lost:?}");
        let wanted = format!("client deadline of {} ms", deadline.as_millis());
        assert!(lost.detail.contains(&wanted), "{name}: {lost:?}");
        let run = judged(&exchange);
        assert_eq!(
            (run.status.word(), run.reasons()[0].code),
            ("UNRESOLVED", ReasonCode::DeadlinePassed),
            "{name}"
        );
        // The socket goes with the exchange, so what the server does to it is over as well.
        let arrived = server.after(1).await;
        assert_eq!((arrived.len(), heads(&arrived[0].bytes)), (1, 1), "{name}: {arrived:?}");
    });
    join_all(all).await;
}

/// The head comes at once; the body would be whole later.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_whole_only_after_the_deadline_is_lost() {
    let server = Server::of_posts(true);
    let body = HEAD.replace("100", "20");
    let script = Script::answers(body).dripping(vec![b'x'; 20], Duration::from_millis(100));
    server.script(script);
    let exchange = restart(&engine(&server), Duration::from_secs(1)).await;
    let lost = lost(&exchange);
    assert_eq!((lost.status, lost.timed_out), (Some(500), true), "{lost:?}");
}

/// How long the engine takes, and may take; a connection takes a second.
const WORK: Duration = Duration::from_millis(1200);
const DEADLINE: Duration = Duration::from_secs(2);
/// The connection is within its own limit, if not by far.
const LIMIT_MS: u64 = 2_500;

/// The whole answer came, though the connection and the work together took longer than the deadline.
fn had_all_its_time(exchange: &Exchange, began: Instant) {
    println!("connected and answered after {:?}", began.elapsed());
    assert!(began.elapsed() > DEADLINE, "the connection was not slow: {:?}", began.elapsed());
    assert!(
        matches!(exchange, Exchange::Written { reply: Reply::Complete { status: 204, .. }, .. }),
        "{exchange:?}"
    );
}

/// The first packet of a connection finds no room: the system sends another after a second.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_connection_takes_nothing_from_the_time_for_the_work() {
    let mut server = Server::of_posts(false);
    server.script(Script::answers(engine_reply(204, "")).taking(WORK));
    server.stop_accepting().await;
    let waiting = server.fill_backlog().await;
    let engine = engine(&server);
    engine.set_limits(EngineLimits { connect_ms: LIMIT_MS, ..engine.limits() });
    let began = Instant::now();
    let makes_room = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(waiting);
        server.accept_again();
    };
    let (exchange, ()) = tokio::join!(restart(&engine, DEADLINE), makes_room);
    had_all_its_time(&exchange, began);
}

/// Under TLS 1.2 the handshake ends with a word of the engine's.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_handshake_takes_nothing_from_the_time_for_the_work() {
    let pki = Pki::new();
    let certificates = tempfile::tempdir().expect("a folder");
    pki.clients.client().write(certificates.path(), &pki.engines);
    let tls = pki.acceptor(&pki.engines.server(&["127.0.0.1"]), &[&TLS12]);
    let server = Server::of_posts_over(tls.clone());
    server.script(Script::answers(engine_reply(204, "")).taking(WORK));
    let (tell, told) = oneshot::channel();
    server.next(Entry::Reluctant(tls, told));
    let engine = engine_over_tls(&server, certificates.path());
    engine.set_limits(EngineLimits { connect_ms: LIMIT_MS, ..engine.limits() });
    let began = Instant::now();
    let goes_on = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        tell.send(()).expect("the server waits");
    };
    let (exchange, ()) = tokio::join!(restart(&engine, DEADLINE), goes_on);
    had_all_its_time(&exchange, began);
}

/// Through the node, whose shortest deadline is 15 s: a body that stalls and a head that drips, while another
/// container is restarted.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_stalls_or_drips_leaves_its_run_unresolved_and_holds_up_nothing_else() {
    let world = World::of(Server::unix(), |options| options.arg("--margin").arg("15s"));
    world.server.script(Script::answers(format!("{HEAD}half")).then(End::Stall));
    let (stalled, first) = world.opened();
    world
        .server
        .once("the request", |log| log.iter().map(|arrived| heads(&arrived.bytes)).sum::<usize>() == 1)
        .await;
    let drips = Script::answers("").dripping(engine_reply(204, ""), Duration::from_secs(1));
    world.server.script(drips);
    let (dripping, second) = world.opened();
    world
        .server
        .once("the request", |log| log.iter().map(|arrived| heads(&arrived.bytes)).sum::<usize>() == 2)
        .await;
    world.server.script(Script::restarts());
    let (_, other) = world.opened();
    let applied = world.node.wait_for_status(&other, "APPLIED");
    for run in [&first, &second] {
        assert_eq!(world.node.run(run)["status"], "RUN_STATUS_INTERLOCKED", "it is waited for: {applied:#}");
    }
    for (number, run) in [(stalled, &first), (dripping, &second)] {
        let run = world.unresolved(run, &["deadline-passed", "started-at-equal"]);
        assert_eq!(run["clientDeadline"], "15s", "{run:#}");
        world.post(number);
    }
}
