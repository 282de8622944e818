//! No connection, or none that is of use: nothing was written, and that is proof (fussybeaver/bollard#399,
//! curl/curl#18748, cockpit-project/cockpit#2169, moby/moby#42920, 11notes/docker-socket-proxy#8). The engine
//! answers looks until the decision is made; what happens then happens before the connection.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use relatch::model::{Exchange, NotWrittenCause};

use crate::direct::{LONG, engine, restart};
use crate::judged::judged;
use crate::looks::engine_reply;
use crate::script::Entry;
use crate::server::Server;
use crate::support::node::NodeOptions;
use crate::world::{World, detail};

/// Root may use every socket; without this right it is like everybody else.
fn without_roots_right_to_every_file(options: NodeOptions) -> NodeOptions {
    if rustix::process::geteuid().is_root() {
        options.within(&["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"])
    } else {
        options
    }
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changing rights");
}

/// What the wire shows of it, and what the ledger makes of that.
#[tokio::test(flavor = "multi_thread")]
async fn no_connection_is_proof() {
    for mut server in [Server::of_posts(true), Server::of_posts(false)] {
        server.stop_listening().await;
        let exchange = restart(&engine(&server), LONG).await;
        let Exchange::NeverWritten(why) = &exchange else { panic!("{exchange:?}") };
        assert_eq!(why.cause, NotWrittenCause::Unreachable, "{exchange:?}");
        assert!(exchange.has_ended(), "{exchange:?}");
        assert_eq!(judged(&exchange).status.word(), "NOT_APPLIED", "{exchange:?}");
    }
}

/// What happens to the socket of an engine that has answered until now.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Unlinked,
    NobodyListens,
    Forbidden,
    BacklogFull,
    AFolderInstead,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_cannot_be_connected_to_is_proof_that_nothing_was_sent() {
    let mut world = World::held(Server::unix(), without_roots_right_to_every_file);
    let path = world.server.path().to_owned();
    for (fault, said) in [
        (Fault::Unlinked, ["No such file or directory (os error 2)", "is the path right?"]),
        (Fault::NobodyListens, ["Connection refused (os error 111)", "is the engine running?"]),
        (Fault::Forbidden, ["Permission denied (os error 13)", "member of the socket's group"]),
        (Fault::BacklogFull, ["(os error 11)", "its backlog is full"]),
        (Fault::AFolderInstead, ["Connection refused (os error 111)", "it is a folder"]),
    ] {
        let (number, run) = world.opened();
        world.stands_before_the_connection();
        let mut waiting = Vec::new();
        match fault {
            Fault::Unlinked => std::fs::remove_file(&path).expect("a socket to remove"),
            Fault::NobodyListens => world.server.stop_listening().await,
            Fault::Forbidden => allow(&path, 0o000),
            Fault::BacklogFull => {
                world.server.stop_accepting().await;
                waiting = world.server.fill_backlog().await;
            }
            Fault::AFolderInstead => {
                world.server.stop_listening().await;
                std::fs::remove_file(&path).expect("a socket to remove");
                std::fs::create_dir(&path).expect("a folder");
            }
        }
        world.goes_on();
        let settlement = world.unsent(number, &run);
        for part in [&format!("connecting to {}: ", world.server.endpoint()), said[0], said[1]] {
            assert!(settlement.contains(part), "{fault:?}: {part:?} is not in {settlement}");
        }
        // Well again: the attempt was given back, or it would stand in the way as well.
        world.hold_again();
        match fault {
            Fault::Unlinked | Fault::NobodyListens => {
                world.server.stop_listening().await;
                world.server.listen_again();
            }
            Fault::Forbidden => allow(&path, 0o666),
            Fault::BacklogFull => {
                drop(waiting);
                world.server.accept_again();
            }
            Fault::AFolderInstead => {
                std::fs::remove_dir(&path).expect("the folder");
                world.server.listen_again();
            }
        }
        world.refused(number, &["backing-off"]);
    }
    assert_eq!(world.server.heads(), 0);
}

