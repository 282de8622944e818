//! Whether a stored form says the same once it was read and written again.

use serde_json::Value;

/// Fields that are left out while they have these values.
const LEFT_OUT: &[(&str, &str)] = &[
    ("caller", "\"anonymous\""),
    ("diagnosis", "\"callers\""),
    ("rules_level", "1"),
    ("starts", "[]"),
    // Limits of later rules, as they are at first.
    ("request_memory_ms", "86400000"),
    ("refusals_per_caller", "10000"),
    ("attaches_per_caller", "10000"),
    ("ended_runs", "100000"),
    ("ended_runs_ms", "7776000000"),
];

/// Holds what was written to what was read: nothing of that may be lost, or say something else now.
pub fn nothing_is_lost(read: &[u8], written: &[u8]) {
    let value = |text: &[u8]| -> Value {
        serde_json::from_slice(text)
            .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(text)))
    };
    if let Some(lost) = lost("", &value(read), &value(written)) {
        let (read, written) = (String::from_utf8_lossy(read), String::from_utf8_lossy(written));
        panic!("{lost} is lost:\nread    {read}\nwritten {written}");
    }
}

fn lost(at: &str, read: &Value, written: &Value) -> Option<String> {
    let here = || Some(format!("{at}: {read}"));
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => read.iter().find_map(|(key, value)| {
            let at = format!("{at}/{key}");
            match written.get(key) {
                Some(kept) => lost(&at, value, kept),
                None if value.is_null() => None,
                None if LEFT_OUT.contains(&(key.as_str(), value.to_string().as_str())) => None,
                None => Some(format!("{at}: {value}")),
            }
        }),
        // `{"blank":null}` for `"blank"`.
        (Value::Object(read), Value::String(word)) if read.len() == 1 => {
            read.get(word).is_none_or(|value| !value.is_null()).then(here).flatten()
        }
        // A structure by the order of its fields: a form that nothing writes, and every field has its place in.
        (Value::Array(read), Value::Object(written)) if read.len() >= written.len() => None,
        // A set.
        (Value::Array(read), Value::Array(written)) if read.iter().all(Value::is_u64) => {
            read.iter().any(|value| !written.contains(value)).then(here).flatten()
        }
        (Value::Array(read), Value::Array(written)) if read.len() == written.len() => {
            let pairs = read.iter().zip(written).enumerate();
            pairs
                .into_iter()
                .find_map(|(place, (read, written))| lost(&format!("{at}/{place}"), read, written))
        }
        _ => (read != written).then(here).flatten(),
    }
}
