//! Reading one request, and cutting it short where the script says so.

use super::{
    conn::{BUFFER_LIMIT, Conn},
    http::{BadHead, BodyLength, Head, request_line, split_target},
    routes::route,
    wire::{ConnectionFault, CutRequest, End},
    wire_log::{Ended, Event},
};

/// A rule's name and where it cuts.
pub(crate) type Cut = (String, CutRequest);

/// What came of reading a request's head.
pub(crate) enum Intake {
    /// The head is whole. A cut that lies behind it is still to be made.
    Request { head: Head, bytes: Vec<u8>, cut: Option<Cut> },
    /// The script ends the connection here.
    Cut { rule: String, end: End },
    /// Idle connections are being dropped, and this is one.
    Dropped(End),
    /// The client left.
    Left(Ended),
    /// What arrived is no request.
    Bad(BadHead),
}

/// Reads a head. `cut` is what was decided when the connection was accepted.
pub(crate) async fn read_head(conn: &mut Conn, mut cut: Option<Cut>) -> Intake {
    let mut method_seen = false;
    let mut line_seen = false;
    loop {
        if !method_seen && let Some(method) = method(&conn.buffered) {
            method_seen = true;
            if let Some((rule, ConnectionFault::CutRequest { after_bytes, end })) =
                conn.engine.take_connection_rule(Some(&method))
            {
                cut = cut.or(Some((rule, CutRequest { after_bytes, end })));
            }
        }
        if !line_seen && let Some(end) = find(&conn.buffered, b"\r\n") {
            line_seen = true;
            cut = cut.or_else(|| cut_for_line(conn, end));
        }
        let read = conn.buffered.len() as u64;
        let head_end = find(&conn.buffered, b"\r\n\r\n").map(|at| at + 4);
        // A head that is whole before the cut has arrived; the cut then lies in the body.
        if let Some((rule, at)) = &cut
            && read >= at.after_bytes
            && head_end.is_none_or(|end| end as u64 > at.after_bytes)
        {
            if read == 0 {
                conn.readable().await;
            }
            return Intake::Cut { rule: rule.clone(), end: at.end };
        }
        if let Some(end) = head_end {
            let bytes = conn.take(end);
            return match Head::parse(&bytes) {
                Ok(head) => Intake::Request { head, bytes, cut },
                Err(bad) => Intake::Bad(bad),
            };
        }
        if conn.buffered.len() >= BUFFER_LIMIT {
            return Intake::Bad(BadHead("the head is too long"));
        }
        let limit = match &cut {
            Some((_, at)) => usize::try_from(at.after_bytes - read).unwrap_or(usize::MAX),
            None if !line_seen && conn.engine.reads_carefully() => 1,
            None => BUFFER_LIMIT,
        };
        let filled = match read {
            0 => conn.fill_or_drop(limit).await,
            _ => conn.fill(limit).await.map(|()| None),
        };
        match filled {
            Ok(None) => {}
            Ok(Some(end)) => return Intake::Dropped(end),
            Err(ended) => return Intake::Left(ended),
        }
    }
}

/// Reads and drops the body. With a cut, reads no further than that and gives it back.
pub(crate) async fn read_body(
    conn: &mut Conn,
    head: &Head,
    head_bytes: u64,
    cut: Option<Cut>,
) -> Result<Option<Cut>, BodyFault> {
    let mut until_cut = cut.as_ref().map_or(u64::MAX, |(_, at)| at.after_bytes.saturating_sub(head_bytes));
    match head.body_length()? {
        BodyLength::Known(length) => {
            drop_bytes(conn, length, &mut until_cut).await?;
        }
        BodyLength::Chunked => {
            while until_cut > 0 {
                let line = read_line(conn, &mut until_cut).await?;
                let size = line.split(';').next().unwrap_or_default().trim();
                let size = u64::from_str_radix(size, 16).map_err(|_| BadHead("a chunk has no size"))?;
                // The chunk and its line end; after the last one, the empty line that ends the body.
                drop_bytes(conn, size + 2, &mut until_cut).await?;
                if size == 0 {
                    break;
                }
            }
        }
    }
    Ok(cut)
}

/// Why a body could not be read.
pub(crate) enum BodyFault {
    Left(Ended),
    Bad(BadHead),
}

impl From<Ended> for BodyFault {
    fn from(ended: Ended) -> Self {
        Self::Left(ended)
    }
}

impl From<BadHead> for BodyFault {
    fn from(bad: BadHead) -> Self {
        Self::Bad(bad)
    }
}

async fn drop_bytes(conn: &mut Conn, count: u64, until_cut: &mut u64) -> Result<(), BodyFault> {
    let mut left = count.min(*until_cut);
    while left > 0 {
        if conn.buffered.is_empty() {
            conn.fill(usize::try_from(left).unwrap_or(usize::MAX)).await?;
        }
        let taken = conn.take(usize::try_from(left).unwrap_or(usize::MAX)).len() as u64;
        conn.count_body(taken);
        left -= taken;
        *until_cut -= taken;
    }
    Ok(())
}

async fn read_line(conn: &mut Conn, until_cut: &mut u64) -> Result<String, BodyFault> {
    let mut line = Vec::new();
    while *until_cut > 0 && !line.ends_with(b"\r\n") {
        if line.len() > 64 {
            return Err(BadHead("a chunk's size is too long").into());
        }
        if conn.buffered.is_empty() {
            conn.fill(1).await?;
        }
        line.extend(conn.take(1));
        conn.count_body(1);
        *until_cut -= 1;
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Logs what was read of a request that never became whole.
pub(crate) fn log_cut(conn: &Conn, rule: Option<String>, ended: Ended) {
    conn.engine.log().append(Event::CutRequest {
        connection: conn.number,
        bytes: conn.buffered.len() as u64,
        received: String::from_utf8_lossy(&conn.buffered).into_owned(),
        rule,
        ended,
    });
}

/// The method, once the space behind it has arrived.
fn method(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == b' ')?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn cut_for_line(conn: &Conn, end: usize) -> Option<Cut> {
    let line = std::str::from_utf8(&conn.buffered[..end]).ok()?;
    let (method, target, _) = request_line(line).ok()?;
    let route = route(method, &split_target(target).0);
    conn.engine.take_request_cut(route.endpoint, route.container.as_deref())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
