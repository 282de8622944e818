//! What an engine answers to looks: as little of it as a node needs.

use serde_json::{Value, json};

/// How many containers there are: `web-1` and so on.
const CONTAINERS: usize = 64;

/// The full id of `web-N`.
pub fn id(number: usize) -> String {
    format!("{number:064x}")
}

/// A whole reply of an engine.
pub fn engine_reply(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} Some\r\nApi-Version: 1.41\r\nServer: Docker/20.10.24 (linux)\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The whole reply to a look at this path, without a version; `starts` says how often a container was started anew.
pub fn reply(path: &str, starts: impl Fn(&str) -> u32) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let body = match path.strip_prefix("/containers/").and_then(|rest| rest.strip_suffix("/json")) {
        Some(id) => container(id, starts(id)),
        None => match path {
            "/_ping" => return engine_reply(200, "OK"),
            "/info" => json!({ "ID": "WIRE", "Name": "wire", "ServerVersion": "20.10.24" }),
            "/containers/json" => (1..=CONTAINERS).map(summary).collect(),
            "/events" => {
                return "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nTransfer-Encoding: chunked\r\n\r\n"
                    .to_owned();
            }
            other => return engine_reply(404, &json!({ "message": format!("no {other}") }).to_string()),
        },
    };
    engine_reply(200, &body.to_string())
}

fn name(id: &str) -> String {
    format!("/web-{}", u32::from_str_radix(id.trim_start_matches('0'), 16).expect("one of the ids"))
}

fn summary(number: usize) -> Value {
    let id = id(number);
    json!({ "Id": id, "Names": [name(&id)], "Image": "web", "State": "running", "Labels": {} })
}

fn container(id: &str, starts: u32) -> Value {
    json!({
        "Id": id,
        "Name": name(id),
        "State": {
            "Status": "running", "Running": true, "Pid": 0, "ExitCode": 0,
            "StartedAt": format!("2024-05-01T10:20:{:02}.5Z", 10 + starts), "FinishedAt": "0001-01-01T00:00:00Z",
        },
        "Config": { "Hostname": &id[..12], "Labels": {} },
    })
}
