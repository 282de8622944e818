//! One relatch for one engine on a machine: whoever serves an engine holds a lock that is named after it.
//!
//! Two nodes with data of their own know nothing of each other's holds and restarts. The lock is a file in a folder
//! for what runs (`$XDG_RUNTIME_DIR`, else `/run`, else where temporary files go); that of root and those of people
//! who are logged in are looked at as well. That is as far as one machine shows: a node in a container with a `/run`
//! of its own, or on another machine, is not seen.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::{EngineId, hex};

/// The folder of such locks, in each place.
const FOLDER: &str = "relatch";

/// A lock that is held for longer than somebody's look at it is a node's.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// More than a holder says of itself.
const HOLDER_BYTES: u64 = 16 << 10;

/// Another process on this machine serves the engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "engine {engine} is served by another relatch already ({by}): two of them know nothing of each other's holds and \
     restarts; give your commands to that one (--addr), or end it first"
)]
pub struct EngineTaken {
    /// The engine.
    pub engine: EngineId,
    /// Who serves it, as far as it says.
    pub by: String,
}

/// An engine that this process serves. Others find that out for as long as the value lives.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) engine: EngineId,
    _lock: Option<Lock>,
}

impl Served {
    /// Begins to serve an engine. Where no lock can be kept, that is told and goes on without.
    pub(super) fn begin(engine: &EngineId, data_dir: &Path) -> Result<Self, EngineTaken> {
        match Places::of_this_machine().take(engine, data_dir) {
            Taken::Mine(lock) => Ok(Self { engine: engine.clone(), _lock: Some(lock) }),
            Taken::Others(by) => Err(EngineTaken { engine: engine.clone(), by }),
            Taken::Unknown(why) => {
                tracing::warn!(%engine, %why, "whether another relatch on this machine serves this engine is not known");
                Ok(Self { engine: engine.clone(), _lock: None })
            }
        }
    }
}

/// Who on this machine serves the engine now, as far as it says. `None` if nobody is seen to. Nothing is changed.
#[must_use]
pub fn server_of(engine: &EngineId) -> Option<String> {
    Places::of_this_machine().holder(engine)
}

/// Who serves an engine, as it says in its lock.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Holder {
    pid: u32,
    data_dir: PathBuf,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}, its data in {}", self.pid, self.data_dir.display())
    }
}

/// A lock that is held. The system lets go of it when the process ends, however it does.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still locked: whoever opened the file before finds that it is not the one in its place any more.
        let _left = std::fs::remove_file(&self.path);
    }
}

enum Taken {
    Mine(Lock),
    Others(String),
    Unknown(String),
}

/// Where locks lie.
struct Places {
    /// Where this process may keep one; the first that can be used.
    own: Vec<PathBuf>,
    /// Where others may.
    others: Vec<PathBuf>,
}

impl Places {
    fn of_this_machine() -> Self {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
        let shared = Path::new("/run").join(FOLDER);
        let temporary = std::env::temp_dir().join(format!("{FOLDER}-{}", geteuid().as_raw()));
        let own = runtime.map(|dir| dir.join(FOLDER)).into_iter().chain([shared.clone(), temporary]);
        let people = std::fs::read_dir("/run/user").into_iter().flatten().filter_map(Result::ok);
        let others = people.map(|entry| entry.path().join(FOLDER)).chain([shared]);
        Self { own: own.collect(), others: others.collect() }
    }

    fn take(&self, engine: &EngineId, data_dir: &Path) -> Taken {
        let name = file_name(engine);
        let holder = Holder { pid: std::process::id(), data_dir: data_dir.to_owned() };
        let mut mine = Err("there is no place for it".to_owned());
        for folder in &self.own {
            let path = folder.join(&name);
            match lock(folder, &path, &holder) {
                Ok(Some(lock)) => {
                    mine = Ok(lock);
                    break;
                }
                Ok(None) => return Taken::Others(holder_of(&path)),
                Err(error) => mine = Err(format!("locking {}: {error}", path.display())),
            }
        }
        let is_mine = |path: &Path| mine.as_ref().is_ok_and(|lock| lock.path == path);
        let looked_at = self.others.iter().map(|folder| folder.join(&name)).filter(|path| !is_mine(path));
        if let Some(path) = looked_at.into_iter().find(|path| is_held(path)) {
            return Taken::Others(holder_of(&path));
        }
        mine.map_or_else(Taken::Unknown, Taken::Mine)
    }

