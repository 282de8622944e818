//! Named points at which a test stops, slows or kills the process.
//!
//! Without the feature `failpoints` a point is nothing at all. With it, `FAILPOINTS=name=action` in the
//! environment (read by `fail::FailScenario::setup`) or `fail::cfg(name, action)` says what happens there:
//!
//! * `return(kill)` ends the process at once by SIGKILL: no destructor runs and nothing is flushed, as if
//!   the machine had lost the process at exactly this step;
//! * `return(hold PATH)` creates `PATH.reached` (its ending replaced), and waits there until `PATH` exists;
//! * `return(lose)`, at points that ask [`loses`], loses what was about to be done;
//! * `return(20)`, at points that ask [`number`], is that number;
//! * `pause`, `sleep(ms)`, `panic`, `print`, `delay(ms)` and `yield` do what the `fail` crate says.

/// Passes the point `name`.
///
/// # Panics
///
/// With the feature `failpoints`: if the action is `panic`, or a `return` that is none of the above.
#[cfg(feature = "failpoints")]
pub fn reach(name: &'static str) {
    fail::fail_point!(name, |action| match action.as_deref() {
        Some("kill") => kill_self(name),
        Some(action) if action.starts_with("hold ") => hold(name, action["hold ".len()..].as_ref()),
        other => panic!("failpoint {name} does not know return({other:?}): write return(kill)"),
    });
}

/// Passes the point `name`: nothing, without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn reach(_name: &'static str) {}

/// Passes the point `name`; true if what follows is to be lost.
#[cfg(feature = "failpoints")]
pub fn loses(name: &'static str) -> bool {
    fail::fail_point!(name, |action| match action.as_deref() {
        Some("lose") => true,
        Some(action) if action.starts_with("hold ") => {
            hold(name, action["hold ".len()..].as_ref());
            false
        }
        other => panic!("failpoint {name} does not know return({other:?}): write return(lose)"),
    });
    false
}

/// Passes the point `name`: nothing is lost, without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn loses(_name: &'static str) -> bool {
    false
}

/// The number that the point `name` was given: `return(20)`.
#[cfg(feature = "failpoints")]
pub fn number(name: &'static str) -> Option<u64> {
    fail::fail_point!(name, |given| match given.as_deref().map(str::parse) {
        Some(Ok(number)) => Some(number),
        _ => panic!("failpoint {name} needs a number: write return(20)"),
    });
    None
}

/// None, without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn number(_name: &'static str) -> Option<u64> {
    None
}

#[cfg(feature = "failpoints")]
fn kill_self(name: &str) {
    use rustix::process::{Signal, getpid, kill_process};

    if let Err(error) = kill_process(getpid(), Signal::KILL) {
        panic!("failpoint {name} could not kill its own process: {error}");
    }
    // The signal is on its way; not one further instruction of this thread may count.
    loop {
        std::thread::park();
    }
}

/// Blocks this thread until the file is there. A test takes its time, however busy the machine is.
#[cfg(feature = "failpoints")]
fn hold(name: &str, path: &std::path::Path) {
    if let Err(error) = std::fs::File::create(path.with_extension("reached")) {
        panic!("failpoint {name} could not say that it was reached: {error}");
    }
    // The runtime moves the other tasks of this thread elsewhere.
    tokio::task::block_in_place(|| {
        while !path.exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    });
}

#[cfg(all(test, feature = "failpoints"))]
mod tests {
    use super::*;

    /// Runs this test binary again as a child that takes the branch below, and looks at how it died.
    #[test]
    fn the_action_return_kill_ends_the_process_at_that_very_point() {
        use std::os::unix::process::ExitStatusExt as _;

        const CHILD: &str = "RELATCH_TEST_FAILPOINT_CHILD";
        if std::env::var_os(CHILD).is_some() {
            fail::cfg("test_kill", "return(kill)").unwrap();
            reach("test_kill");
            println!("SURVIVED");
            return;
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "env::failpoint::tests::the_action_return_kill_ends_the_process_at_that_very_point",
            ])
            .args(["--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(9), "{child:?}");
        assert!(!String::from_utf8_lossy(&child.stdout).contains("SURVIVED"), "{child:?}");
    }
}
