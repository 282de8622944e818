//! All entries of a family, decoded by several threads.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, available_parallelism, scope};

use super::database::View;
use super::error::StorageError;

/// How many entries one thread decodes at a time: enough to be worth handing over, few enough to stay small.
const AT_A_TIME: usize = 512;

/// How many such chunks wait for one thread.
const AHEAD: usize = 2;

/// Entries as they are read, for one thread.
type Chunk = Vec<(String, Vec<u8>)>;

/// One thread that decodes. It ends when the sender of its chunks goes.
struct Decoder<T, E> {
    chunks: SyncSender<Chunk>,
    decoded: Receiver<Result<Vec<T>, E>>,
}

impl<T: Send, E: Send> Decoder<T, E> {
    fn start<'scope, 'all>(
        scope: &'scope Scope<'scope, 'all>,
        decode: &'scope (impl Fn(String, Vec<u8>) -> Result<T, E> + Sync),
    ) -> std::io::Result<Self>
    where
        T: 'scope,
        E: 'scope,
    {
        let (chunks, waiting) = sync_channel::<Chunk>(AHEAD);
        let (done, decoded) = sync_channel(AHEAD);
        Builder::new().name("decoder".to_owned()).spawn_scoped(scope, move || {
            for chunk in waiting {
                let decoded = chunk.into_iter().map(|(key, value)| decode(key, value)).collect();
                if done.send(decoded).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { chunks, decoded })
    }
}

impl View<'_> {
    /// Hands every entry of a family at that moment to `take`, decoded, in the order of the keys. As many threads
    /// decode as there are processors, while this one reads on and takes: a start on a large state must not take
    /// longer than it has to.
    ///
    /// # Errors
    ///
    /// [`StorageError`] as of [`View::entries`], or the first error of `decode` or `take`.
    ///
    /// # Panics
    ///
    /// If `decode` does.
    pub fn decoded<T, E>(
        &self,
        family: &'static str,
        decode: impl Fn(String, Vec<u8>) -> Result<T, E> + Sync,
        mut take: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E>
    where
        T: Send,
        E: From<StorageError> + Send,
    {
        let threads = available_parallelism().map_or(1, NonZero::get);
        let mut entries = self.entries(family)?;
        let mut take_all = |decoder: &Decoder<T, E>| {
            let decoded = decoder.decoded.recv().expect("a decoder ends only when it panics")?;
            decoded.into_iter().try_for_each(&mut take)
        };
        scope(|scope| {
            let started = |error| StorageError::failed("starting a thread for", self.path(), error);
            let decoders = (0..threads).map(|_| Decoder::start(scope, &decode).map_err(started));
            let decoders = decoders.collect::<Result<Vec<_>, _>>()?;
            let mut under_way: VecDeque<&Decoder<T, E>> = VecDeque::new();
            for decoder in decoders.iter().cycle() {
                let chunk = entries.by_ref().take(AT_A_TIME).collect::<Result<Chunk, _>>()?;
                if chunk.is_empty() {
                    break;
                }
                decoder.chunks.send(chunk).expect("a decoder ends only when it panics");
                under_way.push_back(decoder);
                if under_way.len() >= threads * AHEAD {
                    under_way.pop_front().map_or(Ok(()), &mut take_all)?;
                }
            }
            under_way.into_iter().try_for_each(take_all)
        })
    }
}