    /// Who holds the engine's lock in any of the places.
    fn holder(&self, engine: &EngineId) -> Option<String> {
        let name = file_name(engine);
        let mut paths = self.own.iter().chain(&self.others).map(|folder| folder.join(&name));
        paths.find(|path| is_held(path)).map(|path| holder_of(&path))
    }
}

fn file_name(engine: &EngineId) -> String {
    let hash = Sha256::digest(engine.as_str());
    format!("engine-{}.lock", hex(&hash[..16]))
}

/// Locks a file. None if another process holds it.
fn lock(folder: &Path, path: &Path, holder: &Holder) -> io::Result<Option<Lock>> {
    match DirBuilder::new().mode(0o755).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Where everybody may write, somebody may have been there before.
    let found = folder.symlink_metadata()?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::other("its folder is somebody else's"));
    }
    for _ in 0..TRIES {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o644);
        let mut file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_in_place(&file, path) => {
                file.set_len(0)?;
                file.write_all(&serde_json::to_vec(holder)?)?;
                return Ok(Some(Lock { path: path.to_owned(), _file: file }));
            }
            // Its holder was just ending.
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn is_in_place(file: &File, path: &Path) -> bool {
    let same = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().and_then(|open| Ok(same(open, path.symlink_metadata()?))).unwrap_or(false)
}

/// True if another process holds the lock. What cannot be opened is nobody's, as far as is known.
fn is_held(path: &Path) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

fn holder_of(path: &Path) -> String {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(HOLDER_BYTES).read_to_string(&mut text));
    let holder = read.ok().and_then(|_| serde_json::from_str::<Holder>(&text).ok());
    holder.map_or_else(|| format!("whoever holds {}", path.display()), |holder| holder.to_string())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn engine(id: &str) -> EngineId {
        EngineId::new(id).unwrap()
    }

    fn places(own: &[&Path], others: &[&Path]) -> Places {
        let owned = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
        Places { own: owned(own), others: owned(others) }
    }

    fn mine(taken: Taken) -> Lock {
        match taken {
            Taken::Mine(lock) => lock,
            Taken::Others(by) => panic!("it is held by {by}"),
            Taken::Unknown(why) => panic!("{why}"),
        }
    }

    fn others(taken: Taken) -> String {
        match taken {
            Taken::Others(by) => by,
            Taken::Mine(lock) => panic!("{lock:?} was taken"),
            Taken::Unknown(why) => panic!("{why}"),
        }
    }

    fn folder() -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        (dir, folder)
    }

    #[test]
    fn an_engine_is_served_by_one_and_whoever_comes_next_is_told_by_whom() {
        let (_dir, run) = folder();
        let here = places(&[&run], &[&run]);
        assert_eq!(here.holder(&engine("E/1")), None);
        let first = mine(here.take(&engine("E/1"), Path::new("/first")));
        assert!(here.holder(&engine("E/1")).unwrap().ends_with("its data in /first"));
        let by = others(here.take(&engine("E/1"), Path::new("/second")));
        assert_eq!(by, format!("process {}, its data in /first", std::process::id()));
        let _another = mine(here.take(&engine("E/2"), Path::new("/second")));
        drop(first);
        assert_eq!(run.read_dir().unwrap().count(), 1, "nothing is left of it");
        mine(here.take(&engine("E/1"), Path::new("/second")));
    }

    #[test]
    fn one_that_is_served_from_another_place_is_found_too_and_what_was_left_there_is_nobodys() {
        let ((_dir, run), (_other_dir, elsewhere)) = (folder(), folder());
        let there = mine(places(&[&elsewhere], &[]).take(&engine("E"), Path::new("/first")));
        let left = there.path.clone();
        let here = places(&[&run], &[&elsewhere, Path::new("/nowhere")]);
        assert!(others(here.take(&engine("E"), Path::new("/second"))).ends_with("/first"));
        assert_eq!(run.read_dir().unwrap().count(), 0, "what is refused holds nothing");
        drop(there);
        File::create(left).unwrap();
        mine(here.take(&engine("E"), Path::new("/second")));
    }

    #[test]
    fn where_one_place_cannot_be_used_the_next_is_and_without_any_nothing_is_known() {
        let (dir, run) = folder();
        let file = dir.path().join("file");
        File::create(&file).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        let lock = mine(
            places(&[Path::new("/nowhere/x"), &file, &link, &run], &[])
                .take(&engine("E"), Path::new("/data")),
        );
        assert!(lock.path.starts_with(&run));
        let taken = places(&[&file], &[]).take(&engine("E"), Path::new("/data"));
        assert!(matches!(&taken, Taken::Unknown(why) if why.contains("somebody else's")));
    }
}
