//! What the engine does and says when nothing is scripted, and how a script changes what is said.

use serde_json::Value;

use super::{
    clock::http_date,
    engine::{Engine, random_engine_id},
    error::ApiError,
    events::{Filters, Subscription, has_label, parse_time},
    http::{Head, Response},
    render,
    routes::{ApiVersion, Route},
    script::{Effect, Endpoint},
    wire::{Edit, Reply, StatusReply},
};

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) request: u64,
    pub(crate) head: Head,
    pub(crate) route: Route,
}

/// A reply before it goes to the wire.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A document of known length.
    Whole(Response),
    /// A head, and events for as long as the client stays.
    Stream(Response, Box<Subscription>),
    /// Bytes that need not be HTTP.
    Raw(Vec<u8>),
}

impl Engine {
    /// Does what is asked and says what a daemon would.
    pub(crate) async fn answer(&self, asked: &Asked, effect: Effect) -> Answer {
        if let Err(error) = self.check_version(asked.route.version) {
            return self.dressed(Response::message(error.status, &error.message));
        }
        if asked.route.endpoint == Endpoint::Events {
            return self.events(&asked.head);
        }
        let response = match self.respond(asked, effect).await {
            Ok(response) => response,
            Err(error) => Response::message(error.status, &error.message),
        };
        self.dressed(response)
    }

    /// What a daemon says to a request that succeeds, without doing anything.
    pub(crate) fn success(&self) -> Answer {
        self.dressed(Response::new(204))
    }

    async fn respond(&self, asked: &Asked, effect: Effect) -> Result<Response, ApiError> {
        let head = &asked.head;
        match asked.route.endpoint {
            Endpoint::Ping => Ok(ping(&head.method)),
            Endpoint::Version => Ok(Response::json(200, &render::version(&self.inner.identity))),
            Endpoint::Info => self.info(),
            Endpoint::List => self.list(head),
            Endpoint::Inspect => {
                let now = self.inner.clock.next();
                let mut state = self.state();
                let container = state.get(asked.route.container.as_deref().unwrap_or_default())?;
                Ok(Response::json(200, &render::inspect(container, now)))
            }
            Endpoint::Unknown | Endpoint::Any | Endpoint::Events => Err(ApiError::new(404, "page not found")),
            _ => self.change(asked, effect).await,
        }
    }

    /// The requests that change a container.
    async fn change(&self, asked: &Asked, effect: Effect) -> Result<Response, ApiError> {
        let head = &asked.head;
        let request = Some(asked.request);
        let grace_s = grace(head)?;
        let id = self.state().get(asked.route.container.as_deref().unwrap_or_default())?.id.clone();
        let changed = match (effect, asked.route.endpoint) {
            (Effect::None, _) => true,
            (Effect::StopOnly, _) => self.stop(&id, grace_s, request).await.map(|_| true)?,
            (_, Endpoint::Restart) => self.restart(&id, grace_s, request).await.map(|()| true)?,
            (_, Endpoint::Start) => self.start(&id, request).await?,
            (_, Endpoint::Stop) => self.stop(&id, grace_s, request).await?,
            (_, Endpoint::Pause) => self.pause(&id, true, request).map(|()| true)?,
            (_, Endpoint::Unpause) => self.pause(&id, false, request).map(|()| true)?,
            (_, Endpoint::Rename) => {
                self.rename(&id, head.query("name").unwrap_or_default(), request).map(|()| true)?
            }
            _ => self.remove(&id, head.flag("force"), request).map(|()| true)?,
        };
        Ok(Response::new(if changed { 204 } else { 304 }))
    }

    fn check_version(&self, asked: Option<ApiVersion>) -> Result<(), ApiError> {
        let identity = &self.inner.identity;
        let Some(asked) = asked else { return Ok(()) };
        if ApiVersion::parse(&identity.min_api_version).is_some_and(|floor| asked < floor) {
            return Err(ApiError::new(400, too_old(&asked.to_string(), &identity.min_api_version)));
        }
        if ApiVersion::parse(&identity.api_version).is_some_and(|newest| asked > newest) {
            let message = format!(
                "client version {asked} is too new. Maximum supported API version is {}",
                identity.api_version
            );
            return Err(ApiError::new(400, message));
        }
        Ok(())
    }

    fn info(&self) -> Result<Response, ApiError> {
        let identity = &self.inner.identity;
        let now = self.inner.clock.next();
        let state = self.state();
        let id = if identity.new_id_each_time {
            random_engine_id().map_err(|error| ApiError::new(500, error.to_string()))?
        } else {
            state.engine_id.clone()
        };
        Ok(Response::json(200, &render::info(identity, &id, &state.containers, now)))
    }

    fn list(&self, head: &Head) -> Result<Response, ApiError> {
        let filters = filters(head)?;
        let all = head.flag("all") || filters.has("status");
        let state = self.state();
        let listed = state.containers.iter().filter(|container| {
            let health = container.health.map_or("none", render::health_word);
            (all || container.is_alive())
                && filters.pass_all("label", |wanted| has_label(&container.spec.labels, wanted))
                && filters
                    .pass("name", |wanted| container.name.contains(wanted.trim_matches(['/', '^', '$'])))
                && filters.pass("id", |wanted| container.id.starts_with(wanted))
                && filters.pass("health", |wanted| health == wanted)
                && filters.pass("status", |wanted| render::status_word(container.status) == wanted)
        });
        // The newest first, as the daemon lists them.
        let listed: Vec<Value> = listed.rev().map(render::summary).collect();
        Ok(Response::json(200, &Value::Array(listed)))
    }

