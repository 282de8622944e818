//! Lengths of time: what people type, and what labels say.

use std::collections::BTreeMap;
use std::time::Duration;

use relatch::cli::fuzzing as cli;
use relatch::coordinator::fuzzing::grace;
use relatch::ledger::{Limits, ReasonCode};
use relatch::model::GraceSource;

/// What is read is the length that was written; what is not is refused with its rule, in a bounded text.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match cli::duration(&text) {
        Ok(length) => {
            assert_eq!(Some(length), reckoned(&text), "{text:?}");
            shown(length);
            let whole = length.subsec_nanos() == 0;
            let seconds = u32::try_from(length.as_secs()).ok().filter(|_| whole);
            assert_eq!(cli::grace_s(&text).ok(), seconds, "{text:?}");
        }
        Err(error) => assert!(cli::grace_s(&text) == Err(error.clone()) && !error.is_empty(), "{error}"),
    }
    for key in ["relatch.grace", "autoheal.stop.timeout"] {
        label(key, &text);
    }
    if let Some(number) = data.first_chunk::<8>() {
        let number = i64::from_le_bytes(*number);
        stop_timeout(number);
        shown(Duration::from_millis(number.unsigned_abs()));
    }
}

fn label(key: &str, text: &str) {
    let labels = BTreeMap::from([(key.to_owned(), text.to_owned())]);
    let digits = text.strip_suffix('s').unwrap_or(text);
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    let expected = digits.parse::<u32>().ok().filter(|_| plain);
    match grace(&labels, Some(3), &Limits::default()) {
        Ok(found) => {
            assert_eq!((Some(found.seconds), found.source), (expected, GraceSource::Label), "{text:?}");
        }
        Err((code, detail)) => {
            assert_eq!((code, expected), (ReasonCode::LabelInvalid, None), "{text:?}");
            assert!(detail.len() < 2_000 && !detail.contains(char::is_control), "{detail:?}");
        }
    }
}

fn stop_timeout(seconds: i64) {
    match grace(&BTreeMap::new(), Some(seconds), &Limits::default()) {
        Ok(found) => assert_eq!(i64::from(found.seconds), seconds),
        Err((code, _)) => {
            assert!(code == ReasonCode::GraceAboveLimit && u32::try_from(seconds).is_err(), "{seconds}");
        }
    }
}

/// What is shown says no more than there is, and all of it but what two units leave out.
fn shown(length: Duration) {
    let text = cli::show(length);
    if text.contains('.') {
        return;
    }
    let read = cli::duration(&text).unwrap_or_else(|error| panic!("{length:?}: {error}"));
    let left_out = if length < Duration::from_secs(60) {
        Duration::ZERO
    } else if length < Duration::from_secs(3_600) {
        Duration::from_secs(1)
    } else {
        Duration::from_secs(60)
    };
    assert!(read <= length && length - read <= left_out, "{length:?} is shown as {text}");
}

/// The same sum, by another way through the text.
fn reckoned(text: &str) -> Option<Duration> {
    let mut total_ms = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let ends = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(ends);
        let unit_ms = match unit {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "ms" => 1,
            _ => return None,
        };
        total_ms = total_ms.checked_add(number.parse::<u64>().ok()?.checked_mul(unit_ms)?)?;
        rest = after;
    }
    Some(Duration::from_millis(total_ms))
}
