//! A proxy before a Docker Engine's socket: it counts the restart requests that pass, and loses replies.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

/// What becomes of the reply to a restart request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRestart {
    /// It is passed on.
    Pass,
    /// The client's connection is cut once the request was passed on; the engine is heard out.
    CutReply,
    /// Nothing is passed back, and the client's connection stays.
    Swallow,
}

/// A proxy on a unix socket. It ends with the test process.
pub struct Proxy {
    endpoint: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    engine: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    on_restart: OnRestart,
    /// The request lines of the restarts that were passed on whole.
    posts: Vec<String>,
}

impl Proxy {
    pub fn start(folder: &Path, engine: &Path, on_restart: OnRestart) -> Self {
        let endpoint = folder.join("proxy.sock");
        let listener = UnixListener::bind(&endpoint).expect("listening as a proxy");
        let state = Mutex::new(State { on_restart, posts: Vec::new() });
        let shared = Arc::new(Shared { engine: engine.to_owned(), state, changed: Condvar::new() });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.carry(client));
            }
        });
        Self { endpoint, shared }
    }

    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.endpoint.display())
    }

    pub fn on_restart(&self, what: OnRestart) {
        self.shared.state.lock().unwrap().on_restart = what;
    }

    /// The restart requests that were passed on to the engine for a container.
    pub fn posts(&self, container_id: &str) -> usize {
        let state = self.shared.state.lock().unwrap();
        state.posts.iter().filter(|line| line.contains(container_id)).count()
    }

    /// Waits until as many were passed on.
    pub fn wait_for_posts(&self, container_id: &str, count: usize) {
        let mut state = self.shared.state.lock().unwrap();
        while state.posts.iter().filter(|line| line.contains(container_id)).count() < count {
            state = self.shared.changed.wait(state).unwrap();
        }
    }
}

impl Shared {
    /// One client's connection: requests are read head by head, so that a restart is known when it is whole.
    fn carry(&self, mut client: UnixStream) {
        let Ok(mut engine) = UnixStream::connect(&self.engine) else { return };
        let (mut answers, mut back) = (engine.try_clone().unwrap(), client.try_clone().unwrap());
        let fate = Arc::new(Mutex::new(OnRestart::Pass));
        let fate_of_answers = Arc::clone(&fate);
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            while let Ok(count @ 1..) = answers.read(&mut buffer) {
                if *fate_of_answers.lock().unwrap() == OnRestart::Pass
                    && back.write_all(&buffer[..count]).is_err()
                {
                    break;
                }
            }
            if *fate_of_answers.lock().unwrap() != OnRestart::Swallow {
                let _gone = back.shutdown(Shutdown::Write);
            }
        });
        let mut head = Vec::new();
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            head.extend_from_slice(&buffer[..count]);
            if let Some(line) = whole_restart(&head) {
                let on_restart = self.state.lock().unwrap().on_restart;
                *fate.lock().unwrap() = on_restart;
                if engine.write_all(&buffer[..count]).is_err() {
                    break;
                }
                self.state.lock().unwrap().posts.push(line);
                self.changed.notify_all();
                head.clear();
                if on_restart == OnRestart::CutReply {
                    let _gone = client.shutdown(Shutdown::Both);
                    break;
                }
            } else if engine.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        // A client that went away without its answer: the engine is heard out all the same.
        if *fate.lock().unwrap() == OnRestart::Pass {
            let _gone = engine.shutdown(Shutdown::Write);
        }
        let _heard = answering.join();
    }
}

/// The request line, if the bytes hold a whole restart request.
fn whole_restart(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let begin = text.rfind("POST ")?;
    let request = &text[begin..];
    request.contains("\r\n\r\n").then(|| request.lines().next().unwrap_or_default().to_owned())
}
