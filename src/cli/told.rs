//! A long text is told once on a page: an engine's own words may stand in its answer, in a reason and in the history.

/// From so many characters on, a text is long.
const LONG_CHARS: usize = 60;

/// The long texts that stand on a page.
#[derive(Debug, Default)]
pub(super) struct Told(Vec<String>);

impl Told {
    /// Takes note of a text that stands on the page, if it is long.
    pub(super) fn note(&mut self, text: &str) {
        if text.chars().count() >= LONG_CHARS {
            self.0.push(text.to_owned());
        }
    }

    /// A text as it is told here: of what stands on the page, only that it does.
    pub(super) fn tell(&mut self, text: &str) -> String {
        let mut told = text.to_owned();
        for known in &self.0 {
            told = told.replace(known.as_str(), "… (as above)");
        }
        self.note(text);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_told_once_and_a_short_one_as_often_as_it_comes() {
        let long = "x".repeat(LONG_CHARS);
        let mut told = Told::default();
        told.note(&long);
        assert_eq!(told.tell(&format!("500: {long}")), "500: … (as above)");
        let other = "y".repeat(LONG_CHARS);
        assert_eq!(told.tell(&other), other);
        assert_eq!(told.tell(&format!("{other}; {long}")), "… (as above); … (as above)");
        for _ in 0..2 {
            assert_eq!(told.tell("connection reset"), "connection reset");
        }
    }
}
