//! The data directory itself: one process, one local disk, one identity.

use std::fs::{File, OpenOptions, read_dir};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::StorageError;
use super::file_system::FileSystem;
use super::files::replace_file;
use super::identity::Identity;
use super::sync::{make_folder, sync_name};

const LOCK: &str = "LOCK";
const IDENTITY: &str = "identity.json";
/// What an identity is written to before it takes its place.
const HALF_IDENTITY: &str = "identity.tmp";
const INITIALIZED: &str = "initialized";

/// What the names of files begin with that are of no further meaning, and may be left by whoever was killed.
pub(super) const TEMPORARY: &str = ".relatch-tmp-";

/// A data directory that this process alone may use, for as long as the value lives.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    identity: Identity,
    /// Holds the lock; the system lets go of it when the file is closed, however the process ends.
    _lock: File,
}

impl DataDir {
    /// Opens the directory, and makes it (for its owner alone) if it is not there.
    ///
    /// `mint` is called for a directory that has no identity yet and no data either; what it gives is stored
    /// before this returns.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if the directory is in use, not on a local disk, not writable, of another format, or
    /// is not empty and has no identity. Nothing in it is changed then.
    pub fn open(
        path: impl AsRef<Path>,
        mint: impl FnOnce() -> Result<Identity, StorageError>,
    ) -> Result<Self, StorageError> {
        let path = path.as_ref();
        let is_made = create(path)?;
        FileSystem::require_local(path)?;
        // Not even a lock is left in a directory that is somebody else's.
        stored_identity(path)?;
        let lock = lock(path)?;
        let identity = identity(path, is_made, mint)?;
        Ok(Self { path: path.to_owned(), identity, _lock: lock })
    }

    /// Whether [`DataDir::open`] would take the directory, as far as that shows without a change to anything.
    /// Gives the directory, or, if it is still to be made, the nearest one above it that exists.
    ///
    /// # Errors
    ///
    /// [`StorageError`] as of [`DataDir::open`].
    pub fn examine(path: impl AsRef<Path>) -> Result<PathBuf, StorageError> {
        let path = path.as_ref();
        let there = nearest(path)?;
        FileSystem::require_local(&there)?;
        if there == path {
            stored_identity(path)?;
            require_unlocked(path)?;
        }
        Ok(there)
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose data it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// True once [`DataDir::mark_initialized`] has been called: there was data, and there must be some.
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        self.part(INITIALIZED).exists()
    }

    /// Says for good that the directory holds data, so that data which is gone later is missed.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if it cannot be made durable.
    pub fn mark_initialized(&self) -> Result<(), StorageError> {
        if self.is_initialized() {
            return Ok(());
        }
        replace_file(
            &self.part(INITIALIZED),
            b"This node has a log. If that is gone, so is what it agreed to.\n",
        )
    }

    /// Where a part of the data lies.
    #[must_use]
    pub fn part(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// The directory, or the nearest one above it that exists.
fn nearest(path: &Path) -> Result<PathBuf, StorageError> {
    for above in path.ancestors() {
        // What is above a relative path's first name is where this process is.
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        if is_there(above)? {
            return Ok(above.to_owned());
        }
    }
    Err(StorageError::failed("looking for", path, "nothing above it exists"))
}

/// True if it is a directory; an error if something else is in its place.
fn is_there(path: &Path) -> Result<bool, StorageError> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(StorageError::NotADirectory { path: path.to_owned() }),
        // A link that leads nowhere cannot be made a directory either.
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            Err(StorageError::NotADirectory { path: path.to_owned() })
        }
        // The one above, which is a file, is found when its turn comes.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(StorageError::failed("looking at", path, error)),
    }
}

/// Makes the directory and those above it, each durable in the one above. False if it was there.
fn create(path: &Path) -> Result<bool, StorageError> {
    if is_there(path)? {
        return Ok(false);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent
        && !create(parent)?
    {
        sync_found(parent)?;
    }
    make_folder(path)?;
    Ok(true)
}

/// Makes a folder that was found durable in the one above: a start that was killed may have made it, and nothing more.
fn sync_found(path: &Path) -> Result<(), StorageError> {
    match sync_name("sync-found-folder", path) {
        // It lies where this user could not have made it.
        Err(StorageError::Failed { detail, .. }) if detail.contains("Permission denied") => Ok(()),
        synced => synced,
    }
}

fn lock(path: &Path) -> Result<File, StorageError> {
    let file = path.join(LOCK);
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&file)
        .map_err(|error| StorageError::failed("opening", &file, error))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(StorageError::InUse { path: path.to_owned() }),
        Err(error) => Err(StorageError::failed("locking", &file, error)),
    }
}

/// Refuses a directory that another process has. The lock is held for no longer than it takes to see that.
fn require_unlocked(path: &Path) -> Result<(), StorageError> {
    let file = path.join(LOCK);
    let lock = match File::open(&file) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StorageError::failed("opening", &file, error)),
    };
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(StorageError::InUse { path: path.to_owned() }),
        Err(error) => Err(StorageError::failed("locking", &file, error)),
    }
}

fn identity(
    path: &Path,
    is_made: bool,
    mint: impl FnOnce() -> Result<Identity, StorageError>,
) -> Result<Identity, StorageError> {
    if let Some(identity) = stored_identity(path)? {
        return Ok(identity);
    }
    if !is_made {
        sync_found(path)?;
    }
    let identity = mint()?;
    identity.store(&path.join(IDENTITY))?;
    Ok(identity)
}

