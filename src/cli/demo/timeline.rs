//! What happened when, and who did it: printed as it happens.

use std::sync::Arc;
use std::time::Instant;

use super::super::output::Output;
use super::super::text::plain;

/// Who did something.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    /// The person who asks.
    You,
    /// The relatch process.
    Relatch,
    /// The engine and its container.
    Engine,
    /// The demo's proxy before a real engine.
    Proxy,
    /// The demo, which breaks things.
    Demo,
}

impl Who {
    fn word(self) -> &'static str {
        match self {
            Self::You => "you",
            Self::Relatch => "relatch",
            Self::Engine => "engine",
            Self::Proxy => "proxy",
            Self::Demo => "demo",
        }
    }
}

/// The timeline of one demo.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    begun: Instant,
    output: Arc<Output>,
}

impl Timeline {
    pub(super) fn begin(output: Output) -> Self {
        Self { begun: Instant::now(), output: Arc::new(output) }
    }

    /// Prints one line: the seconds since the demo began, who, and what.
    pub(super) fn say(&self, who: Who, what: &str) {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.print(&format!("{seconds:6.1} s  {:<8} {}", who.word(), plain(what)));
    }

    /// Prints a line that belongs to no moment.
    pub(super) fn print(&self, line: &str) {
        // JSON has stdout for itself. A reader who left does not stop the demo.
        if self.output.is_json() {
            self.output.note(line);
        } else {
            let _ = self.output.text(&format!("{line}\n"));
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}
