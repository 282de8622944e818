//! A real engine with a container of the person who asks, behind a proxy that loses one answer.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::timeout;

use super::super::stage::Folder;
use super::super::text::plain;
use super::judge::{Effect, Witness, short};
use super::proxy::Proxy;
use super::side::{Container, EngineSide};
use super::timeline::{Timeline, Who};
use crate::docker::{Endpoint, Engine, EngineError, EngineLimits, Inspection, format_instant};
use crate::model::{ContainerState, EngineInstant};
use crate::rpc::v1::Run;

/// The least time for a run to be settled; the container's own grace comes on top.
const SETTLED_WITHIN: Duration = Duration::from_secs(25);

/// The longest that an engine is heard out: the longest grace there is, and the margin.
const HEARD_WITHIN: Duration = Duration::from_secs(320);

/// So many digits of an id are taken for a container, as Docker shows them.
const SHORT_ID_DIGITS: usize = 12;

/// The engine, asked directly, and the proxy through which the node has to go.
#[derive(Debug)]
pub(super) struct Real {
    engine: Engine,
    container: Container,
    /// `StartedAt`, as the engine said before anything was asked of relatch.
    before: EngineInstant,
    proxy: Proxy,
    timeline: Timeline,
}

impl Real {
    /// Looks whether the container is there and runs, and puts the proxy before its engine.
    pub(super) async fn begin(
        endpoint: &Endpoint,
        name: &str,
        folder: &Folder,
        timeline: &Timeline,
    ) -> anyhow::Result<Self> {
        let engine = Engine::new(endpoint.clone(), EngineLimits::default());
        let version = engine.identify().await?.server_version;
        let seen = match engine.inspect(name).await {
            Ok(seen) => seen,
            Err(EngineError::NoSuchContainer { .. }) => bail!(no_such_container(name, endpoint)),
            Err(error) => return Err(error.into()),
        };
        let (container, before) = checked(seen, name, endpoint)?;
        timeline.print("relatch demo: one restart whose answer gets lost. The Docker Engine here is REAL,");
        timeline.print(
            "and its container below is really restarted, once. A proxy of the demo loses the answer;",
        );
        timeline.print("the relatch processes, their disk and the SIGKILL are real as well.");
        timeline.print(&format!("  engine     {endpoint}, version {}", plain(&version)));
        timeline.print(&format!("  container  {}, {}", container.name, container.id));
        timeline.print("");
        timeline.say(
            Who::Engine,
            &format!(
                "container {} ({}) runs; its StartedAt is {}",
                container.name,
                short(&container.id),
                format_instant(before)
            ),
        );
        let address = endpoint.to_string();
        let socket =
            address.strip_prefix("unix://").context("a real engine is reached over a unix socket")?;
        let proxy = Proxy::start(&folder.engine_socket(), Path::new(socket), timeline.clone())?;
        Ok(Self { engine, container, before, proxy, timeline: timeline.clone() })
    }
}

impl EngineSide for Real {
    const KIND: &'static str = "real";
    const CLOSING: &'static str =
        "The engine and its container were REAL; only the proxy that lost the answer was the demo's own.";
    const INTERRUPTED: &'static str =
        "interrupted; if a restart request had arrived by then, the container is or was restarted, once";
    // A health check of somebody's own may take half an hour: applied is where this story ends.
    const WAITS_FOR_HEALTH: bool = false;

    fn container(&self) -> &Container {
        &self.container
    }

    fn reason(&self) -> &'static str {
        "relatch demo"
    }

    /// The pause between two looks is never longer than all the time before it, so that a restart is seen
    /// when at most twice its time is over.
    fn settled_within(&self, opened: &Run) -> Duration {
        let deadline = opened.client_deadline.and_then(|deadline| Duration::try_from(deadline).ok());
        SETTLED_WITHIN + deadline.unwrap_or(HEARD_WITHIN) * 2
    }

    async fn post_arrived(&mut self) {
        self.proxy.passed_on().await;
    }

    async fn witness(&self) -> anyhow::Result<Witness> {
        let seen = self.engine.inspect(&self.container.id).await?;
        let after = seen.sighting.started_at.instant().context("the engine shows no readable StartedAt")?;
        self.timeline.say(
            Who::Engine,
            &format!(
                "asked directly: StartedAt was {}, is {}",
                format_instant(self.before),
                format_instant(after)
            ),
        );
        let posts = self.proxy.posts();
        let lines: Vec<&str> = posts.iter().map(|post| post.request_line.as_str()).collect();
        let lines = self.container.shortened(&lines.join(", "));
        self.timeline
            .say(Who::Proxy, &format!("its record of restart requests has {}: {lines}", posts.len()));
        let effect = Effect::StartedAt { before: self.before, after };
        Ok(Witness { container_id: self.container.id.clone(), posts, effect })
    }

    /// An engine whose client hangs up in the middle may leave a container stopped: it is heard out.
    async fn end(mut self) -> anyhow::Result<()> {
        if self.proxy.is_owed_an_answer() {
            self.timeline.say(Who::Demo, "hears the engine out; Ctrl-C ends that");
        }
        let heard = timeout(HEARD_WITHIN, self.proxy.heard_out()).await;
        heard.with_context(|| {
            format!("the engine did not answer a restart within {} s", HEARD_WITHIN.as_secs())
        })
    }
}

fn no_such_container(name: &str, endpoint: &Endpoint) -> String {
    format!(
        "there is no container {name:?} on the engine at {endpoint}, so the demo did not begin; \
         `docker ps` lists those that run"
    )
}

/// The container that was meant, and `StartedAt`; an error if it is another one, or does not run.
fn checked(seen: Inspection, name: &str, endpoint: &Endpoint) -> anyhow::Result<(Container, EngineInstant)> {
    let Inspection { sighting, .. } = seen;
    let id = sighting.container_id.as_str();
    // An engine takes any beginning of an id for a container; who mistyped a name does not mean that.
    let is_meant = sighting.name == name || (name.len() >= SHORT_ID_DIGITS && id.starts_with(name));
    if !is_meant {
        bail!(no_such_container(name, endpoint));
    }
    let named = &sighting.name;
    if sighting.state != ContainerState::Running {
        let state = format!("{:?}", sighting.state).to_lowercase();
        bail!("container {named} is {state}; the demo restarts one that runs: start it, or name another");
    }
    let started_at = sighting.started_at.instant();
    let before = started_at.with_context(|| format!("container {named} has no readable StartedAt"))?;
    Ok((Container { name: sighting.name.clone(), id: id.to_owned() }, before))
}
