//! Rust source as tokens with their lines: no comments, no contents of strings, no test code.
//!
//! This is no parser. It knows just enough of the language to find paths, and each thing it knows has
//! a test below.

use std::path::{Path, PathBuf};

/// One token: a word, a number, `::`, or one character of punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

impl Token {
    pub fn is(&self, text: &str) -> bool {
        self.text == text
    }

    /// An identifier or a keyword.
    pub fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }

    pub fn is_float(&self) -> bool {
        let digits = self.text.starts_with(|c: char| c.is_ascii_digit()) && !self.text.starts_with("0x");
        digits
            && (self.text.contains(['.', 'e', 'E'])
                || self.text.ends_with("f32")
                || self.text.ends_with("f64"))
    }
}

/// A source file, by its path inside `src/`.
#[derive(Clone, Debug)]
pub struct SourceFile {
    pub path: String,
    pub text: String,
}

/// All of a crate's sources below `folder`, in the order of their paths.
pub fn read_sources(folder: &Path) -> Vec<SourceFile> {
    let mut found = Vec::new();
    let mut to_visit: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(visited) = to_visit.pop() {
        let entries = std::fs::read_dir(&visited)
            .unwrap_or_else(|error| panic!("reading {}: {error}", visited.display()));
        for entry in entries {
            let path = entry.expect("reading a folder's entry").path();
            if path.is_dir() {
                to_visit.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path)
                    .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
                let path =
                    path.strip_prefix(folder).expect("it lies in there").to_string_lossy().into_owned();
                found.push(SourceFile { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// What remains of a file when comments, the contents of strings, and test code are gone, and the
/// names of modules that exist in tests alone (`#[cfg(test)] mod name;`).
pub fn code(text: &str) -> (Vec<Token>, Vec<String>) {
    without_tests(tokens(text))
}

/// Splits a source text. Comments, strings and character literals leave nothing behind.
pub fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut found: Vec<Token> = Vec::new();
    let mut line = 1;
    let mut i = 0;
    while i < chars.len() {
        let start = i;
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => i = end_of_block_comment(&chars, i),
            '"' => i = end_of_string(&chars, i + 1),
            '\'' => i = end_of_char_or_lifetime(&chars, i),
            c if c.is_alphabetic() || c == '_' => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                let word: String = chars[start..i].iter().collect();
                let raw = matches!(word.as_str(), "r" | "br" | "cr");
                let hashes = (i..).take_while(|&j| at(j) == '#').count();
                if raw && at(i + hashes) == '"' {
                    i = end_of_raw_string(&chars, i + hashes + 1, hashes);
                } else if matches!(word.as_str(), "b" | "c") && at(i) == '"' {
                    i = end_of_string(&chars, i + 1);
                } else if word == "b" && at(i) == '\'' {
                    i = end_of_char_or_lifetime(&chars, i);
                } else if word == "r" && hashes == 1 {
                    // A raw identifier: its word comes next.
                    i += 1;
                } else {
                    found.push(Token { text: word, line });
                }
            }
            c if c.is_ascii_digit() => {
                // In `pair.0.1` there is no number with a fraction.
                let is_field = found.last().is_some_and(|token| token.is("."));
                while at(i).is_alphanumeric()
                    || at(i) == '_'
                    || (at(i) == '.' && !is_field && at(i + 1).is_ascii_digit())
                {
                    i += 1;
                }
                found.push(Token { text: chars[start..i].iter().collect(), line });
            }
            ':' if at(i + 1) == ':' => {
                i += 2;
                found.push(Token { text: "::".to_owned(), line });
            }
            c => {
                i += 1;
                if !c.is_whitespace() {
                    found.push(Token { text: c.to_string(), line });
                }
            }
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

fn end_of_block_comment(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut i = start;
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                i += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                i += 2;
                if depth == 0 {
                    return i;
                }
            }
            _ => i += 1,
        }
    }
    i
}

fn end_of_string(chars: &[char], start: usize) -> usize {
    let mut i = start;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(chars.len())
}

fn end_of_raw_string(chars: &[char], start: usize, hashes: usize) -> usize {
    let mut i = start;
    while i < chars.len() {
        let closing = chars[i] == '"' && chars[i + 1..].iter().take_while(|c| **c == '#').count() >= hashes;
        i += 1;
        if closing {
            return i + hashes;
        }
    }
    i
}

fn end_of_char_or_lifetime(chars: &[char], start: usize) -> usize {
    match (chars.get(start + 1), chars.get(start + 2)) {
        (Some('\\'), _) => {
            let escaped = start + 3;
            let closing = chars[escaped.min(chars.len())..].iter().position(|c| *c == '\'');
            closing.map_or(chars.len(), |distance| escaped + distance + 1)
        }
        (Some(_), Some('\'')) => start + 3,
        // A lifetime: its name is read as a word, which matters to nobody.
        _ => start + 1,
    }
}

/// Takes out what follows `#[cfg(test)]` or `#[test]`, up to the end of the item.
fn without_tests(all: Vec<Token>) -> (Vec<Token>, Vec<String>) {
    let starts_with = |i: usize, pattern: &[&str]| {
        all.len() >= i + pattern.len() && pattern.iter().zip(&all[i..]).all(|(text, token)| token.is(text))
    };
    if starts_with(0, &["#", "!", "[", "cfg", "(", "test", ")", "]"]) {
        return (Vec::new(), Vec::new());
    }
    let mut kept = Vec::new();
    let mut test_modules = Vec::new();
    let mut i = 0;
    while i < all.len() {
        let is_test = starts_with(i, &["#", "[", "cfg", "(", "test", ")", "]"])
            || starts_with(i, &["#", "[", "test", "]"]);
        if !is_test {
            kept.push(all[i].clone());
            i += 1;
            continue;
        }
        while all.get(i).is_some_and(|token| token.is("#")) {
            i = end_of_group(&all, i + 1);
        }
        let end = end_of_item(&all, i);
        let item = &all[i..end];
        if let Some(position) = item.iter().position(|token| token.is("mod"))
            && item.last().is_some_and(|token| token.is(";"))
            && let Some(name) = item.get(position + 1)
        {
            test_modules.push(name.text.clone());
        }
        i = end;
    }
    (kept, test_modules)
}

/// The index after the bracket that closes the one at `open`.
fn end_of_group(all: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (i, token) in all.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            _ => {}
        }
    }
    all.len()
}

