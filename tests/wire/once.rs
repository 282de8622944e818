//! One request, one connection, at most one head; nothing is pooled or tried again (hyperium/hyper-util#150: a
//! client library sends again by itself what an engine closed early, above all over a connection that it reused).

use relatch::model::Exchange;

use crate::direct::{LONG, engine, restart};
use crate::judged::judged;
use crate::looks::id;
use crate::script::{End, Entry, Reads, Script};
use crate::server::{Server, heads};
use crate::shared::Arrived;
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_closes_at_once_gets_one_connection_and_at_most_one_head() {
    let mut unsent = 0;
    for unix in [true, false] {
        let server = Server::of_posts(unix);
        let engine = engine(&server);
        for round in 1..=20 {
            server.next(Entry::Close);
            let exchange = restart(&engine, LONG).await;
            let arrived = server.after(round).await;
            assert_eq!(arrived.len(), round, "another connection was made: {arrived:?}");
            // Whether the end is seen before the write call is made is for the machine to say; what is claimed
            // follows from which it was.
            let never_written = matches!(exchange, Exchange::NeverWritten(_));
            let wanted = if never_written { "NOT_APPLIED" } else { "UNRESOLVED" };
            assert_eq!(judged(&exchange).status.word(), wanted, "{exchange:?}");
            unsent += usize::from(never_written);
        }
        assert_eq!(server.heads(), 0);

        // The same by one that still reads: what it reads is at most one head, and never without a write call.
        server.script(Script::cut(Reads::Bytes(0), End::Fin));
        for round in 21..=40 {
            let exchange = restart(&engine, LONG).await;
            let arrived = server.after(round).await;
            assert_eq!(arrived.len(), round, "another connection was made: {arrived:?}");
            assert_eq!(
                heads(&arrived[round - 1].bytes),
                1,
                "unix {unix}, round {round}: {exchange:?}, {arrived:?}"
            );
            assert_eq!(judged(&exchange).status.word(), "UNRESOLVED", "{exchange:?}");
        }
    }
    println!("closed before the first write call: {unsent} of 40");
}

/// The engine keeps every connection open for more, and closes the one that brings a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_is_lost_goes_out_once_over_a_connection_of_its_own() {
    for server in [Server::unix(), Server::tcp()] {
        let world = World::of(server, |options| options);
        world.server.script(Script::cut(Reads::Head, End::Fin));
        let (number, run) = world.opened();
        world.unresolved(&run, &["reply-lost", "started-at-equal"]);
        // It is only ever looked at.
        let look = format!("/containers/{}/json", id(number));
        let looks = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches(&look).count();
        let now: usize = world.server.arrived().iter().map(|arrived| looks(&arrived.bytes)).sum();
        let more =
            |log: &[Arrived]| log.iter().map(|arrived| looks(&arrived.bytes)).sum::<usize>() >= now + 2;
        world.server.once("two more looks", more).await;
        let post = world.post(number);
        let text = String::from_utf8(post.bytes).expect("a head is text");
        assert!(text.starts_with("POST ") && !text.contains("GET "), "nothing else came over it: {text}");
        assert!(text.contains("connection: close\r\n") && text.ends_with("\r\n\r\n"), "{text}");
        assert_eq!(world.server.heads(), 1, "{:#?}", world.server.arrived());
    }
}
