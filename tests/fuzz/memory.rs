//! What an engine's answers take, however they are made: of a byte that is read a small multiple, and of a long answer
//! no more is read than a bound. The models of a client library took up to 250 bytes of each byte, and so gibibytes.
//!
//! The look is made by a process of its own, which tells the most memory that it had.

use std::fs;
use std::io::{BufWriter, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use futures::StreamExt as _;
use relatch::docker::{Endpoint, Engine, EngineLimits, ListFilter};

/// In the child: what to look at, and where.
const LOOK: &str = "FUZZ_LOOK";
const SOCKET: &str = "FUZZ_SOCKET";

const MIB: usize = 1 << 20;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const HEAD: &str = "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nServer: Docker/20.10.24 (linux)\r\n";

/// A way to answer: what comes first, what is repeated, by its number, and what comes last.
#[derive(Clone)]
struct Shape {
    look: &'static str,
    name: &'static str,
    begin: String,
    repeat: fn(usize) -> String,
    end: &'static str,
}

fn shapes() -> Vec<Shape> {
    let field: fn(usize) -> String = |n| format!("\"{n:x}\":\"\",");
    let nothing: fn(usize) -> String = |_| "{},".to_owned();
    let empty: fn(usize) -> String = |_| "\"\",".to_owned();
    let entry = format!("[{{\"Id\":\"{ID}\",");
    let shown = format!("{{\"Id\":\"{ID}\",\"State\":{{}},\"Config\":{{");
    let event = format!("{{\"Action\":\"die\",\"Actor\":{{\"ID\":\"{ID}\",\"Attributes\":{{");
    let shapes = [
        (
            "list",
            "of containers",
            "[".to_owned(),
            (|_| format!("{{\"Id\":\"{ID}\"}},")) as fn(usize) -> String,
            "0]",
        ),
        ("list", "of nothing", "[".to_owned(), nothing, "{}]"),
        ("list", "of names", format!("{entry}\"Names\":["), empty, "\"a\"]}]"),
        ("list", "of labels", format!("{entry}\"Labels\":{{"), field, "\"\":\"\"}}]"),
        ("list", "of ports", format!("{entry}\"Ports\":["), nothing, "{}]}]"),
        ("inspect", "of mounts", format!("{shown}}},\"Mounts\":["), nothing, "{}]}"),
        ("inspect", "of labels", format!("{shown}\"Labels\":{{"), field, "\"\":\"\"}}}"),
        ("inspect", "of variables", format!("{shown}\"Env\":["), empty, "\"\"]}}"),
        ("inspect", "of a test", format!("{shown}\"Healthcheck\":{{\"Test\":["), empty, "\"\"]}}}"),
        ("identify", "of fields", "{\"ID\":\"E\",".to_owned(), field, "\"\":\"\"}"),
        ("identify", "of warnings", "{\"ID\":\"E\",\"Warnings\":[".to_owned(), empty, "\"\"]}"),
        ("events", "of attributes", event, field, "\"\":\"\"}}}\n"),
        ("events", "of lines", String::new(), |_| format!("{{\"Actor\":{{\"ID\":\"{ID}\"}}}}\n"), "\n"),
    ];
    shapes.map(|(look, name, begin, repeat, end)| Shape { look, name, begin, repeat, end }).into()
}

/// The longest answer that is read, nearly; and what a look may take.
fn bounds(look: &str) -> (usize, usize) {
    match look {
        "list" => (15 * MIB, 240 * MIB),
        "events" => (15 * MIB, 50 * MIB),
        _ => (15 * MIB / 8, 50 * MIB),
    }
}

/// Both as long as an answer may be, and far longer.
#[test]
fn an_answer_takes_a_small_multiple_of_what_is_read_however_it_is_made() {
    if let (Ok(look), Some(socket)) = (std::env::var(LOOK), std::env::var_os(SOCKET)) {
        return look_and_tell(&look, Path::new(&socket));
    }
    let mut failed = Vec::new();
    for shape in shapes() {
        let (longest, most) = bounds(shape.look);
        for length in [longest, 6 * most] {
            let (told, taken) = looked(&shape, length);
            let line = format!(
                "{} {}, {} MiB: took {} MiB of {} at most; {told}",
                shape.look,
                shape.name,
                length / MIB,
                taken / MIB,
                most / MIB
            );
            println!("{line}");
            if taken > most {
                failed.push(line);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// What the child said, and how many bytes it took for an answer of that length.
fn looked(shape: &Shape, length: usize) -> (String, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let mut child = Command::new(std::env::current_exe().expect("this binary"));
    child.args(["--exact", "memory::an_answer_takes_a_small_multiple_of_what_is_read_however_it_is_made"]);
    child.arg("--nocapture").env(LOOK, shape.look).env(SOCKET, &socket).stdin(Stdio::null());
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("running this binary");
    let served = shape.clone();
    // Left behind where the child ends before it asks, and so is told of by what the child says.
    std::thread::spawn(move || serve(listener.accept().expect("the child's connection").0, &served, length));
    let output = child.wait_with_output().expect("the child's end");
    let text = String::from_utf8_lossy(&output.stdout);
    let told = text.lines().find_map(|line| line.strip_prefix("took ")?.split_once(' '));
    let (taken, told) = told.unwrap_or_else(|| panic!("{} {}: {output:?}", shape.look, shape.name));
    (told.to_owned(), taken.parse().expect("a number of bytes"))
}

/// Answers what comes first as an engine does, and then in that shape until it is that long, or nobody reads any more.
fn serve(mut stream: UnixStream, shape: &Shape, length: usize) {
    while let Some(path) = next_path(&mut stream) {
        let body = match path.as_str() {
            "/_ping" => "OK",
            "/v1.41/info" if shape.look != "identify" => "{\"ID\":\"E\"}",
            _ => {
                // It may hang up at any byte: that is its right.
                let _ended = stream.write_all(format!("{HEAD}\r\n").as_bytes());
                let _ended = repeat(&stream, shape, length);
                return;
            }
        };
        let reply = format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(reply.as_bytes()).expect("the child reads what it asked for");
    }
}

fn repeat(stream: &UnixStream, shape: &Shape, length: usize) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(MIB, stream);
    out.write_all(shape.begin.as_bytes())?;
    let mut written = shape.begin.len() + shape.end.len();
    for number in 0.. {
        let piece = (shape.repeat)(number);
        written += piece.len();
        if written > length {
            break;
        }
        out.write_all(piece.as_bytes())?;
    }
    out.write_all(shape.end.as_bytes())?;
    out.flush()
}

/// The path of the next request; none at the end.
fn next_path(stream: &mut UnixStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        head.extend(byte);
    }
    String::from_utf8_lossy(&head).split(' ').nth(1).map(ToOwned::to_owned)
}

/// The child: looks once, and tells how much more memory it had in the meantime, in bytes, and what it found.
fn look_and_tell(look: &str, socket: &Path) {
    let endpoint = Endpoint::parse(socket.to_str().expect("a path in UTF-8")).expect("an endpoint");
    // Far beyond what a look takes: nothing here waits for time.
    let limits = EngineLimits { connect_ms: 600_000, inspect_ms: 600_000, list_ms: 600_000 };
    let engine = Engine::new(endpoint, limits);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let before = most_resident();
    let found = runtime.block_on(async {
        match look {
            "list" => engine.list(&ListFilter::default()).await.map(|listed| listed.len()),
            "inspect" => engine.inspect(ID).await.map(|seen| seen.labels.len()),
            "identify" => engine.identify().await.map(|found| found.engine_id.as_str().len()),
            "events" => match engine.events().await {
                Ok(hints) => Ok(hints.count().await),
                Err(error) => Err(error),
            },
            other => panic!("there is no look {other:?}"),
        }
    });
    let taken = most_resident() - before;
    let told = found.map_or_else(|error| error.to_string(), |count| format!("found {count}"));
    println!("\ntook {taken} {told}");
}

/// The most memory that this process had so far, in bytes.
fn most_resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("this process's status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the most so far");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number of KiB") * 1024
}
