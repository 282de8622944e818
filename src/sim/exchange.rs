//! One exchange: the effect of a request and what the client sees of it, as the rule for it says.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{
    answers::{Answer, Asked},
    conn::Conn,
    engine::rule_name,
    http::{Head, Response},
    intake::{BodyFault, Cut, read_body},
    routes::route,
    script::{Endpoint, Rule},
    wire::{Delivery, End},
    wire_log::{Ended, Event},
};

/// Serves one request of which the head has been read. Says how the exchange ended; the connection can be kept after
/// [`Ended::Complete`].
pub(crate) async fn exchange(conn: &mut Conn, head: Head, head_bytes: Vec<u8>, cut: Option<Cut>) -> Ended {
    let engine = conn.engine.clone();
    let route = route(&head.method, &head.path);
    let container = route.container.as_deref().and_then(|name| engine.container_id(name).ok());
    let request = engine.next_request();
    let rule = match &cut {
        Some(_) => None,
        None => engine.take_rule(route.endpoint, container.as_deref()),
    };
    let named = match &cut {
        Some((name, _)) => Some(name.clone()),
        None => rule.as_ref().map(|rule| rule_name(rule.name.as_ref())),
    };
    let length = head_bytes.len() as u64;
    engine.log().append(Event::Request {
        connection: conn.number,
        request,
        method: head.method.clone(),
        target: head.target.clone(),
        endpoint: route.endpoint,
        container: container.clone(),
        head: String::from_utf8_lossy(&head_bytes).into_owned(),
        head_bytes: length,
        rule: named,
    });
    conn.begin_exchange(request, length);
    let asked = Asked { request, head, route };
    let ended = match read_body(conn, &asked.head, length, cut).await {
        Ok(None) => treat(conn, asked, container, rule.unwrap_or_default()).await,
        Ok(Some((_, cut))) => conn.finish_unread(cut.end).await,
        Err(BodyFault::Left(ended)) => ended,
        Err(BodyFault::Bad(bad)) => refuse(conn, &bad.to_string()).await,
    };
    conn.end_exchange(ended);
    ended
}

/// Answers what is no request, as Go's server does, and ends the connection.
pub(crate) async fn refuse(conn: &mut Conn, text: &str) -> Ended {
    let mut response = Response::new(400);
    response.set_header("Content-Type", "text/plain; charset=utf-8");
    response.set_header("Connection", "close");
    response.body = text.as_bytes().to_vec();
    let bytes = [response.head_bytes(), response.body].concat();
    conn.begin_reply(Some(400));
    match conn.send(&bytes).await {
        Ok(()) => Ended::BadRequest,
        Err(ended) => ended,
    }
}

async fn treat(conn: &mut Conn, asked: Asked, container: Option<String>, mut rule: Rule) -> Ended {
    let engine = conn.engine.clone();
    let (after_effect, at_once): (Vec<_>, Vec<_>) =
        std::mem::take(&mut rule.then).into_iter().partition(|timed| timed.after_effect);
    for timed in at_once {
        engine.schedule(container.clone(), timed);
    }

    // The effect belongs to the engine and not to the connection: it goes on when the client leaves.
    let (answered, answer) = oneshot::channel();
    let effect = {
        let (engine, asked) = (engine.clone(), asked.clone());
        let (hold, effect) = (rule.hold_effect.clone(), rule.effect);
        async move {
            if let Some(hold) = &hold {
                engine.inner.gates.pass(hold).await;
            }
            let answer = engine.answer(&asked, effect).await;
            for timed in after_effect {
                engine.schedule(container.clone(), timed);
            }
            // Nobody may be waiting any more.
            let _ = answered.send(answer);
        }
    };
    engine.inner.tasks.spawn(effect);

    let normal = if rule.early_reply && asked.route.endpoint != Endpoint::Events {
        engine.success()
    } else {
        match conn.while_connected(answer).await {
            Ok(Ok(answer)) => answer,
            // The effect's task ends unanswered only at shutdown.
            Ok(Err(_)) => return Ended::Shutdown,
            Err(ended) => return ended,
        }
    };
    let answer = engine.scripted(&rule.reply, &asked, normal);
    if let Some(hold) = &rule.hold_reply {
        let gates = engine.clone();
        if let Err(ended) = conn.while_connected(gates.inner.gates.pass(hold)).await {
            return ended;
        }
    }
    deliver(conn, answer, &rule.delivery, asked.head.keeps_alive()).await
}

/// Writes as much of a reply as the script lets through.
struct Writer<'a> {
    conn: &'a mut Conn,
    /// Bytes that may still be written; `None` for all.
    left: Option<usize>,
    drip: Option<(Duration, usize)>,
}

impl Writer<'_> {
    /// Writes `bytes`; `false` once the script lets no more through.
    async fn write(&mut self, bytes: &[u8]) -> Result<bool, Ended> {
        let allowed = self.left.map_or(bytes.len(), |left| left.min(bytes.len()));
        match self.drip {
            None => self.conn.send(&bytes[..allowed]).await?,
            Some((interval, size)) => {
                for piece in bytes[..allowed].chunks(size) {
                    self.conn.while_connected(tokio::time::sleep(interval)).await?;
                    self.conn.send(piece).await?;
                }
            }
        }
        if let Some(left) = &mut self.left {
            *left -= allowed;
        }
        Ok(self.left != Some(0))
    }
}

async fn deliver(conn: &mut Conn, answer: Answer, delivery: &Delivery, keeps_alive: bool) -> Ended {
    let (status, head, body, mut events) = match answer {
        Answer::Whole(mut response) => {
            if !keeps_alive {
                response.set_header("Connection", "close");
            }
            (Some(response.status), response.head_bytes(), response.body, None)
        }
        Answer::Stream(response, events) => {
            (Some(response.status), response.head_bytes(), Vec::new(), Some(events))
        }
        Answer::Raw(bytes) => (None, bytes, Vec::new(), None),
    };
    let is_http = status.is_some();
    conn.begin_reply(status);
    let (left, end) = limit(delivery, head.len(), body.len());
    let drip = match delivery {
        Delivery::Drip { interval_ms, bytes } => Some((Duration::from_millis(*interval_ms), (*bytes).max(1))),
        _ => None,
    };
    let mut writer = Writer { conn, left, drip };
    let written = async {
        if writer.left == Some(0) || !writer.write(&head).await? {
            return Ok(());
        }
        if !body.is_empty() && !writer.write(&body).await? {
            return Ok(());
        }
        if let Some(events) = &mut events {
            while let Some(event) = writer.conn.while_connected(events.next()).await? {
                let line = format!("{event}\n");
                if !writer.write(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).await? {
                    return Ok(());
                }
            }
            writer.write(b"0\r\n\r\n").await?;
        }
        Ok(())
    };
    match (written.await, end) {
        (Err(ended), _) => ended,
        (Ok(()), Some(end)) => conn.finish(end).await,
        // What is no HTTP has no end but that of the connection.
        (Ok(()), None) if !is_http => conn.finish(End::Fin).await,
        (Ok(()), None) => Ended::Complete,
    }
}

/// How many bytes get through, and what follows.
fn limit(delivery: &Delivery, head: usize, body: usize) -> (Option<usize>, Option<End>) {
    match delivery {
        Delivery::Whole | Delivery::Drip { .. } => (None, None),
        Delivery::Nothing { end } => (Some(0), Some(*end)),
        Delivery::HalfHead { end } => (Some(head / 2), Some(*end)),
        Delivery::HalfBody { end } => (Some(head + body / 2), Some(*end)),
        Delivery::Bytes { count, end } => (Some(*count), Some(*end)),
    }
}
