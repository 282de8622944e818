//! What somebody may have meant who wrote a name that no container answers to.

use crate::model::Target;

/// How many are named at most.
const NAMED: usize = 3;

/// The shortest text that counts where it is part of a longer one.
const PART_CHARS: usize = 3;

/// Of what is there, what is spelled much like this, nearest first: up to three.
pub(super) fn near<'a>(spelling: &Target, there: &'a [Target]) -> Vec<&'a Target> {
    let asked = folded(spelling.path());
    let mut near: Vec<(usize, &Target)> =
        there.iter().filter_map(|target| Some((distance(&asked, target.path())?, target))).collect();
    near.sort();
    near.into_iter().take(NAMED).map(|(_, target)| target).collect()
}

/// A question after those, to stand before the list of all; empty if there is none.
pub(super) fn did_you_mean(spelling: &Target, there: &[Target]) -> String {
    let near: Vec<String> = near(spelling, there).into_iter().map(ToString::to_string).collect();
    if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(" or ")) }
}

/// Without what people mistake for each other: capitals, the kinds of separators, the number of a first replica.
fn folded(path: &str) -> Vec<u8> {
    let plain = path.strip_suffix("/1").or_else(|| path.strip_suffix("-1")).unwrap_or(path);
    let fold = |byte: u8| if matches!(byte, b'/' | b'_' | b'.') { b'-' } else { byte.to_ascii_lowercase() };
    plain.bytes().map(fold).collect()
}

/// How far a container's path is from what was asked for: by its whole, or by its service alone. `None` if that is
/// too far to have been meant.
fn distance(asked: &[u8], path: &str) -> Option<usize> {
    let whole = folded(path);
    let service = path.split('/').nth(1).map(folded);
    let spelled = [Some(&whole), service.as_ref()].into_iter().flatten();
    let by_letters = spelled.filter_map(|there| {
        let most = asked.len().min(there.len()) / 3;
        let far = if asked.len().abs_diff(there.len()) > most { usize::MAX } else { edits(asked, there) };
        (far <= most).then_some(far)
    });
    let is_part = |part: &[u8], of: &[u8]| {
        part.len() >= PART_CHARS && of.windows(part.len()).any(|window| window == part)
    };
    let by_part = is_part(asked, &whole) || is_part(&whole, asked);
    // A part is no nearer than a slip of the pen.
    by_letters.min().or_else(|| by_part.then(|| asked.len().max(whole.len())))
}

/// How many letters have to be put in, taken out, replaced, or swapped with the next.
fn edits(from: &[u8], to: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut least = (above[j] + usize::from(a != b)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near_to(asked: &str, there: &[&str]) -> Vec<String> {
        let target = |path: &&str| Target::parse(&format!("local/{path}")).unwrap();
        let there: Vec<Target> = there.iter().map(target).collect();
        near(&target(&asked), &there).iter().map(|target| target.path().to_owned()).collect()
    }

    #[test]
    fn a_slip_of_the_pen_is_near() {
        let there = ["web", "api", "shop/worker/1", "shop-db"];
        for (asked, meant) in [
            ("wbe", "web"),
            ("Web", "web"),
            ("webb", "web"),
            ("shop-worker", "shop/worker/1"),
            ("shop_worker_1", "shop/worker/1"),
            ("shop/wroker", "shop/worker/1"),
            ("workr", "shop/worker/1"),
            ("shopdb", "shop-db"),
        ] {
            assert_eq!(near_to(asked, &there).first().map(String::as_str), Some(meant), "{asked}");
        }
    }

    #[test]
    fn a_part_is_near_and_what_is_spelled_otherwise_is_not() {
        assert_eq!(near_to("web", &["shop-web-1", "api", "db"]), ["shop-web-1"]);
        assert_eq!(near_to("shop-web-1-old", &["shop-web-1", "api"]), ["shop-web-1"]);
        for asked in ["queue", "a", "db", "nothing-like-it"] {
            assert_eq!(near_to(asked, &["web", "api", "cache", "adb1"]), [""; 0], "{asked}");
        }
    }

    #[test]
    fn the_nearest_come_first_and_three_at_most() {
        let there = ["webapp-5", "webapp-22", "webapp-2", "webap-2", "old-webapp-12"];
        assert_eq!(near_to("webapp-12", &there), ["webapp-2", "webapp-22", "webap-2"]);
        let target = |path: &str| Target::parse(&format!("local/{path}")).unwrap();
        let asked = did_you_mean(&target("wbe"), &[target("web"), target("db")]);
        assert_eq!(asked, "did you mean local/web? ");
        assert_eq!(did_you_mean(&target("wbe"), &[target("db")]), "");
    }
}
