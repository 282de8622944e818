//! Where output goes: documents to stdout, messages to stderr.

use std::io::{self, Write};
#[cfg(test)]
use std::sync::Mutex;

use clap::ValueEnum;
use prost::Message;

use crate::rpc;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// Prints in the format that was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    format: Format,
    /// Messages are not printed.
    mute: bool,
    /// Where a test finds what would have been printed.
    #[cfg(test)]
    printed: Option<&'static Printed>,
}

/// What a command would have printed.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct Printed {
    stdout: Mutex<String>,
    stderr: Mutex<String>,
}

#[cfg(test)]
impl Printed {
    pub(super) fn stdout(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    pub(super) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }
}

impl Output {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            mute: false,
            #[cfg(test)]
            printed: None,
        }
    }

    /// Prints nothing, and keeps it for a test to read.
    #[cfg(test)]
    pub(super) fn kept(format: Format) -> (Self, &'static Printed) {
        let printed: &'static Printed = Box::leak(Box::default());
        (Self { printed: Some(printed), ..Self::new(format) }, printed)
    }

    /// The same without messages: for who tells the story in other words.
    pub(super) fn muted(self) -> Self {
        Self { mute: true, ..self }
    }

    pub(super) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Prints a message of type `name`: as one JSON document, or as the text that `table` makes.
    pub(super) fn document(
        self,
        name: &str,
        message: &impl Message,
        table: impl FnOnce() -> String,
    ) -> io::Result<()> {
        match self.format {
            Format::Table => self.text(&table()),
            Format::Json => self.text(&format!("{:#}\n", json(name, message)?)),
        }
    }

    /// As [`Self::document`], but JSON on a line of its own: one of many documents.
    pub(super) fn line(
        self,
        name: &str,
        message: &impl Message,
        table: impl FnOnce() -> String,
    ) -> io::Result<()> {
        match self.format {
            Format::Table => self.text(&table()),
            Format::Json => self.text(&format!("{}\n", json(name, message)?)),
        }
    }

    /// Prints a text as it is.
    pub(super) fn text(self, text: &str) -> io::Result<()> {
        #[cfg(test)]
        if let Some(printed) = self.printed {
            printed.stdout.lock().unwrap().push_str(text);
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// A message for people, on stderr. Where even that is closed, nobody is left to tell.
    pub(super) fn note(self, message: impl AsRef<str>) {
        if self.mute {
            return;
        }
        #[cfg(test)]
        if let Some(printed) = self.printed {
            let mut stderr = printed.stderr.lock().unwrap();
            stderr.push_str(message.as_ref());
            stderr.push('\n');
            return;
        }
        let _ = writeln!(io::stderr().lock(), "{}", message.as_ref());
    }
}

fn json(name: &str, message: &impl Message) -> io::Result<serde_json::Value> {
    rpc::to_json(name, message).map_err(io::Error::other)
}