fn end_of_item(all: &[Token], start: usize) -> usize {
    // These end in a semicolon, whatever braces they hold.
    let ends_in_semicolon = all[start..]
        .iter()
        .find(|token| token.is_word() && !matches!(token.text.as_str(), "pub" | "crate" | "super" | "in"))
        .is_some_and(|token| matches!(token.text.as_str(), "use" | "const" | "static" | "type" | "let"))
        && !all[start..].iter().take(3).any(|token| token.is("fn"));
    let mut i = start;
    while i < all.len() {
        match all[i].text.as_str() {
            ";" => return i + 1,
            "{" if !ends_in_semicolon => return end_of_group(all, i),
            "(" | "[" | "{" => i = end_of_group(all, i),
            _ => i += 1,
        }
    }
    all.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> String {
        code(source).0.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_strings_leave_nothing() {
        assert_eq!(texts("a // crate::b\n/* x /* y */ z */ c"), "a c");
        assert_eq!(texts(r##"f("crate::x \" y", r#"a " b"#, b"c", br"d") g"##), "f ( , , , ) g");
        assert_eq!(texts(r"'x' '\'' '\u{1F600}' b'\n' '\\' y"), "y");
    }

    #[test]
    fn lifetimes_do_not_open_a_character() {
        assert_eq!(
            texts("fn f<'a>(x: &'a str) -> &'a str { 'b' }"),
            "fn f < a > ( x : & a str ) - > & a str { }"
        );
    }

    #[test]
    fn lines_are_counted_through_comments_and_strings() {
        let found = tokens("/* 1\n2 */ \"3\n4\"\nword");
        assert_eq!(found, [Token { text: "word".to_owned(), line: 4 }]);
    }

    #[test]
    fn floats_are_told_from_fields_and_ranges() {
        let floats = |source: &str| tokens(source).iter().filter(|token| token.is_float()).count();
        assert_eq!(floats("1.5 + 2e3 + 1f32"), 3);
        assert_eq!(floats("pair.0.1 + (0..10) + 1.max(2) + 0x1e3 + 7u64"), 0);
    }

    #[test]
    fn test_code_is_left_out() {
        assert_eq!(texts("a #[cfg(test)] mod tests { use b::{c}; fn d() {} } e"), "a e");
        assert_eq!(texts("a #[cfg(test)] #[allow(x)] use b::{c, d}; e"), "a e");
        assert_eq!(texts("a #[cfg(test)] pub(crate) fn b(c: [u8; 3]) -> d { e } f"), "a f");
        assert_eq!(texts("a #[cfg(test)] const fn b() { c; } d"), "a d");
        assert_eq!(texts("#![cfg(test)] a"), "");
        assert_eq!(code("#[cfg(test)] mod tests; mod real;").1, ["tests"]);
    }
}
