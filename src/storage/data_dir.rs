//! The data directory itself: one process, one local disk, one identity.

use std::fs::{DirBuilder, File, OpenOptions, read_dir};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, fstatfs};
use rustix::io::Errno;

use super::error::StorageError;
use super::files::{replace_file, sync_folder};
use super::identity::Identity;

const LOCK: &str = "LOCK";
const IDENTITY: &str = "identity.json";
const INITIALIZED: &str = "initialized";

/// File systems on which a lock binds the processes of one machine at most, with their `statfs` magic.
const NOT_LOCAL: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x1983_0326, "BeeGFS"),
    (0x786f_4256, "a VirtualBox shared folder"),
];

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
    /// [`StorageError`] if the directory is in use, not on a local disk, not readable, of another format, or
    /// has data but no identity.
    pub fn open(
        path: impl AsRef<Path>,
        mint: impl FnOnce() -> Result<Identity, StorageError>,
    ) -> Result<Self, StorageError> {
        let path = path.as_ref();
        create(path)?;
        let folder = File::open(path).map_err(|error| StorageError::failed("opening", path, error))?;
        let system = fstatfs(&folder)
            .map_err(|error| StorageError::failed("asking for the file system of", path, error))?;
        if let Some(kind) = not_local(system.f_type.cast_unsigned()) {
            return Err(StorageError::NotLocal { path: path.to_owned(), kind: kind.to_owned() });
        }
        let lock = lock(path)?;
        let identity = identity(path, mint)?;
        Ok(Self { path: path.to_owned(), identity, _lock: lock })
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

/// Makes the directory and those above it, each durable in the one above.
fn create(path: &Path) -> Result<(), StorageError> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create(parent)?;
    }
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(|error| StorageError::failed("making", path, error))?;
    sync_folder(parent.unwrap_or(Path::new(".")))
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

fn identity(
    path: &Path,
    mint: impl FnOnce() -> Result<Identity, StorageError>,
) -> Result<Identity, StorageError> {
    let file = path.join(IDENTITY);
    if let Some(identity) = Identity::read(&file)? {
        return Ok(identity);
    }
    // Data without an identity must not be taken for a new node's: it may be another cluster's, and it may
    // have voted.
    if let Some(data) = data(path)? {
        return Err(StorageError::IdentityLost { path: file, data });
    }
    let identity = mint()?;
    identity.store(&file)?;
    Ok(identity)
}

/// The name of something in the directory that is neither the lock nor half an identity.
fn data(path: &Path) -> Result<Option<String>, StorageError> {
    let failed = |error: std::io::Error| StorageError::failed("listing", path, error);
    for entry in read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let folder = entry.file_type().map_err(failed)?.is_dir();
        // `lost+found` is what a fresh disk has at its root.
        if folder && name != "lost+found" {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

#[allow(clippy::useless_conversion)] // the width of the magic differs between targets
fn not_local(magic: impl TryInto<u64>) -> Option<&'static str> {
    let magic = magic.try_into().ok()?;
    // Some kernels give the 32 bits sign-extended.
    let magic = magic & 0xffff_ffff;
    NOT_LOCAL.iter().find(|(known, _)| u64::from(*known) == magic).map(|(_, kind)| *kind)
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
        assert!(matches!(error, StorageError::IdentityLost { .. }), "{error}");
    }

    #[test]
    fn an_identity_with_an_unknown_field_or_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let identity = open(folder.path()).unwrap().identity().clone();
        let file = folder.path().join(IDENTITY);
        for (field, value) in [("format", serde_json::json!(2)), ("extra", serde_json::json!(1))] {
            let mut stored = serde_json::to_value(&identity).unwrap();
            stored[field] = value;
            std::fs::write(&file, stored.to_string()).unwrap();
            let error = open(folder.path()).unwrap_err();
            assert!(matches!(error, StorageError::Malformed { .. }), "{error}");
        }
    }

    #[test]
    fn network_file_systems_are_known_by_their_magic_even_if_it_is_sign_extended() {
        assert_eq!(not_local(0x6969_u64), Some("NFS"));
        assert_eq!(not_local(0xffff_ffff_ff53_4d42_u64), Some("CIFS"));
        assert_eq!(not_local(0x6573_5546_u32), Some("FUSE"));
        assert_eq!(not_local(0xef53_u64), None, "ext4 is a local disk");
        assert_eq!(not_local(0x794c_7630_u64), None, "overlayfs is a local disk");
    }
}