/// A mount of the socket alone keeps what it was made of, whatever is put in its place since: that lasts.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_was_replaced_behind_its_mount_is_said_to_last() {
    let server = Server::unix();
    let dir = tempfile::tempdir().expect("a folder");
    let mounted = dir.path().join("docker.sock");
    std::fs::File::create(&mounted).expect("a place to mount at");
    let script = format!("mount --bind {} {} && exec \"$@\"", server.path().display(), mounted.display());
    let within = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    let mut world = World::held(server, |options| {
        assert!(
            rustix::process::geteuid().is_root(),
            "this test mounts in a name space of its own: run it as root"
        );
        NodeOptions { docker: format!("unix://{}", mounted.display()), ..options.within(&within) }
    });
    let (number, run) = world.opened();
    world.stands_before_the_connection();
    // The engine is started anew, and answers at the same path: outside.
    world.server.stop_listening().await;
    world.server.listen_again();
    tokio::net::UnixStream::connect(world.server.path()).await.expect("it answers outside");
    world.goes_on();
    let settlement = world.unsent(number, &run);
    for part in
        ["(os error 111)", "mounted by itself", "that lasts, even if the engine is back", "mount its folder"]
    {
        assert!(settlement.contains(part), "{part:?} is not in {settlement}");
    }
    // And so says whoever is asked next.
    let answer = world.node.recover("local/web-2", &[]);
    let said = detail(answer.run(), "baseline-unreadable");
    assert!(said.contains("that lasts"), "{answer:#?}");
    assert_eq!(world.server.heads(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_cannot_be_connected_to_is_proof_that_nothing_was_sent() {
    let mut world = World::held(Server::tcp(), |options| options);
    let limit = world.node.cli(&["limits", "set", "connect_ms=2s"]);
    assert_eq!(limit.exit, 0, "{limit:#?}");
    for (answers, said) in [
        (false, ["Connection refused (os error 111)", "told to listen there"]),
        // Nobody answers the first packet.
        (true, ["not connected within 2000 ms", "does a firewall let this port through?"]),
    ] {
        let (number, run) = world.opened();
        world.stands_before_the_connection();
        let mut waiting = Vec::new();
        if answers {
            world.server.stop_accepting().await;
            waiting = world.server.fill_backlog().await;
        } else {
            world.server.stop_listening().await;
        }
        world.goes_on();
        let settlement = world.unsent(number, &run);
        for part in [&format!("connecting to {}: ", world.server.endpoint()), said[0], said[1]] {
            assert!(settlement.contains(part), "{part:?} is not in {settlement}");
        }
        world.hold_again();
        if answers {
            drop(waiting);
            world.server.accept_again();
        } else {
            world.server.listen_again();
        }
        world.refused(number, &["backing-off"]);
    }
    assert_eq!(world.server.heads(), 0);
}

/// The name was there for the looks. The node has a table of names of its own, and asks nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_longer_resolves_is_proof_that_nothing_was_sent() {
    let server = Server::tcp();
    let dir = tempfile::tempdir().expect("a folder");
    let (hosts, switch) = (dir.path().join("hosts"), dir.path().join("nsswitch.conf"));
    let known = "127.0.0.1 localhost engine.test\n";
    std::fs::write(&hosts, known).expect("a table of names");
    std::fs::write(&switch, "hosts: files\n").expect("where names are looked up");
    let script = format!(
        "mount --bind {} /etc/hosts && mount --bind {} /etc/nsswitch.conf && exec \"$@\"",
        hosts.display(),
        switch.display()
    );
    let within = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    let docker = server.endpoint().replace("127.0.0.1", "engine.test");
    let world = World::held(server, |options| {
        assert!(
            rustix::process::geteuid().is_root(),
            "this test mounts in a name space of its own: run it as root"
        );
        NodeOptions { docker: docker.clone(), ..options.within(&within).arg("--docker-insecure") }
    });
    let (number, run) = world.opened();
    world.stands_before_the_connection();
    std::fs::write(&hosts, "127.0.0.1 localhost\n").expect("a table of names");
    world.goes_on();
    let settlement = world.unsent(number, &run);
    for part in [&format!("connecting to {docker}: "), "failed to lookup address", "does it resolve here?"] {
        assert!(settlement.contains(part), "{part:?} is not in {settlement}");
    }
    world.hold_again();
    std::fs::write(&hosts, known).expect("a table of names");
    world.refused(number, &["backing-off"]);
    assert_eq!(world.server.heads(), 0);
}

/// There is a connection, but before the first write call its end has come, or something that nobody asked for.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_hangs_up_or_speaks_before_it_is_asked_gets_no_byte() {
    for server in [Server::unix(), Server::tcp()] {
        let world = World::held(server, |options| options);
        for unasked in
            [None, Some(engine_reply(404, "")), Some(engine_reply(204, "")), Some("\0\0".to_owned())]
        {
            let (number, run) = world.opened();
            world.stands_before_the_connection();
            world.server.next(unasked.map_or(Entry::Close, |text| Entry::Says(text.into_bytes())));
            world.goes_on();
            world.unsent(number, &run);
            world.hold_again();
            world.refused(number, &["backing-off"]);
        }
        assert_eq!(world.server.heads(), 0);
    }
}