    fn events(&self, head: &Head) -> Answer {
        let subscription = filters(head).and_then(|filters| {
            let time = |name: &str| match head.query(name).filter(|text| !text.is_empty()) {
                None => Ok(None),
                Some(text) => parse_time(text)
                    .map(Some)
                    .ok_or_else(|| ApiError::new(400, format!("invalid {name}: {text}"))),
            };
            Ok(self.inner.events.subscribe(filters, time("since")?, time("until")?))
        });
        match subscription {
            Err(error) => self.dressed(Response::message(error.status, &error.message)),
            Ok(subscription) => {
                let mut response = Response::new(200);
                response.set_header("Content-Type", "application/json");
                response.set_header("Transfer-Encoding", "chunked");
                self.dress(&mut response);
                Answer::Stream(response, Box::new(subscription))
            }
        }
    }

    fn dressed(&self, mut response: Response) -> Answer {
        self.dress(&mut response);
        Answer::Whole(response)
    }

    /// Adds the headers that every reply of the engine carries.
    fn dress(&self, response: &mut Response) {
        let identity = &self.inner.identity;
        let server = match &identity.server {
            Some(server) => server.clone(),
            None => format!("Docker/{} (linux)", identity.version),
        };
        response.set_header("Api-Version", &identity.api_version);
        response.set_header("Docker-Experimental", "false");
        response.set_header("Ostype", "linux");
        response.set_header("Server", &server);
        response.set_header("Date", &http_date(self.inner.clock.next()));
    }

    /// What is said in place of `normal`.
    pub(crate) fn scripted(&self, reply: &Reply, asked: &Asked, normal: Answer) -> Answer {
        match reply {
            Reply::Normal => normal,
            Reply::Status(scripted) => self.status(scripted),
            Reply::Edited(edit) => edited(edit, normal),
            Reply::VersionRefused { minimum } => {
                let version =
                    asked.route.version.map_or_else(|| "1.24".to_owned(), |asked| asked.to_string());
                self.dressed(Response::message(400, &too_old(&version, minimum)))
            }
            Reply::Raw { text } => Answer::Raw(raw_bytes(text)),
        }
    }

    fn status(&self, scripted: &StatusReply) -> Answer {
        let mut response = match (&scripted.body, &scripted.message) {
            (Some(body), _) => {
                let mut response = Response::new(scripted.status);
                response.set_header("Content-Type", "text/plain; charset=utf-8");
                response.body = body.clone().into_bytes();
                response
            }
            (None, Some(message)) => Response::message(scripted.status, message),
            (None, None) => Response::new(scripted.status),
        };
        if scripted.proxy {
            response.set_header("Date", &http_date(self.inner.clock.next()));
        } else {
            self.dress(&mut response);
        }
        for (name, value) in &scripted.headers {
            response.set_header(name, value);
        }
        Answer::Whole(response)
    }
}

/// dockerd's words to a client below its floor.
fn too_old(version: &str, minimum: &str) -> String {
    format!(
        "client version {version} is too old. Minimum supported API version is {minimum}, please upgrade your client \
         to a newer version"
    )
}

fn ping(method: &str) -> Response {
    let mut response = Response::new(200);
    response.set_header("Content-Type", "text/plain; charset=utf-8");
    response.set_header("Builder-Version", "2");
    response.set_header("Swarm", "inactive");
    response.set_header("Cache-Control", "no-cache, no-store, must-revalidate");
    response.set_header("Pragma", "no-cache");
    if method != "HEAD" {
        response.body = b"OK".to_vec();
    }
    response
}

fn grace(head: &Head) -> Result<Option<i64>, ApiError> {
    match head.query("t").filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => {
            let invalid = format!("strconv.Atoi: parsing {text:?}: invalid syntax");
            text.parse().map(Some).map_err(|_| ApiError::new(400, invalid))
        }
    }
}

fn filters(head: &Head) -> Result<Filters, ApiError> {
    let invalid = || ApiError::new(400, "invalid filter");
    Filters::parse(head.query("filters")).ok_or_else(invalid)
}

fn edited(edit: &Edit, normal: Answer) -> Answer {
    let mut response = match normal {
        Answer::Whole(response) => response,
        other => return other,
    };
    if !(edit.set.is_empty() && edit.unset.is_empty())
        && let Ok(mut document) = serde_json::from_slice::<Value>(&response.body)
    {
        for (pointer, value) in &edit.set {
            change(&mut document, pointer, Some(value.clone()));
        }
        for pointer in &edit.unset {
            change(&mut document, pointer, None);
        }
        response.body = format!("{document}\n").into_bytes();
    }
    for name in &edit.without_headers {
        response.remove_header(name);
    }
    for (name, value) in &edit.headers {
        response.set_header(name, value);
    }
    Answer::Whole(response)
}

/// Sets or takes out the value at a JSON pointer, if its parent exists.
fn change(document: &mut Value, pointer: &str, value: Option<Value>) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    match (document.pointer_mut(parent), value) {
        (Some(Value::Object(fields)), Some(value)) => {
            fields.insert(key.to_owned(), value);
        }
        (Some(Value::Object(fields)), None) => {
            fields.remove(key);
        }
        (Some(Value::Array(items)), Some(value)) => {
            if let Some(item) = key.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                *item = value;
            }
        }
        _ => {}
    }
}

fn raw_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(u32::from(character)) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend(character.to_string().bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_text_is_bytes() {
        assert_eq!(raw_bytes("\u{0}\u{ff}A"), [0, 255, 65]);
    }

    #[test]
    fn an_edit_changes_one_field() {
        let mut document = serde_json::json!({ "State": { "StartedAt": "x", "Pid": 1 } });
        change(&mut document, "/State/StartedAt", Some("".into()));
        change(&mut document, "/State/Pid", None);
        assert_eq!(document, serde_json::json!({ "State": { "StartedAt": "" } }));
    }
}
