//! A scripted engine, as a process of its own. What happens in it is read from its own log.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::super::stage::{Folder, Process, utf8};
use super::judge::{Effect, Post, Witness, short};
use super::side::{Container, EngineSide};
use super::timeline::{Timeline, Who};
use crate::rpc::v1::Run;
use crate::sim::{ContainerSpec, EffectKind, EngineSpec, Event, Health, Healthcheck, History, StopBehaviour};

/// How long the container takes to stop: long enough for the coordinator to die and come back meanwhile.
const STOP_MS: u64 = 6_000;

/// How long it takes until its health check is content again.
const WELL_AFTER_MS: u64 = 500;

const SETTLED_WITHIN: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(20);

/// The scripted engine and its one container.
#[derive(Debug)]
pub(super) struct Simulated {
    process: Process,
    container: Container,
    wire_log: PathBuf,
    timeline: Timeline,
    /// How many restart requests have arrived and been told.
    posts_told: watch::Receiver<usize>,
    teller: JoinHandle<()>,
}

impl Simulated {
    pub(super) async fn begin(folder: &Folder, timeline: &Timeline) -> anyhow::Result<Self> {
        timeline
            .print("relatch demo: one restart whose answer gets lost. The Docker Engine here is SIMULATED;");
        timeline.print("the relatch processes, their disk and the SIGKILL are real.");
        timeline.print("");
        let wire_log = folder.file("wire.log");
        let process = start_engine(folder, &wire_log).await?;
        let container = Container { name: "web".into(), id: process.said("/containers/web")? };
        timeline.say(
            Who::Engine,
            &format!(
                "container web ({}) runs, and is unhealthy: its queue is saturated",
                short(&container.id)
            ),
        );
        let (told, posts_told) = watch::channel(0);
        let telling = tell_effects(wire_log.clone(), container.id.clone(), timeline.clone(), told);
        let teller = tokio::spawn(telling);
        Ok(Self { process, container, wire_log, timeline: timeline.clone(), posts_told, teller })
    }
}

impl EngineSide for Simulated {
    const KIND: &'static str = "simulated";
    const CLOSING: &'static str = "The engine was simulated; everything else was real.";
    const INTERRUPTED: &'static str = "interrupted; run `relatch demo` again to see its end";
    const WAITS_FOR_HEALTH: bool = true;

    fn container(&self) -> &Container {
        &self.container
    }

    fn reason(&self) -> &'static str {
        "its queue is saturated"
    }

    fn settled_within(&self, _opened: &Run) -> Duration {
        SETTLED_WITHIN
    }

    async fn post_arrived(&mut self) {
        // The teller ends only with this side itself.
        let _ = self.posts_told.wait_for(|told| *told > 0).await;
    }

    async fn witness(&self) -> anyhow::Result<Witness> {
        let witness = witness(&History::read(&self.wire_log)?, &self.container.id);
        self.timeline.say(
            Who::Engine,
            &format!(
                "its own log has {} POST /containers/{}…/restart",
                witness.posts.len(),
                short(&self.container.id)
            ),
        );
        Ok(witness)
    }

    async fn end(self) -> anyhow::Result<()> {
        self.teller.abort();
        self.process.end().await
    }
}

async fn start_engine(folder: &Folder, wire_log: &std::path::Path) -> anyhow::Result<Process> {
    let healthcheck = Healthcheck { interval_ms: 1_000, timeout_ms: 1_000, ..Healthcheck::default() };
    let web = ContainerSpec {
        healthcheck: Some(healthcheck),
        health_delay_ms: WELL_AFTER_MS,
        ..ContainerSpec::named("web")
            .health(Health::Saturated)
            .stop(StopBehaviour::Polite { after_ms: STOP_MS })
    };
    let spec = EngineSpec { containers: vec![web], ..EngineSpec::default() };
    let spec_file = folder.file("engine.json");
    std::fs::write(&spec_file, serde_json::to_vec_pretty(&spec)?)
        .with_context(|| format!("writing {}", spec_file.display()))?;
    let socket = folder.engine_socket();
    let arguments =
        ["sim-engine", "--socket", utf8(&socket)?, "--spec", utf8(&spec_file)?, "--log", utf8(wire_log)?];
    Process::start("the simulated engine", &arguments, folder.file("engine.log")).await
}

