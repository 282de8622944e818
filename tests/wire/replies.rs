//! A whole reply: what it proves depends on who wrote it, over what, and on its status.

use relatch::model::{EngineProof, Exchange, Reply, Wire};

use crate::direct::{LONG, engine, restart};
use crate::judged::judged;
use crate::looks::engine_reply;
use crate::script::Script;
use crate::server::{Server, heads};
use crate::world::{World, codes, detail};

const STATUSES: &[u16] =
    &[200, 201, 202, 204, 301, 304, 307, 400, 401, 403, 404, 405, 408, 409, 429, 500, 502, 503, 504, 599];

/// Headers, and whether an engine alone writes them.
const WRITERS: &[(&str, bool)] = &[
    ("Server: Docker/29.0.1 (linux)\r\n", true),
    ("Server: Libpod/5.4.0 (linux)\r\n", true),
    ("Api-Version: 1.41\r\n", true),
    ("Server: nginx\r\nApi-Version: 1.52\r\n", true),
    ("", false),
    ("Server: nginx\r\n", false),
    ("Server: docker-socket-proxy\r\n", false),
    ("Via: Docker/29.0.1\r\nX-Api-Version: 1.41\r\n", false),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_400_or_404_of_the_engine_itself_over_a_unix_socket_is_proof_and_no_other_reply_is() {
    let mut proofs = 0;
    for unix in [true, false] {
        let server = Server::of_posts(unix);
        let engine = engine(&server);
        let mut connections = 0;
        for status in STATUSES.iter().copied() {
            for (writer, proven) in WRITERS.iter().copied() {
                let name = format!("{status}, {writer:?}, over a unix socket: {unix}");
                let body = if matches!(status, 204 | 304) { "" } else { "Content-Length: 5\r\n" };
                server.script(Script::answers(format!("HTTP/1.1 {status} So\r\n{writer}{body}\r\nsorry")));
                let exchange = restart(&engine, LONG).await;
                let (wire, proof) = (
                    if unix { Wire::Unix } else { Wire::Tcp },
                    if proven { EngineProof::Proven } else { EngineProof::Unproven },
                );
                let message = if body.is_empty() { String::new() } else { "sorry".to_owned() };
                let reply = Reply::Complete { status, proof, message };
                let Exchange::Written { bytes, .. } = exchange else { panic!("{name}: {exchange:?}") };
                assert_eq!(exchange, Exchange::Written { wire, bytes, reply }, "{name}");
                assert_eq!(exchange.has_ended(), proven, "{name}: a proxy may still hold the request");

                let is_proof = unix && proven && (status == 400 || status == 404);
                let run = judged(&exchange);
                let wanted = if is_proof { "NOT_APPLIED" } else { "UNRESOLVED" };
                assert_eq!(run.status.word(), wanted, "{name}: {run:#?}");
                proofs += usize::from(is_proof);

                connections += 1;
                let arrived = server.after(connections).await;
                assert_eq!(arrived.len(), connections, "{name}: one connection for one request");
                assert_eq!(heads(&arrived[connections - 1].bytes), 1, "{name}");
            }
        }
    }
    assert_eq!(proofs, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_unix_socket_a_run_is_settled_by_the_engines_refusal_or_by_a_later_start_alone() {
    let world = World::of(Server::unix(), |options| options);

    let (number, run) = world.opened();
    let run = world.node.wait_for_status(&run, "APPLIED");
    assert_eq!(run["settlement"], "a later StartedAt and the engine's reply", "{run:#}");
    assert_eq!(run["quarantined"], false, "{run:#}");
    world.post(number);

    world.server.script(Script::answers(engine_reply(204, "")));
    let (number, run) = world.opened();
    world.unresolved(&run, &["awaiting-start", "started-at-equal"]);
    world.post(number);

    for status in [400, 404] {
        world.server.script(Script::answers(engine_reply(status, "{\"message\":\"no such\\u001b[2J\"}")));
        let (number, run) = world.opened();
        let run = world.node.wait_for_status(&run, "NOT_APPLIED");
        let wanted = format!("the engine refused it with {status}: no such\u{fffd}[2J");
        assert_eq!(run["settlement"], wanted.as_str(), "{run:#}");
        world.post(number);
        // It stays charged.
        let answer = world.node.recover(&format!("local/web-{number}"), &[]);
        assert_eq!(codes(answer.run()), ["attempts-exhausted", "backing-off"], "{answer:#?}");
    }

    for answer in [
        engine_reply(403, "{\"message\":\"denied by a plugin\"}"),
        engine_reply(409, "{\"message\":\"marked for removal\"}"),
        engine_reply(500, "{\"message\":\"did not receive an exit event\"}"),
        "HTTP/1.1 404 Not Found\r\nServer: nginx\r\nContent-Length: 2\r\n\r\nno".to_owned(),
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno".to_owned(),
        "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno".to_owned(),
        "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 2\r\n\r\nno".to_owned(),
    ] {
        world.server.script(Script::answers(answer));
        let (number, run) = world.opened();
        world.unresolved(&run, &["error-reply", "started-at-equal"]);
        world.post(number);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tcp_no_reply_settles_a_run_whoever_wrote_it() {
    let world = World::of(Server::tcp(), |options| options);
    for status in [400, 404, 500] {
        world.server.script(Script::answers(engine_reply(status, "{\"message\":\"so be it\"}")));
        let (number, run) = world.opened();
        let run = world.unresolved(&run, &["error-reply", "started-at-equal"]);
        assert_eq!(detail(&run, "error-reply"), format!("{status}: so be it"));
        world.post(number);
    }
    world.server.script(Script::restarts());
    let (_, run) = world.opened();
    world.node.wait_for_status(&run, "APPLIED");
}

/// A text of an engine is kept, but neither all of it nor as it is.
#[tokio::test(flavor = "multi_thread")]
async fn the_engines_text_is_kept_bounded_and_harmless() {
    let world = World::of(Server::unix(), |options| options);
    let evil = format!("{{\"message\":\"\\u001b]0;owned\\u0007 \\u202e {}\"}}", "x".repeat(60_000));
    world.server.script(Script::answers(engine_reply(500, &evil)));
    let (_, run) = world.opened();
    let run = world.unresolved(&run, &["error-reply"]);
    let said = detail(&run, "error-reply");
    assert!(said.starts_with("500: \u{fffd}]0;owned\u{fffd} \u{fffd} xxx") && said.ends_with("x…"), "{said}");
    assert!(said.len() < 1100, "{} bytes", said.len());
}
