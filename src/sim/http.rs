//! The little of HTTP/1.1 that the engine needs, on plain bytes: a request's head, and a reply's.

use std::fmt::Write;

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: String,
    /// Path and query as received.
    pub(crate) target: String,
    /// The path, decoded.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    http10: bool,
}

/// Why bytes are no request head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("400 Bad Request: {0}")]
pub(crate) struct BadHead(pub(crate) &'static str);

/// How the body of a request is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Known(u64),
    Chunked,
}

impl Head {
    /// Parses a head, up to and including its empty line.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BadHead> {
        let text = std::str::from_utf8(bytes).map_err(|_| BadHead("the head is not UTF-8"))?;
        let mut lines = text.split("\r\n");
        let (method, target, version) = request_line(lines.next().unwrap_or_default())?;
        let mut headers = Vec::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').ok_or(BadHead("a header has no colon"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let (path, query) = split_target(target);
        Ok(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            path,
            query,
            headers,
            http10: version == "HTTP/1.0",
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A query value as Go's `httputils.BoolValue` reads it.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let value = self.query(name).unwrap_or_default().trim().to_ascii_lowercase();
        !matches!(value.as_str(), "" | "0" | "no" | "false" | "none")
    }

    pub(crate) fn keeps_alive(&self) -> bool {
        let connection = self.header("connection").unwrap_or_default().to_ascii_lowercase();
        if self.http10 { connection.contains("keep-alive") } else { !connection.contains("close") }
    }

    pub(crate) fn body_length(&self) -> Result<BodyLength, BadHead> {
        if let Some(coding) = self.header("transfer-encoding") {
            let chunked = coding.eq_ignore_ascii_case("chunked");
            return if chunked { Ok(BodyLength::Chunked) } else { Err(BadHead("unknown transfer coding")) };
        }
        match self.header("content-length") {
            None => Ok(BodyLength::Known(0)),
            Some(length) => {
                length.parse().map(BodyLength::Known).map_err(|_| BadHead("Content-Length is no number"))
            }
        }
    }
}

/// Splits a request line.
pub(crate) fn request_line(line: &str) -> Result<(&str, &str, &str), BadHead> {
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), Some(version @ ("HTTP/1.0" | "HTTP/1.1")), None)
            if !method.is_empty() && target.starts_with('/') =>
        {
            Ok((method, target, version))
        }
        _ => Err(BadHead("malformed request line")),
    }
}

/// The decoded path and query of a request target.
pub(crate) fn split_target(target: &str) -> (String, Vec<(String, String)>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (percent_decode(key, true), percent_decode(value, true))
    });
    (percent_decode(path, false), pairs.collect())
}

fn percent_decode(text: &str, plus_is_space: bool) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                let byte = if plus_is_space && bytes[at] == b'+' { b' ' } else { bytes[at] };
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// A reply with a body of known length, before it is put into bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn json(status: u16, value: &serde_json::Value) -> Self {
        // Go's encoder ends each document with a newline, and so do the daemon's replies.
        let body = format!("{value}\n").into_bytes();
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self { status, headers, body }
    }

    pub(crate) fn message(status: u16, message: &str) -> Self {
        Self::json(status, &serde_json::json!({ "message": message }))
    }

    /// Adds a header or replaces the one of this name.
    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        self.remove_header(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn remove_header(&mut self, name: &str) {
        self.headers.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
    }

    fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name))
    }

    /// The bytes of the head. `framing` is `Content-Length` unless the status has no body or it is set already.
    pub(crate) fn head_bytes(&self) -> Vec<u8> {
        let mut text = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            // Writing to a String cannot fail.
            let _ = write!(text, "{name}: {value}\r\n");
        }
        let bodiless = self.status == 204 || self.status == 304;
        if !bodiless && !self.has_header("content-length") && !self.has_header("transfer-encoding") {
            let _ = write!(text, "Content-Length: {}\r\n", self.body.len());
        }
        text.push_str("\r\n");
        text.into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Scripted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_gives_method_path_query_and_headers() {
        let head = Head::parse(
            b"POST /v1.47/containers/a%2Fb/restart?t=10&x=a+b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n",
        )
        .expect("a good head");
        assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "/v1.47/containers/a/b/restart"));
        assert_eq!((head.query("t"), head.query("x")), (Some("10"), Some("a b")));
        assert_eq!(head.body_length(), Ok(BodyLength::Known(3)));
        assert!(head.keeps_alive());
    }

    #[test]
    fn what_is_no_head_is_named() {
        assert!(Head::parse(b"\x16\x03\x01\r\n\r\n").is_err());
        assert!(Head::parse(b"GET /x HTTP/2\r\n\r\n").is_err());
        assert!(Head::parse(b"GET /x HTTP/1.1\r\nbad\r\n\r\n").is_err());
    }

    #[test]
    fn a_reply_without_content_has_no_length() {
        let text = String::from_utf8(Response::new(204).head_bytes()).expect("ascii");
        assert_eq!(text, "HTTP/1.1 204 No Content\r\n\r\n");
    }
}
