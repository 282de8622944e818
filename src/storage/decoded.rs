//! All entries of a family, decoded by several threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread::{Builder, available_parallelism, scope};

use super::database::View;
use super::error::StorageError;

/// How many entries one thread decodes at a time: enough to be worth a thread, few enough to stay small.
const AT_A_TIME: usize = 1_024;

/// Entries as they are read, for one thread.
type Chunk = Vec<(String, Vec<u8>)>;

impl View<'_> {
    /// Every entry of a family at that moment, decoded, in the order of the keys. As many threads decode as there
    /// are processors, while this one reads on: a start on a large state must not take longer than it has to.
    ///
    /// # Errors
    ///
    /// [`StorageError`] as of [`View::entries`], or the first error of `decode`.
    pub fn decoded<T, E>(
        &self,
        family: &'static str,
        decode: impl Fn(String, Vec<u8>) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E>
    where
        T: Send,
        E: From<StorageError> + Send,
    {
        let threads = available_parallelism().map_or(1, NonZero::get);
        let mut entries = self.entries(family)?;
        let mut read = || -> Result<Vec<Chunk>, E> {
            let mut chunks = Vec::new();
            for _ in 0..threads {
                let chunk = entries.by_ref().take(AT_A_TIME).collect::<Result<Chunk, _>>()?;
                if !chunk.is_empty() {
                    chunks.push(chunk);
                }
            }
            Ok(chunks)
        };
        let decode = &decode;
        let decode_all = move |chunk: Chunk| {
            chunk.into_iter().map(|(key, value)| decode(key, value)).collect::<Result<Vec<T>, E>>()
        };
        let mut decoded = Vec::new();
        let mut chunks = read()?;
        while !chunks.is_empty() {
            chunks = scope(|scope| {
                let mut decoding = Vec::new();
                for chunk in chunks {
                    let thread = Builder::new().name("decoder".to_owned());
                    let started = thread.spawn_scoped(scope, move || decode_all(chunk));
                    decoding.push(started.map_err(|error| {
                        StorageError::failed("starting a thread for", self.path(), error)
                    })?);
                }
                let next = read()?;
                for thread in decoding {
                    decoded.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic))?);
                }
                Ok::<_, E>(next)
            })?;
        }
        Ok(decoded)
    }
}
