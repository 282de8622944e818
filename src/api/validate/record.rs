//! Texts that people write for the record.

/// The longest reason, in characters.
const REASON_CHARS: usize = 1_000;

/// The longest name of an operator, in characters.
const OPERATOR_CHARS: usize = 128;

/// The name of an operator, for the record.
pub(super) fn operator(text: &str) -> Result<String, String> {
    let chars = text.chars().count();
    if text.trim().is_empty() {
        return Err("it is required: name who decides this, for the record".into());
    }
    if chars > OPERATOR_CHARS {
        return Err(format!("it has {chars} characters, and at most {OPERATOR_CHARS} are kept: shorten it"));
    }
    one_line(text)
}

/// Why, for the record.
pub(super) fn reason(text: &str) -> Result<String, String> {
    let chars = text.chars().count();
    if text.trim().is_empty() {
        return Err("it is required: say in a few words why".into());
    }
    if chars > REASON_CHARS {
        return Err(format!("it has {chars} characters, and at most {REASON_CHARS} are kept: shorten it"));
    }
    one_line(text)
}

/// A text for the record: what breaks or steers lines has no place there.
fn one_line(text: &str) -> Result<String, String> {
    // Unicode's own line and paragraph separators are none of its control characters.
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err("it is one line without control characters: take out line breaks and tabs".into());
    }
    Ok(text.to_owned())
}
