//! Ids as they are typed and shown: relatch mints each of 32 lower-case hex digits.

use std::str::FromStr;

/// The digits of an id; the fewest that name one; those that lists show.
const WHOLE: usize = 32;
const FEWEST: usize = 8;
const SHOWN: usize = 12;

/// An id, or its beginning: the one that begins so is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdRef(String);

impl IdRef {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn is_whole(&self) -> bool {
        self.0.len() == WHOLE
    }
}

impl FromStr for IdRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if is_hex(text) && (FEWEST..=WHOLE).contains(&text.len()) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "{text:?} is no id: write its {WHOLE} lower-case hex digits, or the first {FEWEST} or more"
        ))
    }
}

/// Reads an id that the caller gives: all of it.
pub(super) fn parse_whole(text: &str) -> Result<String, String> {
    if is_hex(text) && text.len() == WHOLE {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is no id: write {WHOLE} lower-case hex digits, as `openssl rand -hex 16` makes them"
    ))
}

/// As much of an id as lists show.
pub(super) fn short(id: &str) -> &str {
    id.get(..SHOWN).unwrap_or(id)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn an_id_may_be_named_by_its_beginning() {
        for text in [ID, &ID[..8], short(ID)] {
            assert_eq!(text.parse::<IdRef>().unwrap().as_str(), text);
        }
        for text in ["", &ID[..7], "0123456g", "0123456789AB", &format!("{ID}0")] {
            assert!(text.parse::<IdRef>().unwrap_err().contains("first 8"), "{text:?} was taken");
        }
    }

    #[test]
    fn an_id_that_is_given_is_whole() {
        assert_eq!(parse_whole(ID).unwrap(), ID);
        assert!(parse_whole(&ID[..31]).is_err() && parse_whole(&"X".repeat(32)).is_err());
    }

    #[test]
    fn a_list_shows_twelve_digits() {
        assert_eq!(short(ID), "0123456789ab");
        assert_eq!(short(""), "");
    }
}