/// What the engine's log says of a container.
fn witness(wire: &History, container_id: &str) -> Witness {
    let posts = wire.posts(container_id).into_iter().map(|entry| Post {
        at: crate::docker::parse_instant(&entry.time).ok(),
        request_line: match &entry.event {
            Event::Request { method, target, .. } => format!("{method} {target} HTTP/1.1"),
            _ => String::new(),
        },
    });
    let is_stop = |event: &Event| match event {
        Event::Effect { container, effect, .. } => {
            container == container_id && *effect == EffectKind::Sigterm
        }
        _ => false,
    };
    let stops = wire.entries.iter().filter(|entry| is_stop(&entry.event)).count();
    Witness { container_id: container_id.to_owned(), posts: posts.collect(), effect: Effect::Stops(stops) }
}

/// Tells what happens in the engine as its log grows, and then how many restart requests have arrived whole.
async fn tell_effects(
    wire_log: PathBuf,
    container_id: String,
    timeline: Timeline,
    posts_told: watch::Sender<usize>,
) {
    let mut seen = 0;
    loop {
        if let Ok(history) = History::read(&wire_log) {
            for entry in history.entries.iter().filter(|entry| entry.seq > seen) {
                if let Some(what) = effect_in_words(&entry.event, &container_id) {
                    timeline.say(Who::Engine, &what);
                }
            }
            seen = history.entries.last().map_or(seen, |entry| entry.seq);
            posts_told.send_replace(history.posts(&container_id).len());
        }
        sleep(POLL).await;
    }
}

fn effect_in_words(event: &Event, container_id: &str) -> Option<String> {
    match event {
        Event::Request { method, target, container, head_bytes, .. }
            if method == "POST" && container.as_deref() == Some(container_id) =>
        {
            let target = target.replace(container_id, &format!("{}…", short(container_id)));
            Some(format!("receives POST {target} ({head_bytes} bytes)"))
        }
        Event::Effect { container, effect, .. } if container == container_id => Some(match effect {
            EffectKind::Sigterm => format!("asks web to stop; it needs {} s for that", STOP_MS / 1_000),
            EffectKind::Exited => "web has stopped".into(),
            EffectKind::Started => "web is started: a new StartedAt".into(),
            _ => return None,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Endpoint, Entry};

    const CONTAINER: &str = "c0ffee";

    fn post(container: &str) -> Event {
        Event::Request {
            connection: 1,
            request: 1,
            method: "POST".into(),
            target: format!("/containers/{container}/restart?t=10"),
            endpoint: Endpoint::Restart,
            container: Some(container.into()),
            head: String::new(),
            head_bytes: 180,
            rule: None,
        }
    }

    fn effect(container: &str, effect: EffectKind) -> Event {
        Event::Effect { request: Some(1), container: container.into(), effect, started_at: String::new() }
    }

    #[test]
    fn the_log_is_read_for_the_one_container_alone() {
        let events = [
            post("another"),
            effect("another", EffectKind::Sigterm),
            post(CONTAINER),
            effect(CONTAINER, EffectKind::Sigterm),
            effect(CONTAINER, EffectKind::Started),
        ];
        let entry = |(seq, event)| Entry { seq, time: "2024-05-01T10:20:31Z".into(), event };
        let seen = witness(&History { entries: (1..).zip(events).map(entry).collect() }, CONTAINER);
        let lines: Vec<&str> = seen.posts.iter().map(|post| post.request_line.as_str()).collect();
        assert_eq!(lines, ["POST /containers/c0ffee/restart?t=10 HTTP/1.1"]);
        assert_eq!(seen.posts[0].at.map(|at| at.unix_s()), Some(1_714_558_831));
        assert_eq!(seen.effect, Effect::Stops(1));
    }
}
