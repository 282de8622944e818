//! A disk that loses its power, hangs, and refuses.
//!
//! The page cache survives SIGKILL, so that a process which never synced anything would lose nothing by it. Here a
//! process runs with a library that watches its syncs (`shim.rs`), and [`Disk::lose_power`] leaves of its files
//! what those syncs had made durable, and no more.

mod shadow;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use self::shadow::{Shadow, key};
use super::node::wait_for;

/// What becomes of the bytes that were written after a file's last sync.
#[derive(Debug, Clone, Copy)]
pub enum Unsynced {
    /// None of them is there.
    Lost,
    /// So many of a thousand are there, and then nothing.
    Cut(u64),
    /// So many of a thousand are there, and zeros for the rest.
    Zeroed(u64),
}

/// The disk below one folder.
pub struct Disk {
    root: PathBuf,
    control: TempDir,
}

impl Disk {
    /// Everything below the folder, as it is now, is durable.
    pub fn below(root: &Path) -> Self {
        let root = root.canonicalize().expect("the folder exists");
        let control = tempfile::tempdir().expect("a folder");
        let disk = Self { root, control };
        fs::create_dir(disk.control.path().join("shadow")).expect("a folder");
        disk.shadow().keep_tree(&disk.root).expect("keeping what is there");
        disk
    }

    /// The environment of a process that uses this disk.
    pub fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("LD_PRELOAD", SHIM.clone()),
            ("RELATCH_DISK_ROOT", self.root.clone()),
            ("RELATCH_DISK_CONTROL", self.control.path().to_owned()),
        ]
    }

    /// The machine loses its power; no process that uses the disk runs any more. What had not been synced is gone.
    pub fn lose_power(&self, unsynced: Unsynced) {
        let mut written = BTreeMap::new();
        files_below(&self.root, &mut written);
        let image = tempfile::tempdir_in(self.control.path()).expect("a folder");
        let root_key = key(&fs::metadata(&self.root).expect("the folder is there"));
        self.restore(&root_key, image.path(), &written, unsynced);
        for entry in fs::read_dir(&self.root).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.expect("clearing the folder");
        }
        copy_below(image.path(), &self.root);
        self.shadow().keep_tree(&self.root).expect("keeping what is left");
    }

    fn restore(&self, folder: &str, to: &Path, written: &BTreeMap<String, PathBuf>, unsynced: Unsynced) {
        let names = self.shadow().get(folder).expect("reading the shadow");
        for line in String::from_utf8(names).expect("names in UTF-8").lines() {
            let [kind, key, name] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let path = to.join(name);
            if kind == "d" {
                fs::create_dir(&path).expect("making a folder");
                self.restore(key, &path, written, unsynced);
            } else {
                let durable = self.shadow().get(key).expect("reading the shadow");
                let now = written.get(key).map(|path| fs::read(path).expect("reading what was written"));
                fs::write(&path, left(durable, now, unsynced)).expect("writing what is left");
            }
        }
    }

    fn shadow(&self) -> Shadow {
        Shadow::at(self.control.path().join("shadow"))
    }

    /// Syncs of files whose path holds `part` hang, until [`Disk::mend`].
    pub fn hang(&self, part: &str) {
        self.say("hang", part);
    }

    /// Syncs of files whose path holds `part` fail, with an error such as `EIO`'s number.
    pub fn fail_syncs(&self, part: &str, error: rustix::io::Errno) {
        self.say("fail-sync", &format!("{} {part}", error.raw_os_error()));
    }

    /// Writes to files whose path holds `part` fail.
    pub fn fail_writes(&self, part: &str, error: rustix::io::Errno) {
        self.say("fail-write", &format!("{} {part}", error.raw_os_error()));
    }

    fn say(&self, list: &str, line: &str) {
        let _earlier = fs::remove_file(self.seen(list));
        // In one step, so that no half line is read.
        let half = self.control.path().join("half");
        fs::write(&half, line).expect("telling the library");
        fs::rename(&half, self.control.path().join(list)).expect("telling the library");
    }

    fn seen(&self, list: &str) -> PathBuf {
        self.control.path().join(format!("{list}.seen"))
    }

    /// Waits until what was last asked of `list` (`hang`, `fail-sync`, `fail-write`) has happened to somebody.
    pub fn has_shown(&self, list: &str) {
        wait_for(list, || if self.seen(list).exists() { Ok(()) } else { Err("not yet".to_owned()) });
    }

    /// All is well with it again.
    pub fn mend(&self) {
        for list in ["hang", "fail-sync", "fail-write"] {
            let _none = fs::remove_file(self.control.path().join(list));
        }
    }

    /// Runs a test of this test binary again, as a child that uses the disk and kills itself.
    pub fn child(&self, test: &str) {
        let mut child = Command::new(std::env::current_exe().expect("this binary"));
        child.args(["--exact", test, "--nocapture"]).envs(self.environment()).env(CHILD, &self.root);
        let output = child.stdin(Stdio::null()).output().expect("running this binary");
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
    }
}

const CHILD: &str = "RELATCH_TEST_DISK_CHILD";

/// In a child of [`Disk::child`]: the folder that it is to use.
pub fn child() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Ends this process as a loss of power does.
pub fn die() -> ! {
    let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    killed.expect("killing this process");
    loop {
        std::thread::park();
    }
}

/// What is left of a file: of what was appended since its last sync a part may have reached the disk.
fn left(durable: Vec<u8>, written: Option<Vec<u8>>, unsynced: Unsynced) -> Vec<u8> {
    let Some(written) = written.filter(|written| written.starts_with(&durable)) else { return durable };
    let later = &written[durable.len()..];
    let there = |thousandths: u64| &later[..later.len() * thousandths as usize / 1000];
    match unsynced {
        Unsynced::Lost => durable,
        Unsynced::Cut(thousandths) => [&durable[..], there(thousandths)].concat(),
        Unsynced::Zeroed(thousandths) => {
            let mut all = [&durable[..], there(thousandths)].concat();
            all.resize(written.len(), 0);
            all
        }
    }
}

fn files_below(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).expect("reading a folder") {
        let path = entry.expect("an entry").path();
        let metadata = path.symlink_metadata().expect("looking at a file");
        if metadata.is_dir() {
            files_below(&path, found);
        } else if metadata.is_file() {
            found.insert(key(&metadata), path);
        }
    }
}

fn copy_below(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("reading a folder") {
        let path = entry.expect("an entry").path();
        let there = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            fs::create_dir(&there).expect("making a folder");
            copy_below(&path, &there);
        } else {
            fs::copy(&path, &there).expect("copying a file");
        }
    }
}

/// The library, compiled once for each process that needs it.
static SHIM: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/disk/shim.rs");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("disk-{}.so", std::process::id()));
    let compiled = Command::new("rustc")
        .args(["--edition", "2024", "--crate-type", "cdylib", "-O", "-C", "panic=abort", "-o"])
        .args([&library, &source])
        .output()
        .expect("running rustc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // Loaded by path until the tests have ended; the folder is cargo's, for files such as this.
    File::open(&library).expect("the library is there");
    library
});
