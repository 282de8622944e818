//! What a disk would still have after the machine lost its power: the *shadow*.
//!
//! A file's content is durable as of its last sync, a folder's names as of the folder's. The shadow keeps both,
//! under a key that no later file is given again. Both the library that watches syncs (`shim.rs`) and the tests
//! that cut the power (`mod.rs`) use this file.

// Each of them uses a part of it.
#![allow(dead_code)]

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Shadow {
    dir: PathBuf,
}

static TEMPORARIES: AtomicU64 = AtomicU64::new(0);

impl Shadow {
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The first `length` bytes of the file are durable now, and nothing else of it.
    pub fn keep_file(&self, file: &mut File, length: u64) -> io::Result<()> {
        let key = key(&file.metadata()?);
        let mut content = Vec::new();
        file.take(length).read_to_end(&mut content)?;
        self.put(&key, &content)
    }

    /// The folder's names are durable now.
    pub fn keep_folder(&self, folder: &Path) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // It may be gone again already.
            let Ok(found) = entry.metadata() else { continue };
            let kind = if found.is_dir() { 'd' } else { 'f' };
            writeln!(names, "{kind} {} {}", key(&found), entry.file_name().to_string_lossy())?;
        }
        self.put(&key(&fs::metadata(folder)?), &names)
    }

    /// Everything below the folder is durable as it is.
    pub fn keep_tree(&self, folder: &Path) -> io::Result<()> {
        self.keep_folder(folder)?;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.keep_tree(&path)?;
            } else if path.is_file() {
                self.keep_file(&mut File::open(&path)?, u64::MAX)?;
            }
        }
        Ok(())
    }

    /// What is durable of the file or folder with this key; nothing, if it was never synced.
    pub fn get(&self, key: &str) -> io::Result<Vec<u8>> {
        match fs::read(self.dir.join(key)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }

    fn put(&self, key: &str, content: &[u8]) -> io::Result<()> {
        let number = TEMPORARIES.fetch_add(1, Ordering::Relaxed);
        let temporary = self.dir.join(format!("{}-{number}.tmp", std::process::id()));
        fs::write(&temporary, content)?;
        fs::rename(&temporary, self.dir.join(key))
    }
}

/// An inode's number is given again to another file, but not with the same moment of birth.
pub fn key(of: &Metadata) -> String {
    let born = of.created().map(|at| at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos());
    format!("{}-{}", of.ino(), born.unwrap_or_default())
}
