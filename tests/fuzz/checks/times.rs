//! The instants that engines write.

use relatch::docker::{format_instant, parse_instant, parse_started_at};
use relatch::model::{EngineInstant, StartedAt};

use super::records::as_itself;

/// What is read is the instant that was written, and reads back as itself from each of its forms.
pub fn check(data: &[u8]) {
    if let Some((number, rest)) = data.split_first_chunk::<8>()
        && let Some((nanos, _)) = rest.split_first_chunk::<4>()
        && let Ok(instant) = EngineInstant::new(i64::from_le_bytes(*number), u32::from_le_bytes(*nanos))
    {
        shown(instant);
    }
    as_itself::<StartedAt>(data);
    let text = String::from_utf8_lossy(data);
    match parse_started_at(&text) {
        StartedAt::At(instant) => {
            assert_eq!(Some((instant.unix_s(), instant.nanos())), reckoned(&text), "{text:?}");
            assert_eq!(parse_instant(&text), Ok(instant));
            shown(instant);
        }
        StartedAt::Zero => {
            assert_eq!(reckoned(&text), Some((-62_135_596_800, 0)), "{text:?}");
        }
        StartedAt::Empty => assert!(text.is_empty(), "{text:?}"),
        StartedAt::Unreadable(kept) => {
            assert!(kept.len() <= 64 + '…'.len_utf8() && !kept.contains(char::is_control), "{kept:?}");
            assert!(parse_instant(&text).is_err(), "{text:?}");
        }
    }
}

/// Both forms that are shown read back, within the years that have four digits.
fn shown(instant: EngineInstant) {
    let forms = [format_instant(instant), instant.to_string()];
    if (-62_135_596_800..253_402_300_800 - 86_400).contains(&instant.unix_s()) {
        for form in &forms {
            assert_eq!(parse_instant(form), Ok(instant), "{form}");
        }
    }
    let stored = serde_json::to_vec(&instant).expect("an instant is JSON");
    assert_eq!(serde_json::from_slice::<EngineInstant>(&stored).expect("it reads back"), instant);
}

/// The same, reckoned by another rule: days before a year and before a month, added up.
fn reckoned(text: &str) -> Option<(i64, u32)> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let before = year - 1;
    let leaps = |years: i64| years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    let is_leap = leaps(year) > leaps(before);
    let lengths = [31, 28 + i64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let months = usize::try_from(month - 1).ok()?;
    let length = *lengths.get(months)?;
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days_to_1970 = 365 * 1969 + leaps(1969);
    let days = 365 * before + leaps(before) + lengths[..months].iter().sum::<i64>() + day - 1 - days_to_1970;
    let rest = text.get(19..)?;
    let digits: String =
        rest.strip_prefix('.').unwrap_or("").chars().take_while(char::is_ascii_digit).collect();
    let zone = rest.trim_start_matches('.').trim_start_matches(|c: char| c.is_ascii_digit());
    let offset_s = match zone {
        "Z" => 0,
        _ => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let ahead = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
            if zone.starts_with('-') { -ahead } else { ahead }
        }
    };
    let nanos = format!("{digits:0<9}").parse().ok()?;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second - offset_s, nanos))
}
