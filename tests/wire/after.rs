//! The write call was made, and then the connection ends without a whole reply: nothing is known.

use relatch::ledger::ReasonCode;
use relatch::model::{Exchange, Wire};

use crate::direct::{LONG, engine, lost, request, restart};
use crate::judged::judged;
use crate::script::{End, Reads, Script};
use crate::server::{Server, heads};
use crate::world::World;

/// The longest line about an exchange: its text is bounded, and what was done stands before it.
const LONGEST_DETAIL_BYTES: usize = 2048;

/// That nothing is known of the exchange but that its first write call was made.
fn uncertain(name: &str, exchange: &Exchange, status: Option<u16>) {
    let lost = lost(exchange);
    println!("{name}: {lost:?}");
    assert_eq!((lost.status, lost.timed_out), (status, false), "{name}: {lost:?}");
    assert!(lost.detail.len() <= LONGEST_DETAIL_BYTES, "{name}: {} bytes", lost.detail.len());
    assert!(!lost.detail.chars().any(char::is_control), "{name}: {:?}", lost.detail);
    assert!(!exchange.has_ended(), "{name}: it may still be on its way");
    let run = judged(exchange);
    assert_eq!(run.status.word(), "UNRESOLVED", "{name}: {run:#?}");
    assert_eq!(run.reasons()[0].code, ReasonCode::ReplyLost, "{name}: {run:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_is_uncertain_however_little_of_the_request_was_read() {
    for unix in [true, false] {
        for ends in [End::Reset, End::Fin] {
            for reads in [Reads::Bytes(0), Reads::Bytes(1), Reads::Bytes(90), Reads::Head] {
                let name = format!("{reads:?}, then {ends:?}, over a unix socket: {unix}");
                let server = Server::of_posts(unix);
                server.script(Script::cut(reads, ends));
                let engine = engine(&server);
                let exchange = restart(&engine, LONG).await;
                let whole = request(&engine);
                let Exchange::Written { wire, bytes, .. } = &exchange else { panic!("{name}: {exchange:?}") };
                assert_eq!(*wire, if unix { Wire::Unix } else { Wire::Tcp }, "{name}");
                assert_eq!(*bytes, whole.len() as u64, "{name}: every byte was taken by the system");
                uncertain(&name, &exchange, None);
                let arrived = server.after(1).await;
                assert_eq!(arrived.len(), 1, "{name}: {arrived:?}");
                // Whoever ends its own side only reads the rest as well.
                let read = match (reads, ends) {
                    (Reads::Bytes(count), End::Reset) => count,
                    _ => whole.len(),
                };
                assert_eq!(arrived[0].bytes, &whole.as_bytes()[..read], "{name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_reply_or_none_that_can_be_read_is_uncertain() {
    let head = "HTTP/1.1 404 Not Found\r\nApi-Version: 1.41\r\nServer: Docker/20.10.24 (linux)\r\n";
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let mut known = 0;
    for (name, answer, status) in [
        ("nothing at all", String::new(), None),
        ("half a status line", "HTTP/1.1 20".to_owned(), None),
        ("half a head", head[..40].to_owned(), None),
        ("a head without its end", head.to_owned(), None),
        ("a head without its body", format!("{head}Content-Length: 100\r\n\r\n"), Some(404)),
        ("half a body", format!("{head}Content-Length: 100\r\n\r\n{{\"message\":"), Some(404)),
        ("chunks without the last", format!("{chunked}3\r\nabc\r\n"), Some(404)),
        ("a chunk of no known length", format!("{chunked}zz\r\nabc\r\n0\r\n\r\n"), Some(404)),
        ("a chunk that is longer than it says", format!("{chunked}1\r\nabc\r\n0\r\n\r\n"), Some(404)),
        ("garbage", "\0\x01\x1b[2J\u{202e} this is no HTTP \r\n\r\n".to_owned(), None),
        ("a reply of TLS", "\x15\x03\x03\0\x02\x02\x50".to_owned(), None),
        ("an interim reply alone", "HTTP/1.1 100 Continue\r\n\r\n".to_owned(), None),
        ("many interim replies", "HTTP/1.1 102 Processing\r\n\r\n".repeat(1000), None),
        (
            "another protocol",
            "HTTP/1.1 101 Switching Protocols\r\nServer: Docker/20.10.24 (linux)\r\nConnection: Upgrade\r\n\
             Upgrade: tcp\r\n\r\n"
                .to_owned(),
            Some(101),
        ),
        ("two lengths", format!("{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), None),
        ("no length", format!("{head}Content-Length: some\r\n\r\nab"), None),
        ("a name that is none", format!("{head}a b: c\r\n\r\n"), None),
    ] {
        let server = Server::of_posts(true);
        server.script(Script::answers(answer));
        let exchange = restart(&engine(&server), LONG).await;
        uncertain(name, &exchange, status);
        let arrived = server.after(1).await;
        assert_eq!((arrived.len(), heads(&arrived[0].bytes)), (1, 1), "{name}: {arrived:?}");
        known += usize::from(status.is_some());
    }
    println!("of {known} the status is known all the same");
}

/// An answer without bound is not taken without bound.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_may_take_of_memory_is_bounded() {
    const OFFERED: usize = 64 * 1024 * 1024;
    // What the reader and the socket between them hold at most, by far.
    const TAKEN: usize = 4 * 1024 * 1024;
    let fill = |begin: &str, part: &str| {
        let mut answer = begin.to_owned();
        answer.push_str(&part.repeat(OFFERED / part.len()));
        answer
    };
    for (name, answer, status) in [
        ("a line without end", fill("HTTP/1.1 204 ", "x"), None),
        ("a header without end", fill("HTTP/1.1 204 X\r\na: ", "x"), None),
        ("headers without end", fill("HTTP/1.1 204 X\r\n", "a: b\r\n"), None),
        ("a body without end", fill("HTTP/1.1 500 X\r\nContent-Length: 99999999\r\n\r\n", "x"), Some(500)),
        (
            "chunks without end",
            fill("HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
            Some(500),
        ),
        (
            "one chunk without end",
            fill("HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", "x"),
            Some(500),
        ),
        ("a body to the end of the connection", fill("HTTP/1.0 500 X\r\n\r\n", "x"), Some(500)),
    ] {
        let server = Server::of_posts(true);
        server.script(Script::answers(answer));
        let exchange = restart(&engine(&server), LONG).await;
        uncertain(name, &exchange, status);
        let arrived = server.after(1).await;
        println!("{name}: {} bytes were taken", arrived[0].answered);
        assert!(arrived[0].answered < TAKEN, "{name}: {} bytes were taken", arrived[0].answered);
        assert_eq!((arrived.len(), heads(&arrived[0].bytes)), (1, 1), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_connection_was_cut_stays_unresolved_until_its_effect_is_seen() {
    for server in [Server::unix(), Server::tcp()] {
        let world = World::of(server, |options| options);
        let over_tcp = world.server.endpoint().starts_with("tcp");
        for ends in [End::Reset, End::Fin] {
            for reads in [Reads::Bytes(0), Reads::Bytes(1), Reads::Bytes(90), Reads::Head] {
                // From a unix socket the server itself takes a byte, to see that it is no look.
                if reads == Reads::Bytes(0) && !over_tcp {
                    continue;
                }
                let heads = world.server.heads();
                world.server.script(Script::cut(reads, ends));
                let (number, run) = world.opened();
                let run = world.unresolved(&run, &["reply-lost", "started-at-equal"]);
                assert_eq!(run["quarantined"], false, "an open run needs no quarantine: {run:#}");
                // Of nothing that was read, nothing shows whose it was.
                if ends == End::Fin || matches!(reads, Reads::Head | Reads::Bytes(90)) {
                    world.post(number);
                }
                assert!(world.server.heads() <= heads + 1, "{:#?}", world.server.arrived());
            }
        }
        // The engine had done it, and only the answer was lost.
        world.server.script(Script::cut(Reads::Head, End::Fin).taking_effect());
        let (number, run) = world.opened();
        let run = world.node.wait_for_status(&run, "APPLIED");
        assert_eq!(run["settlement"], "StartedAt only, no response", "{run:#}");
        assert_eq!(run["quarantined"], true, "{run:#}");
        world.post(number);
    }
}
