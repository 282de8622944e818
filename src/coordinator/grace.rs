//! Where a restart's grace comes from: the request, else a label, else the container, else the cluster.

use std::collections::BTreeMap;

use crate::ledger::{Limits, ReasonCode};
use crate::model::{Grace, GraceSource, excerpt};

const LABEL: &str = "relatch.grace";
const AUTOHEAL_LABEL: &str = "autoheal.stop.timeout";

/// The grace, or the reason why there is none.
pub(super) fn grace(
    asked_s: Option<u32>,
    labels: &BTreeMap<String, String>,
    stop_timeout_s: Option<i64>,
    limits: &Limits,
) -> Result<Grace, (ReasonCode, String)> {
    if let Some(seconds) = asked_s {
        return Ok(Grace { seconds, source: GraceSource::Request });
    }
    for key in [LABEL, AUTOHEAL_LABEL] {
        if let Some(text) = labels.get(key) {
            let seconds = whole_seconds(text).ok_or_else(|| {
                let rule = "write whole seconds, as in 10s or 10";
                (ReasonCode::LabelInvalid, format!("label {key}={}: {rule}", excerpt(text)))
            })?;
            return Ok(Grace { seconds, source: GraceSource::Label });
        }
    }
    if let Some(seconds) = stop_timeout_s {
        let seconds = u32::try_from(seconds).map_err(|_| {
            (ReasonCode::GraceAboveLimit, format!("the container's StopTimeout is {seconds}: without end"))
        })?;
        return Ok(Grace { seconds, source: GraceSource::StopTimeout });
    }
    Ok(Grace { seconds: limits.grace_default_s, source: GraceSource::Policy })
}

fn whole_seconds(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('s').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(
        asked: Option<u32>,
        labels: &[(&str, &str)],
        stop: Option<i64>,
    ) -> Result<(u32, GraceSource), ReasonCode> {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        grace(asked, &labels, stop, &Limits::default())
            .map(|g| (g.seconds, g.source))
            .map_err(|(code, _)| code)
    }

    #[test]
    fn the_request_goes_before_the_label_before_the_container_before_the_default() {
        let labels = [(LABEL, "7s"), (AUTOHEAL_LABEL, "8")];
        assert_eq!(from(Some(3), &labels, Some(9)), Ok((3, GraceSource::Request)));
        assert_eq!(from(None, &labels, Some(9)), Ok((7, GraceSource::Label)));
        assert_eq!(from(None, &labels[1..], Some(9)), Ok((8, GraceSource::Label)));
        assert_eq!(from(None, &[], Some(9)), Ok((9, GraceSource::StopTimeout)));
        assert_eq!(from(None, &[], None), Ok((10, GraceSource::Policy)));
    }

    #[test]
    fn a_label_that_is_no_number_of_seconds_is_refused_and_never_guessed() {
        for bad in ["", "s", "-1", "1.5", "1m", "10 s"] {
            assert_eq!(from(None, &[(LABEL, bad)], None), Err(ReasonCode::LabelInvalid), "{bad:?}");
        }
    }

    #[test]
    fn a_label_of_any_length_is_shown_in_part() {
        let labels = BTreeMap::from([(LABEL.to_owned(), "x".repeat(1_000_000))]);
        let (_, detail) = grace(None, &labels, None, &Limits::default()).unwrap_err();
        assert!(detail.len() < 500 && detail.contains("write whole seconds"), "{detail:.500}");
    }

    #[test]
    fn a_container_that_may_take_for_ever_to_stop_is_refused() {
        assert_eq!(from(None, &[], Some(-1)), Err(ReasonCode::GraceAboveLimit));
    }
}
