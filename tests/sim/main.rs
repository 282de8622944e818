//! Faults that people who do this job have met, over the scripted engine: the real binary, and what really
//! arrived as the engine's own log has it. `docs/cases.md` names the test of each.

#[path = "../support/mod.rs"]
mod support;

mod authority;
mod deadlines;
mod duplicates;
mod gaps;
mod hanging;
mod incarnations;
mod leader;
mod names;
mod recovery;
mod stopped;
mod versions;
mod world;
