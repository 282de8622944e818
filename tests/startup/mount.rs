//! Small file systems of a test's own. They need root, or a sudo that asks for no password: without either these
//! tests fail, they are not skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A tmpfs. It is taken down when it is dropped, also if the test has failed.
pub struct Mount {
    dir: TempDir,
}

impl Mount {
    /// One of so many KiB.
    pub fn of_kib(kib: u64) -> Self {
        let dir = tempfile::Builder::new().prefix("relatch-mount-").tempdir().expect("making a mount point");
        let size = format!("size={kib}k,mode=0777");
        mount(&["-t", "tmpfs", "-o", &size, "relatch-test"], dir.path());
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// From now on nothing can be written.
    pub fn make_read_only(&self) {
        mount(&["-o", "remount,ro"], self.path());
    }

    /// Writes until there is no room for a further page, and gives the file that took it all.
    pub fn fill(&self, name: &str) -> PathBuf {
        self.fill_but(name, 0)
    }

    /// Writes until only so many KiB are left.
    pub fn fill_but(&self, name: &str, left_kib: u64) -> PathBuf {
        let path = self.path().join(name);
        let mut file = std::fs::File::create(&path).expect("making the file that fills it");
        let page = [0xaa_u8; 4096];
        loop {
            let room = rustix::fs::statvfs(self.path()).expect("asking for room");
            if room.f_bavail * room.f_frsize <= left_kib * 1024 {
                return path;
            }
            std::io::Write::write_all(&mut file, &page).expect("filling what is said to be free");
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a process that is just ending may still be in there.
        let ended = as_root("umount").arg("--lazy").arg(self.path()).status();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!("{} could not be unmounted", self.path().display());
        }
    }
}

/// A command that only root may run.
pub fn as_root(command: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(command);
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["--non-interactive", command]);
    sudo
}

fn mount(args: &[&str], at: &Path) {
    let output = as_root("mount").args(args).arg(at).output().expect("running mount");
    assert!(
        output.status.success(),
        "mounting {args:?} at {}: {}\nThese tests mount file systems of their own, and need root for it: run them as \
         root, or where sudo asks for no password",
        at.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}
