//! Which version of the Engine API a look is made in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A version of the Engine API, such as 1.41.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiVersion {
    /// The part before the point.
    pub major: u32,
    /// The part after it.
    pub minor: u32,
}

impl ApiVersion {
    /// The oldest that relatch speaks: Docker 19.03, and the oldest that current engines still answer.
    pub const OLDEST: Self = Self { major: 1, minor: 40 };
    /// The newest whose replies relatch was written against. A newer engine is asked in this version.
    pub const NEWEST: Self = Self { major: 1, minor: 53 };

    /// Reads `1.41`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The version to ask in, of an engine that speaks up to `self`; none if that is too old.
    pub(super) fn negotiated(self) -> Option<Self> {
        (self >= Self::OLDEST).then(|| self.min(Self::NEWEST))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_and_not_by_text() {
        assert!(ApiVersion::parse("1.9").unwrap() < ApiVersion::OLDEST);
        assert_eq!(ApiVersion::parse("1.41").map(|v| v.to_string()).as_deref(), Some("1.41"));
        for bad in ["", "1", "one.two", "1.41.2", "-1.4"] {
            assert_eq!(ApiVersion::parse(bad), None, "{bad:?} was read");
        }
    }

    #[test]
    fn an_engine_is_asked_in_the_newest_version_that_both_speak() {
        let version = |minor| ApiVersion { major: 1, minor };
        assert_eq!(version(39).negotiated(), None);
        assert_eq!(version(41).negotiated(), Some(version(41)));
        assert_eq!(version(99).negotiated(), Some(ApiVersion::NEWEST));
    }
}
