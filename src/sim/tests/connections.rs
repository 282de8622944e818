//! What the script does before a request is whole, and to listeners.

use std::io::ErrorKind;

use super::{
    raw::Raw,
    rig::{BOTH, Over, Rig, next_restart},
};
use crate::sim::{
    Action, ConnectionFault, ConnectionRule, End, Ended, Endpoint, Engine, Event, History, ListenMode, Rule,
};

const REQUEST: &[u8] =
    b"POST /containers/web/restart?t=1 HTTP/1.1\r\nHost: docker\r\nContent-Length: 4\r\n\r\nbody";

fn rule(method: Option<&str>, fault: ConnectionFault) -> ConnectionRule {
    let rule = ConnectionRule { fault, ..ConnectionRule::close_at_once(End::Fin) }.named("fault");
    match method {
        Some(method) => rule.method(method),
        None => rule,
    }
}

fn cuts(history: &History) -> Vec<(u64, String, Option<String>, Ended)> {
    let cut = |event: &Event| match event.clone() {
        Event::CutRequest { bytes, received, rule, ended, .. } => Some((bytes, received, rule, ended)),
        _ => None,
    };
    history.entries.iter().filter_map(|entry| cut(&entry.event)).collect()
}

fn closed(history: &History) -> Vec<(u64, Ended)> {
    let closed = |event: &Event| match event {
        Event::Closed { received_bytes, ended, .. } => Some((*received_bytes, *ended)),
        _ => None,
    };
    history.entries.iter().filter_map(|entry| closed(&entry.event)).collect()
}

#[tokio::test]
async fn accepted_and_closed_at_once_twenty_times() {
    for over in BOTH {
        let rig = Rig::new().await;
        let fault = ConnectionFault::CloseAtOnce { end: End::Fin };
        rig.engine.script_connections([ConnectionRule { times: 20, ..rule(None, fault) }]).expect("a rule");
        for _ in 0..20 {
            let (bytes, error) = rig.connect(over).await.read_to_end().await;
            assert_eq!((bytes.len(), error), (0, None));
        }
        assert_eq!(rig.ask(over, "GET", "/_ping").await.status, 200);
        let history = rig.engine.log().history();
        assert_eq!((history.connections(), super::rig::exchanges(&history).len()), (21, 1));
        let without_bytes = closed(&history).iter().filter(|closed| **closed == (0, Ended::Fin)).count();
        assert_eq!(without_bytes, 20);
    }
}

#[tokio::test]
async fn a_request_cut_after_seven_bytes_shows_seven() {
    for over in BOTH {
        for method in [None, Some("POST")] {
            let rig = Rig::new().await;
            let before = rig.started_at();
            let fault = ConnectionFault::CutRequest { after_bytes: 7, end: End::Rst };
            rig.engine.script_connections([rule(method, fault)]).expect("a rule");
            let mut raw = rig.connect(over).await;
            raw.send(REQUEST).await;
            let (bytes, error) = raw.read_to_end().await;
            assert_eq!((bytes.len(), error), (0, Some(ErrorKind::ConnectionReset)), "{over:?}");
            let history = rig.logged(|history| !closed(history).is_empty()).await;
            assert_eq!(cuts(&history), [(7, "POST /c".into(), Some("fault".into()), Ended::Rst)]);
            assert_eq!(closed(&history), [(7, Ended::Rst)]);
            assert!(rig.posts().is_empty(), "half a request is no request");
            assert_eq!(rig.started_at(), before);
        }
    }
}

#[tokio::test]
async fn a_rule_on_a_method_lets_other_methods_pass() {
    let rig = Rig::new().await;
    let fault = ConnectionFault::CutRequest { after_bytes: 20, end: End::Fin };
    rig.engine.script_connections([rule(Some("POST"), fault)]).expect("a rule");
    assert_eq!(rig.get("/_ping").await.status, 200);
    let mut raw = rig.connect(Over::Unix).await;
    raw.send(REQUEST).await;
    raw.read_to_end().await;
    let history = rig.logged(|history| !cuts(history).is_empty()).await;
    assert_eq!(cuts(&history)[0].0, 20);
    assert_eq!(rig.post("/containers/web/restart?t=1").await.status, 204);
}

#[tokio::test]
async fn a_connection_reset_before_its_request_is_read() {
    for over in BOTH {
        let rig = Rig::new().await;
        let fault = ConnectionFault::CutRequest { after_bytes: 0, end: End::Rst };
        rig.engine.script_connections([rule(None, fault)]).expect("a rule");
        let mut raw = rig.connect(over).await;
        raw.send(REQUEST).await;
        assert_eq!(raw.read_to_end().await, (Vec::new(), Some(ErrorKind::ConnectionReset)), "{over:?}");
        let history = rig.logged(|history| !closed(history).is_empty()).await;
        assert_eq!(closed(&history), [(0, Ended::Rst)]);
    }
}

