//! A library that is loaded before libc (`LD_PRELOAD`) and watches what a process syncs below one folder.
//!
//! It keeps the shadow (`shadow.rs`) true: when a sync has returned, what it made durable is in the shadow. And it
//! makes the disk misbehave, as files in its control folder say:
//!
//! * `hang` holds parts of paths, one in each line: their syncs wait for as long as the file is there;
//! * `fail-sync` and `fail-write`: lines with an error number and a part of a path: these calls fail.
//!
//! A file `PATTERN.seen` beside them says that one of their lines took effect. `mod.rs` compiles this with `rustc`
//! alone, so it declares by hand the two things of libc that it needs.

#[path = "shadow.rs"]
mod shadow;

use std::ffi::{c_int, c_long, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use shadow::Shadow;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn __errno_location() -> *mut c_int;
}

#[cfg(target_arch = "x86_64")]
const CALLS: Calls = Calls { write: 1, pwrite64: 18, fsync: 74, fdatasync: 75 };
#[cfg(target_arch = "aarch64")]
const CALLS: Calls = Calls { write: 64, pwrite64: 68, fsync: 82, fdatasync: 83 };

/// Linux's own numbers of its calls.
struct Calls {
    write: c_long,
    pwrite64: c_long,
    fsync: c_long,
    fdatasync: c_long,
}

struct Watched {
    root: PathBuf,
    control: PathBuf,
}

fn watched() -> Option<&'static Watched> {
    static WATCHED: OnceLock<Option<Watched>> = OnceLock::new();
    let read = || {
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Some(Watched { root: path("RELATCH_DISK_ROOT")?, control: path("RELATCH_DISK_CONTROL")? })
    };
    WATCHED.get_or_init(read).as_ref()
}

impl Watched {
    /// The file's path, if it is one of those that are watched.
    fn path(&self, fd: c_int) -> Option<PathBuf> {
        let path = fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
        path.starts_with(&self.root).then_some(path)
    }

    /// The error that a line of `list` asks for.
    fn failure(&self, list: &str, path: &Path) -> Option<c_int> {
        let lines = fs::read_to_string(self.control.join(list)).ok()?;
        let line = lines.lines().find_map(|line| {
            let (error, part) = line.split_once(' ')?;
            path.to_str()?.contains(part).then(|| error.parse().ok())?
        });
        if line.is_some() {
            self.seen(list);
        }
        line
    }

    fn wait_while_it_hangs(&self, path: &Path) {
        let hangs = || {
            let parts = fs::read_to_string(self.control.join("hang")).ok()?;
            parts.lines().any(|part| path.to_str().is_some_and(|path| path.contains(part))).then_some(())
        };
        while hangs().is_some() {
            self.seen("hang");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn seen(&self, list: &str) {
        fs::write(self.control.join(format!("{list}.seen")), "").expect("saying what was seen");
    }

    /// Does the sync, and keeps what it made durable. What is written while it runs may or may not be: it is not.
    fn sync(&self, path: &Path, sync: impl FnOnce() -> c_int) -> c_int {
        static ONE: Mutex<()> = Mutex::new(());
        self.wait_while_it_hangs(path);
        if let Some(error) = self.failure("fail-sync", path) {
            return fail(error);
        }
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // A file that has lost its name meanwhile is of no further use to anybody.
        let Ok(before) = fs::metadata(path) else { return sync() };
        let done = sync();
        if done == 0 {
            let shadow = Shadow::at(self.control.join("shadow"));
            let kept = if before.is_dir() {
                shadow.keep_folder(path)
            } else {
                fs::File::open(path).and_then(|mut file| shadow.keep_file(&mut file, before.len()))
            };
            kept.expect("keeping the shadow");
        }
        done
    }
}

fn fail(error: c_int) -> c_int {
    // SAFETY: libc gives each thread its own place for it.
    unsafe { *__errno_location() = error };
    -1
}

#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    // SAFETY: the call takes one number.
    let sync = || unsafe { syscall(CALLS.fsync, fd) as c_int };
    match watched().and_then(|watched| Some((watched, watched.path(fd)?))) {
        Some((watched, path)) => watched.sync(&path, sync),
        None => sync(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    // SAFETY: the call takes one number.
    let sync = || unsafe { syscall(CALLS.fdatasync, fd) as c_int };
    match watched().and_then(|watched| Some((watched, watched.path(fd)?))) {
        Some((watched, path)) => watched.sync(&path, sync),
        None => sync(),
    }
}

/// The error with which a write to this file is to fail.
fn refused(fd: c_int) -> Option<c_int> {
    let watched = watched()?;
    // Cheap while nothing is to fail.
    watched.control.join("fail-write").exists().then_some(())?;
    watched.failure("fail-write", &watched.path(fd)?)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, from: *const c_void, length: usize) -> isize {
    match refused(fd) {
        Some(error) => fail(error) as isize,
        // SAFETY: what the caller vouches for is passed on as it came.
        None => unsafe { syscall(CALLS.write, fd, from, length) as isize },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, length: usize, at: i64) -> isize {
    match refused(fd) {
        Some(error) => fail(error) as isize,
        // SAFETY: what the caller vouches for is passed on as it came.
        None => unsafe { syscall(CALLS.pwrite64, fd, from, length, at) as isize },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(fd: c_int, from: *const c_void, length: usize, at: i64) -> isize {
    // SAFETY: the same call under its older name.
    unsafe { pwrite64(fd, from, length, at) }
}
