//! What kind of file system a directory lies on, and how much room it has.

use std::path::Path;

use rustix::fs::{statfs, statvfs};

use super::error::StorageError;

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

/// File systems whose content is in memory, and gone when the machine is.
const IN_MEMORY: &[(u32, &str)] = &[(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

/// Local disks by the names that people know.
const LOCAL: &[(u32, &str)] = &[
    (0xef53, "ext4 (or ext2, ext3)"),
    (0x5846_5342, "XFS"),
    (0x9123_683e, "Btrfs"),
    (0x2fc1_2fc1, "ZFS"),
    (0xf2f5_2010, "F2FS"),
    (0x794c_7630, "overlayfs"),
];

/// The file system under a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// As people call it, as in `XFS`; its magic number if it has no name here.
    pub kind: String,
    /// False for those on which a lock does not bind every process.
    pub is_local: bool,
    /// True if its content goes with the machine's power.
    pub is_in_memory: bool,
    /// What this process may still write there, in bytes.
    pub free_bytes: u64,
}

impl FileSystem {
    /// That of a directory that exists.
    ///
    /// # Errors
    ///
    /// [`StorageError::Failed`] if the system does not say.
    pub fn of(path: &Path) -> Result<Self, StorageError> {
        let failed = |error| StorageError::failed("asking for the file system of", path, error);
        let magic = magic(statfs(path).map_err(failed)?.f_type.cast_unsigned());
        let room = statvfs(path).map_err(failed)?;
        let name = |known: &[(u32, &'static str)]| {
            known.iter().find(|(number, _)| *number == magic).map(|(_, name)| *name)
        };
        let kind = name(NOT_LOCAL).or(name(IN_MEMORY)).or(name(LOCAL));
        Ok(Self {
            kind: kind.map_or_else(|| format!("a file system of type {magic:#x}"), str::to_owned),
            is_local: name(NOT_LOCAL).is_none(),
            is_in_memory: name(IN_MEMORY).is_some(),
            free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
        })
    }

    /// Refuses one on which the lock would not bind.
    pub(super) fn require_local(path: &Path) -> Result<(), StorageError> {
        match Self::of(path)? {
            Self { is_local: true, .. } => Ok(()),
            Self { kind, .. } => Err(StorageError::NotLocal { path: path.to_owned(), kind }),
        }
    }
}

/// The 32 bits of the magic: some kernels give them sign-extended, and the width differs between targets.
fn magic(given: impl Into<u64>) -> u32 {
    u32::try_from(given.into() & 0xffff_ffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(given: u64) -> Option<&'static str> {
        NOT_LOCAL.iter().find(|(number, _)| *number == magic(given)).map(|(_, name)| *name)
    }

    #[test]
    fn network_file_systems_are_known_by_their_magic_even_if_it_is_sign_extended() {
        assert_eq!(kind(0x6969), Some("NFS"));
        assert_eq!(kind(0xffff_ffff_ff53_4d42), Some("CIFS"));
        assert_eq!(kind(0x6573_5546), Some("FUSE"));
        assert_eq!(kind(0xef53), None, "ext4 is a local disk");
        assert_eq!(kind(0x794c_7630), None, "overlayfs is a local disk");
    }

    #[test]
    fn the_file_system_of_proc_has_a_number_where_it_has_no_name() {
        let proc = FileSystem::of(Path::new("/proc")).unwrap();
        assert_eq!(proc.kind, "a file system of type 0x9fa0");
        assert!(proc.is_local && !proc.is_in_memory, "{proc:?}");
    }
}
