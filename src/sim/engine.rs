//! The engine: its state behind one lock, and what is read from it or put into it without waiting.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::watch;

use super::{
    clock::Clock,
    container::Container,
    error::{ApiError, SimError},
    events::{Bus, ContainerEvent},
    gates::Gates,
    queue::{self, Queue},
    script::{Endpoint, ListenMode, Rule},
    spec::{ContainerSpec, Identity},
    tasks::Tasks,
    wire::{ConnectionFault, ConnectionRule, CutRequest, End},
    wire_log::{EffectKind, Event, WireLog},
};

/// A scripted Docker Engine. Clones share one engine. It runs until [`Engine::shutdown`]: dropping the last clone
/// leaves its tasks to the end of the runtime.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) identity: Identity,
    state: Mutex<State>,
    pub(crate) clock: Clock,
    pub(crate) gates: Gates,
    pub(crate) events: Bus,
    pub(crate) log: WireLog,
    pub(crate) tasks: Tasks,
    /// How many times idle connections were dropped, and how the last time.
    pub(crate) idle_drops: watch::Sender<(u64, End)>,
    pub(crate) listen: watch::Sender<ListenMode>,
    /// Set when a client of the control listener asks for the end.
    pub(crate) end_asked: watch::Sender<bool>,
    connections: AtomicU64,
    requests: AtomicU64,
}

/// What changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine_id: String,
    pub(crate) containers: Vec<Container>,
    pub(crate) rules: Queue<Rule>,
    pub(crate) connection_rules: Queue<ConnectionRule>,
    /// Where each listener is, and the mode that it has carried out.
    pub(crate) listeners: Vec<(String, watch::Receiver<ListenMode>)>,
}

impl State {
    /// Looks a container up as the daemon does: full id, then name, then a prefix of an id that only one has.
    pub(crate) fn find(&self, name: &str) -> Result<usize, ApiError> {
        let name = name.strip_prefix('/').unwrap_or(name);
        let position = |found: &dyn Fn(&Container) -> bool| self.containers.iter().position(found);
        if let Some(at) = position(&|container| container.id == name) {
            return Ok(at);
        }
        if let Some(at) = position(&|container| container.name == name) {
            return Ok(at);
        }
        let begins = |container: &Container| !name.is_empty() && container.id.starts_with(name);
        match self.containers.iter().filter(|container| begins(container)).count() {
            0 => Err(ApiError::no_such_container(name)),
            1 => position(&begins).ok_or_else(|| ApiError::no_such_container(name)),
            _ => Err(ApiError::new(400, format!("multiple IDs found with provided prefix: {name}"))),
        }
    }

    pub(crate) fn get(&mut self, name: &str) -> Result<&mut Container, ApiError> {
        let at = self.find(name)?;
        Ok(&mut self.containers[at])
    }

    fn is_taken(&self, name: &str) -> bool {
        self.containers.iter().any(|container| container.id == name || container.name == name)
    }
}

