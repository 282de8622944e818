//! A panic anywhere ends the process: a worker that died alone would leave a leader that leads on without
//! it, and only a whole restart replays what is open.

/// From now on a panic in any thread is printed, and then aborts the process.
pub(super) fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        tracing::error!("a part of this process panicked: it ends, and a restart replays what is open");
        std::process::abort();
    }));
}
