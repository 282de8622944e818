//! How long each step of a restart takes: the spans of target `relatch::step`, timed by a layer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

/// The target of the spans that are steps.
const TARGET: &str = "relatch::step";

/// One step that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) name: &'static str,
    begun: Instant,
    ended: Instant,
}

impl Step {
    pub(super) fn took(&self) -> Duration {
        self.ended - self.begun
    }

    /// True if it began and ended while the other was under way.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.begun >= other.begun && self.ended <= other.ended
    }
}

/// The steps of this process, in the order of their ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Steps are kept only while somebody wants them.
    wanted: AtomicBool,
    ended: Mutex<Vec<Step>>,
}

struct Begun(Instant);

impl Steps {
    /// Listens from now on. Trouble of what runs in this process goes to stderr.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let steps = Self::default();
        let trouble =
            fmt::layer().with_writer(std::io::stderr).with_filter(EnvFilter::new("warn,openraft=error"));
        let timed = steps.clone().with_filter(filter_fn(|metadata| metadata.target() == TARGET));
        tracing_subscriber::registry().with(trouble).with(timed).try_init().context("listening for steps")?;
        Ok(steps)
    }

    /// Keeps what ends from now on.
    pub(super) fn begin(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
        self.take();
    }

    /// Keeps nothing any more.
    pub(super) fn end(&self) {
        self.0.wanted.store(false, Ordering::Relaxed);
    }

    /// Those that have ended since this was called last.
    pub(super) fn take(&self) -> Vec<Step> {
        std::mem::take(&mut *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Steps {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Begun(Instant::now()));
        }
    }

    fn on_close(&self, id: Id, context: LayerContext<'_, S>) {
        let ended = Instant::now();
        if !self.0.wanted.load(Ordering::Relaxed) {
            return;
        }
        let Some(span) = context.span(&id) else { return };
        let Some(begun) = span.extensions().get::<Begun>().map(|begun| begun.0) else { return };
        let step = Step { name: span.name(), begun, ended };
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }
}