/// The identity that is stored; `None` in a directory that has nothing in it.
fn stored_identity(path: &Path) -> Result<Option<Identity>, StorageError> {
    let file = path.join(IDENTITY);
    if let Some(identity) = Identity::read(&file)? {
        return Ok(Some(identity));
    }
    // Data without an identity must not be taken for a new node's: it may be another cluster's, and it may
    // have voted. Or it is not relatch's at all.
    let Some(found) = data(path)? else { return Ok(None) };
    // A process that is just beginning there stores its identity before anything else.
    match Identity::read(&file)? {
        Some(identity) => Ok(Some(identity)),
        None => Err(StorageError::NotOurs { path: path.to_owned(), found }),
    }
}

/// The name of something in the directory that is neither the lock nor half an identity.
fn data(path: &Path) -> Result<Option<String>, StorageError> {
    let failed = |error: std::io::Error| StorageError::failed("listing", path, error);
    let mut found = Vec::new();
    for entry in read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        // `lost+found` is what a fresh disk has at its root.
        let is_nothing = matches!(name.as_str(), LOCK | HALF_IDENTITY | "lost+found");
        if !is_nothing && !name.starts_with(TEMPORARY) {
            found.push(name);
        }
    }
    // The same one each time, whatever the order of the directory.
    Ok(found.into_iter().min())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::env::OsRandomness;
    use crate::model::NodeId;

    fn open(path: &Path) -> Result<DataDir, StorageError> {
        DataDir::open(path, || Ok(Identity::mint(&OsRandomness, NodeId(1)).unwrap()))
    }

    #[test]
    fn a_new_directory_is_its_owners_alone_and_keeps_the_identity_that_was_minted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let first = open(&path).unwrap();
        let identity = first.identity().clone();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(first);
        assert_eq!(*open(&path).unwrap().identity(), identity);
    }

    #[test]
    fn a_second_opener_is_told_that_the_directory_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path()).unwrap();
        let error = open(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is in use by another process"), "{error}");
        drop(first);
        open(folder.path()).unwrap();
    }

    /// Runs this test binary again as a child that tries the lock which this process holds.
    #[test]
    fn the_lock_binds_another_process() {
        const CHILD: &str = "RELATCH_TEST_LOCK_CHILD";
        if let Some(path) = std::env::var_os(CHILD) {
            println!("CHILD: {}", open(Path::new(&path)).unwrap_err());
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let _held = open(folder.path()).unwrap();
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "storage::data_dir::tests::the_lock_binds_another_process", "--nocapture"])
            .env(CHILD, folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(said.contains("CHILD: ") && said.contains("is in use by another process"), "{child:?}");
    }

    #[test]
    fn data_without_an_identity_is_never_taken_for_a_new_nodes() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()).unwrap());
        std::fs::create_dir(folder.path().join("raft")).unwrap();
        std::fs::remove_file(folder.path().join(IDENTITY)).unwrap();
        let error = open(folder.path()).unwrap_err();
        assert!(matches!(&error, StorageError::NotOurs { found, .. } if found == "raft"), "{error}");
    }

    #[test]
    fn a_directory_that_is_somebody_elses_is_refused_and_nothing_is_put_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis.txt"), "all of it").unwrap();
        let error = open(folder.path()).unwrap_err();
        assert!(error.to_string().contains("thesis.txt"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_fresh_disk_or_a_start_that_was_killed_has_left_is_no_data() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lost+found")).unwrap();
        for name in [LOCK, HALF_IDENTITY, ".relatch-tmp-ab"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        open(folder.path()).unwrap();
    }

    #[test]
    fn a_file_in_the_place_of_the_directory_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let nowhere = folder.path().join("nowhere");
        std::os::unix::fs::symlink("gone", &nowhere).unwrap();
        for (path, named) in [(file.clone(), &file), (file.join("data"), &file), (nowhere.clone(), &nowhere)]
        {
            for error in [open(&path).unwrap_err(), DataDir::examine(&path).unwrap_err()] {
                assert!(matches!(&error, StorageError::NotADirectory { path } if path == named), "{error}");
            }
        }
    }

    #[test]
    fn examining_changes_nothing_and_sees_what_opening_would() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        assert_eq!(DataDir::examine(&path).unwrap(), folder.path());
        assert!(!folder.path().join("a").exists());
        let held = open(&path).unwrap();
        assert!(matches!(DataDir::examine(&path).unwrap_err(), StorageError::InUse { .. }));
        drop(held);
        assert_eq!(DataDir::examine(&path).unwrap(), path);
        std::fs::remove_file(path.join(IDENTITY)).unwrap();
        std::fs::write(path.join("x"), "").unwrap();
        assert!(matches!(DataDir::examine(&path).unwrap_err(), StorageError::NotOurs { .. }));
    }

    #[test]
    fn an_identity_with_an_unknown_field_or_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let identity = open(folder.path()).unwrap().identity().clone();
        let file = folder.path().join(IDENTITY);
        let with = |fields: &[&str]| {
            let mut stored = serde_json::to_value(&identity).unwrap();
            for field in fields {
                stored[*field] = serde_json::json!(2);
            }
            std::fs::write(&file, stored.to_string()).unwrap();
            open(folder.path()).unwrap_err()
        };
        let error = with(&["extra"]);
        assert!(matches!(error, StorageError::Malformed { .. }), "{error}");
        for newer in [with(&["format"]), with(&["format", "extra"])] {
            assert!(matches!(newer, StorageError::OtherFormat { .. }), "{newer}");
        }
    }
}