impl Engine {
    pub(crate) fn new(identity: Identity, log: WireLog) -> Result<Self, SimError> {
        let engine_id = match &identity.id {
            Some(id) => id.clone(),
            None => random_engine_id()?,
        };
        let state = State {
            engine_id,
            containers: Vec::new(),
            rules: Queue::default(),
            connection_rules: Queue::default(),
            listeners: Vec::new(),
        };
        let inner = Inner {
            identity,
            state: Mutex::new(state),
            clock: Clock::default(),
            gates: Gates::default(),
            events: Bus::default(),
            log,
            tasks: Tasks::default(),
            idle_drops: watch::Sender::new((0, End::Fin)),
            listen: watch::Sender::new(ListenMode::Open),
            end_asked: watch::Sender::new(false),
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_connection(&self) -> u64 {
        self.inner.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn next_request(&self) -> u64 {
        self.inner.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The wire log.
    pub fn log(&self) -> &WireLog {
        &self.inner.log
    }

    /// The id that `/info` gives.
    pub fn engine_id(&self) -> String {
        self.state().engine_id.clone()
    }

    /// The full id of the container with this id, name or id prefix.
    pub fn container_id(&self, name: &str) -> Result<String, SimError> {
        let no_such = |_| SimError::NoSuchContainer { name: name.to_owned() };
        self.state().get(name).map(|container| container.id.clone()).map_err(no_such)
    }

    /// A container's `StartedAt` as an inspect would show it.
    pub fn started_at(&self, name: &str) -> Result<String, SimError> {
        let no_such = |_| SimError::NoSuchContainer { name: name.to_owned() };
        self.state().get(name).map(|container| container.started_at.clone()).map_err(no_such)
    }

    /// Adds rules to a container's script.
    pub fn script(&self, name: &str, rules: impl IntoIterator<Item = Rule>) -> Result<(), SimError> {
        let no_such = |_| SimError::NoSuchContainer { name: name.to_owned() };
        self.state().get(name).map_err(no_such)?.rules.add(rules);
        Ok(())
    }

    /// Adds rules for requests to any container or to none. A container's own rules come first.
    pub fn script_engine(&self, rules: impl IntoIterator<Item = Rule>) {
        self.state().rules.add(rules);
    }

    /// Adds rules for connections.
    pub fn script_connections(
        &self,
        rules: impl IntoIterator<Item = ConnectionRule>,
    ) -> Result<(), SimError> {
        let rules: Vec<_> = rules.into_iter().collect();
        for rule in &rules {
            if rule.method.is_some() && matches!(rule.fault, ConnectionFault::CloseAtOnce { .. }) {
                let problem =
                    "a method is known only once bytes are read; use cut-request with a method".into();
                return Err(SimError::Script { problem });
            }
        }
        self.state().connection_rules.add(rules);
        Ok(())
    }

    /// Takes back all rules of a container, or, without a name, all engine-wide rules and connection rules.
    pub fn clear_script(&self, name: Option<&str>) -> Result<(), SimError> {
        let mut state = self.state();
        match name {
            Some(name) => {
                let no_such = |_| SimError::NoSuchContainer { name: name.to_owned() };
                state.get(name).map_err(no_such)?.rules.clear();
            }
            None => {
                state.rules.clear();
                state.connection_rules.clear();
            }
        }
        Ok(())
    }

    /// Lets all requests pass that wait at the gate `name`, now or later.
    pub fn release(&self, name: &str) {
        self.inner.gates.release(name);
    }

    /// Returns once at least `count` requests have come to the gate `name`.
    pub async fn reached(&self, name: &str, count: u64) {
        self.inner.gates.reached(name, count).await;
    }

    /// Returns when somebody asks, over the control listener, for the engine to end.
    pub async fn end_asked(&self) {
        // The sender lives as long as `self`, so this ends only when it is asked for.
        let _ = self.inner.end_asked.subscribe().wait_for(|asked| *asked).await;
    }

    /// Ends all listeners, connections and work in progress, and returns when they have ended. Fails if the log file
    /// lacks an entry.
    pub async fn shutdown(&self) -> Result<(), SimError> {
        self.inner.tasks.shutdown().await;
        self.inner.log.check()
    }

    /// Puts a container into the engine and gives its id.
    pub(crate) fn insert(&self, spec: ContainerSpec) -> Result<String, SimError> {
        let id = match &spec.id {
            Some(id) => check_id(id)?,
            None => random_hex(32)?,
        };
        let container = Container::new(id.clone(), spec, self.inner.clock.next());
        let mut state = self.state();
        for taken in [&container.id, &container.name] {
            if state.is_taken(taken) {
                return Err(SimError::Taken { name: taken.clone() });
            }
        }
        self.note(&container, None, EffectKind::Added, Some("create"));
        state.containers.push(container);
        Ok(id)
    }

    /// Writes what happened to a container into the log and, under its API name, to the event streams.
    pub(crate) fn note(
        &self,
        container: &Container,
        request: Option<u64>,
        effect: EffectKind,
        event: Option<&str>,
    ) {
        self.inner.log.append(Event::Effect {
            request,
            container: container.id.clone(),
            effect,
            started_at: container.started_at.clone(),
        });
        if let Some(action) = event {
            self.emit(container, action, &[]);
        }
    }

    /// Sends an event.
    pub(crate) fn emit(&self, container: &Container, action: &str, more: &[(&str, String)]) {
        let mut attributes: BTreeMap<String, String> = container.spec.labels.clone();
        attributes.insert("image".into(), container.spec.image.clone());
        attributes.insert("name".into(), container.name.clone());
        attributes.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        self.inner.events.emit(ContainerEvent {
            time: self.inner.clock.next(),
            action: action.to_owned(),
            id: container.id.clone(),
            attributes,
        });
    }

    /// Consumes the rule for a request that arrived whole.
    pub(crate) fn take_rule(&self, endpoint: Endpoint, container: Option<&str>) -> Option<Rule> {
        self.take(container, |rule| rule.cut_request.is_none() && queue::matches(rule, endpoint))
    }

    /// Consumes the rule that cuts a request of which the request line is known.
    pub(crate) fn take_request_cut(
        &self,
        endpoint: Endpoint,
        container: Option<&str>,
    ) -> Option<(String, CutRequest)> {
        let rule =
            self.take(container, |rule| rule.cut_request.is_some() && queue::matches(rule, endpoint))?;
        Some((rule_name(rule.name.as_ref()), rule.cut_request?))
    }

    fn take(&self, container: Option<&str>, wanted: impl Fn(&Rule) -> bool) -> Option<Rule> {
        let mut state = self.state();
        let own = container.and_then(|id| state.get(id).ok()).and_then(|found| found.rules.take(&wanted));
        own.or_else(|| state.rules.take(&wanted))
    }

    /// Consumes the rule for a connection that was accepted, or for a request whose method is known.
    pub(crate) fn take_connection_rule(&self, method: Option<&str>) -> Option<(String, ConnectionFault)> {
        let rule = self.state().connection_rules.take(|rule| rule.method.as_deref() == method)?;
        Some((rule_name(rule.name.as_ref()), rule.fault))
    }

    /// Whether a request has to be read byte by byte until its first line is known.
    pub(crate) fn reads_carefully(&self) -> bool {
        let state = self.state();
        let cuts = |rule: &Rule| rule.cut_request.is_some();
        state.connection_rules.any(|rule| rule.method.is_some())
            || state.rules.any(cuts)
            || state.containers.iter().any(|container| container.rules.any(cuts))
    }
}

/// What the log calls a rule.
pub(crate) fn rule_name(name: Option<&String>) -> String {
    name.cloned().unwrap_or_else(|| "unnamed".to_owned())
}

fn check_id(id: &str) -> Result<String, SimError> {
    let hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if id.len() == 64 && hex {
        return Ok(id.to_owned());
    }
    Err(SimError::Script { problem: format!("the id {id:?} is not 64 lower-case hexadecimal digits") })
}

/// Twice `bytes` hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String, SimError> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(SimError::Random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// In the form of a version 4 UUID, as current engines have it.
pub(crate) fn random_engine_id() -> Result<String, SimError> {
    let hex = random_hex(16)?;
    Ok(format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]))
}