#[tokio::test]
async fn a_containers_rule_cuts_its_own_request_in_the_head_and_in_the_body() {
    let head = REQUEST.len() as u64 - 4;
    for over in BOTH {
        let rig = Rig::new().await;
        let before = rig.started_at();
        rig.script(next_restart().cut_request(head - 1, End::Rst));
        rig.script(next_restart().named("in the body").cut_request(head + 2, End::Fin));
        assert_eq!(rig.get("/containers/web/json").await.status, 200, "an inspect is not meant");
        let mut raw = rig.connect(over).await;
        raw.send(REQUEST).await;
        assert_eq!(raw.read_to_end().await.1, Some(ErrorKind::ConnectionReset));
        let history = rig.logged(|history| !cuts(history).is_empty()).await;
        assert_eq!(cuts(&history)[0].0, head - 1);
        assert!(rig.posts().is_empty());

        let mut raw = rig.connect(over).await;
        raw.send(REQUEST).await;
        raw.read_to_end().await;
        let exchange = rig.exchanged(2).await.remove(1);
        assert!(
            matches!(exchange, Event::Exchanged { received_bytes, status: None, .. } if received_bytes == head + 2),
            "{exchange:?}"
        );
        assert_eq!(rig.posts().len(), 1, "its head was whole, so it arrived");
        assert_eq!(rig.started_at(), before, "and had no effect");
        assert_eq!(rig.post("/containers/web/restart?t=1").await.status, 204);
    }
}

#[tokio::test]
async fn a_request_is_read_in_part_and_then_ignored() {
    let rig = Rig::new().await;
    let fault = ConnectionFault::CutRequest { after_bytes: 10, end: End::Stall };
    rig.engine.script_connections([rule(Some("POST"), fault)]).expect("a rule");
    let mut raw = rig.connect(Over::Tcp).await;
    raw.send(REQUEST).await;
    let history = rig.logged(|history| !cuts(history).is_empty()).await;
    assert_eq!(cuts(&history)[0], (10, "POST /cont".into(), Some("fault".into()), Ended::Stalled));
    assert!(raw.is_silent().await);
    rig.engine.shutdown().await.expect("an orderly end");
    assert_eq!(closed(&rig.engine.log().history()), [(10, Ended::Shutdown)]);
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_is_counted_to_the_byte() {
    for over in BOTH {
        let rig = Rig::new().await;
        let mut raw = rig.connect(over).await;
        raw.send(&REQUEST[..7]).await;
        drop(raw);
        let history = rig.logged(|history| !cuts(history).is_empty()).await;
        assert_eq!(cuts(&history), [(7, "POST /c".into(), None, Ended::ClientClosed)]);
    }
}

#[tokio::test]
async fn an_idle_connection_is_dropped_before_its_request() {
    for over in BOTH {
        let rig = Rig::new().await;
        let mut idle = rig.connect(over).await;
        rig.logged(|history| history.connections() == 1).await;
        let drop_idle = Action::DropIdleConnections { end: End::Rst };
        rig.engine
            .script("web", [Rule::on(Endpoint::Inspect).then(drop_idle)])
            .expect("the container exists");
        assert_eq!(rig.get("/containers/web/json").await.status, 200, "the one at work is not idle");
        let history = rig.logged(|history| closed(history).contains(&(0, Ended::Rst))).await;
        assert_eq!(history.connections(), 2);
        let sent = idle.try_send(REQUEST).await;
        let (bytes, error) = idle.read_to_end().await;
        assert!(
            bytes.is_empty() && (sent.is_err() || error.is_some() || over == Over::Unix),
            "{sent:?} {error:?}"
        );
        assert!(rig.posts().is_empty());
    }
}

#[tokio::test]
async fn listeners_refuse_vanish_and_come_back() {
    let rig = Rig::new().await;
    rig.engine.listen(ListenMode::Refuse).await;
    let unix = Raw::unix(&rig.socket).await.err().map(|error| error.kind());
    let tcp = Raw::tcp(rig.tcp).await.err().map(|error| error.kind());
    assert_eq!((unix, tcp), (Some(ErrorKind::ConnectionRefused), Some(ErrorKind::ConnectionRefused)));
    rig.engine.listen(ListenMode::Unlink).await;
    let unix = Raw::unix(&rig.socket).await.err().map(|error| error.kind());
    assert_eq!(unix, Some(ErrorKind::NotFound));
    rig.engine.listen(ListenMode::Open).await;
    for over in BOTH {
        assert_eq!(rig.ask(over, "GET", "/_ping").await.status, 200, "{over:?}");
    }
}

#[tokio::test]
async fn a_full_backlog_refuses_at_once() {
    let mut spec = crate::sim::EngineSpec::default();
    spec.engine.backlog = 1;
    let rig = Rig::of(Engine::builder().spec(spec).build().expect("an engine")).await;
    rig.engine.listen(ListenMode::Deaf).await;
    let mut waiting = Vec::new();
    let refused = loop {
        match Raw::unix(&rig.socket).await {
            Ok(raw) => waiting.push(raw),
            Err(error) => break error.kind(),
        }
        assert!(waiting.len() < 16, "the backlog never fills");
    };
    assert_eq!(refused, ErrorKind::WouldBlock);
    assert_eq!(rig.engine.log().history().connections(), 0);
    rig.engine.listen(ListenMode::Open).await;
    let mut first = waiting.remove(0);
    assert_eq!(first.ask("GET", "/_ping").await.status, 200);
}

#[tokio::test]
async fn a_method_is_not_known_before_a_byte_is_read() {
    let rig = Rig::new().await;
    let fault = ConnectionFault::CloseAtOnce { end: End::Fin };
    assert!(rig.engine.script_connections([rule(Some("POST"), fault)]).is_err());
}
