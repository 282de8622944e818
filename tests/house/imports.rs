//! Who imports whom: every path of the crate's sources, resolved to the file that defines its end.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{SourceFile, Token, code};

/// One path in a file, in the crate's own terms: `crate::a::b` is `[a, b]`.
#[derive(Clone, Debug)]
pub struct Import {
    /// The importing file, inside `src/`.
    pub file: String,
    pub line: usize,
    pub path: Vec<String>,
    /// The file that defines what the path names, with re-exports followed.
    pub target: String,
    /// `pub use`: passes a name on, and needs nothing of it.
    pub is_reexport: bool,
    /// A module as such (`use crate::model;`): what is used of it shows where it is used.
    pub is_bare_module: bool,
}

/// A path as it is written.
#[derive(Clone, Debug)]
pub struct WrittenPath {
    pub line: usize,
    pub segments: Vec<String>,
    /// For `use`: the name it gives, `*` for all.
    pub gives: Option<String>,
    pub is_public: bool,
    is_macro: bool,
    /// The inline modules around it.
    inside: Vec<String>,
}

struct Module {
    file: String,
    paths: Vec<WrittenPath>,
    defines: BTreeSet<String>,
    children: BTreeSet<String>,
}

/// The crate's modules by their paths, without what exists in tests alone.
pub struct Crate {
    modules: BTreeMap<Vec<String>, Module>,
}

impl Crate {
    pub fn of(sources: &[SourceFile]) -> Crate {
        let mut modules = BTreeMap::new();
        let mut only_in_tests: Vec<Vec<String>> = Vec::new();
        for source in sources {
            let path = module_path(&source.path);
            let (tokens, test_modules) = code(&source.text);
            only_in_tests.extend(test_modules.into_iter().map(|name| [path.clone(), vec![name]].concat()));
            let module = Module {
                file: source.path.clone(),
                paths: written_paths(&tokens),
                defines: defined_names(&tokens),
                children: words_after(&tokens, &["mod"]),
            };
            modules.insert(path, module);
        }
        modules.retain(|path, _| !only_in_tests.iter().any(|test| path.starts_with(test)));
        Crate { modules }
    }

    /// Every path that leads to a place in this crate.
    pub fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        for (module_path, module) in &self.modules {
            for written in &module.paths {
                let Some(path) = self.absolute(module_path, module, written) else { continue };
                if path.is_empty() || (written.is_macro && path.len() == 1) {
                    // The root as such, or a macro, which lives there wherever it is written.
                    continue;
                }
                let named =
                    if written.gives.as_deref() == Some("*") { &path[..path.len() - 1] } else { &path[..] };
                found.push(Import {
                    file: module.file.clone(),
                    line: written.line,
                    target: self.defining_file(&path, 0),
                    is_reexport: written.is_public,
                    is_bare_module: written.gives.is_some()
                        && self.modules.contains_key(named)
                        && named.len() == path.len(),
                    path,
                });
            }
        }
        found
    }

    fn absolute(
        &self,
        module_path: &[String],
        module: &Module,
        written: &WrittenPath,
    ) -> Option<Vec<String>> {
        let here: Vec<String> = [module_path, &written.inside].concat();
        let (first, rest) = written.segments.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            // main.rs knows the library by its name.
            "relatch" if module.file == "main.rs" => Some(rest.to_vec()),
            "self" => Some([&here, rest].concat()),
            "super" => {
                let ups = written.segments.iter().take_while(|segment| *segment == "super").count();
                let base = here.get(..here.len().checked_sub(ups)?)?;
                Some([base, &written.segments[ups..]].concat())
            }
            name if module.children.contains(name) => Some([module_path, &written.segments].concat()),
            name => {
                // A name that another `use` of this file brought in.
                let brought = module.paths.iter().find(|other| {
                    other.gives.as_deref() == Some(name) && other.segments.first().is_some_and(|s| s != name)
                })?;
                Some([self.absolute(module_path, module, brought)?, rest.to_vec()].concat())
            }
        }
    }

    fn defining_file(&self, path: &[String], depth: usize) -> String {
        let length = (0..=path.len())
            .rev()
            .find(|length| self.modules.contains_key(&path[..*length]))
            .unwrap_or_else(|| panic!("neither lib.rs nor main.rs is there to resolve {path:?}"));
        let (module_path, rest) = path.split_at(length);
        let module = &self.modules[module_path];
        let Some(name) = rest.first() else { return module.file.clone() };
        // Deep chains of re-exports do not exist; circular ones might.
        if module.defines.contains(name) || name == "*" || depth > 16 {
            return module.file.clone();
        }
        let uses =
            |gives: &'static str| module.paths.iter().filter(move |p| p.gives.as_deref() == Some(gives));
        for named in module.paths.iter().filter(|p| p.gives.as_ref() == Some(name)) {
            if let Some(absolute) = self.absolute(module_path, module, named) {
                return self.defining_file(&[&absolute, &rest[1..]].concat(), depth + 1);
            }
        }
        for glob in uses("*") {
            if let Some(mut absolute) = self.absolute(module_path, module, glob) {
                absolute.pop();
                if self.modules.get(&absolute).is_some_and(|m| m.defines.contains(name)) {
                    return self.defining_file(&[&absolute, rest].concat(), depth + 1);
                }
            }
        }
        module.file.clone()
    }
}

/// `a/b.rs` and `a/b/mod.rs` are the module `[a, b]`; `lib.rs` is `[]`. `main.rs` is another crate's root.
fn module_path(file: &str) -> Vec<String> {
    match file {
        "lib.rs" => Vec::new(),
        "main.rs" => vec!["main.rs".to_owned()],
        _ => {
            let stem = file.strip_suffix("/mod.rs").or(file.strip_suffix(".rs")).unwrap_or(file);
            stem.split('/').map(str::to_owned).collect()
        }
    }
}

fn words_after(tokens: &[Token], keywords: &[&str]) -> BTreeSet<String> {
    tokens
        .windows(2)
        .filter(|pair| keywords.contains(&pair[0].text.as_str()) && pair[1].is_word())
        .map(|pair| pair[1].text.clone())
        .collect()
}

fn defined_names(tokens: &[Token]) -> BTreeSet<String> {
    let mut names =
        words_after(tokens, &["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod"]);
    let macros = tokens.windows(3).filter(|three| three[0].is("macro_rules") && three[1].is("!"));
    names.extend(macros.map(|three| three[2].text.clone()));
    names
}

/// Every path with at least two segments, and every leaf of every `use`.
pub fn written_paths(tokens: &[Token]) -> Vec<WrittenPath> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut inline: Vec<(usize, String)> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let token = &tokens[i];
        let inside = || inline.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>();
        let word_at = |i: usize| tokens.get(i).is_some_and(Token::is_word);
        let is_at = |i: usize, text: &str| tokens.get(i).is_some_and(|t| t.is(text));
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inline.retain(|(opened_at, _)| *opened_at < depth + 1);
            }
            "mod" if word_at(i + 1) && is_at(i + 2, "{") => {
                depth += 1;
                inline.push((depth, tokens[i + 1].text.clone()));
                i += 3;
                continue;
            }
            // `use<'a>` in a type captures lifetimes.
            "use" if !is_at(i + 1, "<") => {
                let is_public = i > 0 && (tokens[i - 1].is("pub") || tokens[i - 1].is(")"));
                let mut leaves = Vec::new();
                i = use_tree(tokens, i + 1, &[], &mut leaves);
                found.extend(leaves.into_iter().map(|(line, segments, gives)| WrittenPath {
                    line,
                    segments,
                    gives: Some(gives),
                    is_public,
                    is_macro: false,
                    inside: inside(),
                }));
                continue;
            }
            _ if token.is_word()
                && is_at(i + 1, "::")
                && !(i > 0 && (tokens[i - 1].is("::") || tokens[i - 1].is("in"))) =>
            {
                let line = token.line;
                let mut segments = vec![token.text.clone()];
                while is_at(i + 1, "::") && word_at(i + 2) {
                    segments.push(tokens[i + 2].text.clone());
                    i += 2;
                }
                let is_macro = is_at(i + 1, "!");
                found.push(WrittenPath {
                    line,
                    segments,
                    gives: None,
                    is_public: false,
                    is_macro,
                    inside: inside(),
                });
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// Reads one tree of a `use` at `i` and returns the index after it.
fn use_tree(
    tokens: &[Token],
    mut i: usize,
    prefix: &[String],
    leaves: &mut Vec<(usize, Vec<String>, String)>,
) -> usize {
    let mut path = prefix.to_vec();
    let mut line = tokens.get(i).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(i) {
        match token.text.as_str() {
            "::" => i += 1,
            "{" => {
                i += 1;
                while tokens.get(i).is_some_and(|token| !token.is("}")) {
                    i = use_tree(tokens, i, &path, leaves);
                    if tokens.get(i).is_some_and(|token| token.is(",")) {
                        i += 1;
                    }
                }
                return i + 1;
            }
            "," | ";" | "}" => break,
            "as" => {
                let name = tokens.get(i + 1).map_or(String::new(), |token| token.text.clone());
                leaves.push((line, whole(path), name));
                return i + 2;
            }
            _ => {
                line = token.line;
                path.push(token.text.clone());
                i += 1;
            }
        }
    }
    if path.len() > prefix.len() {
        let path = whole(path);
        let name = path.last().cloned().unwrap_or_default();
        leaves.push((line, path, name));
    }
    if tokens.get(i).is_some_and(|token| token.is(";")) { i + 1 } else { i }
}

/// `a::b::{self}` names `a::b`.
fn whole(mut path: Vec<String>) -> Vec<String> {
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    fn leaves(source: &str) -> Vec<String> {
        written_paths(&tokens(source)).iter().map(|path| path.segments.join("::")).collect()
    }

    fn imports(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let sources: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        Crate::of(&sources).imports().into_iter().map(|import| (import.file, import.target)).collect()
    }

    #[test]
    fn nested_groups_are_spread_out() {
        assert_eq!(
            leaves("use crate::{a::{self, b as c, d::*}, e}; use std::fmt;"),
            ["crate::a", "crate::a::b", "crate::a::d::*", "crate::e", "std::fmt"]
        );
    }

    #[test]
    fn paths_are_found_outside_of_use() {
        assert_eq!(
            leaves("fn f(x: &crate::a::B) -> Vec::<u8> { crate::c::d(x)?; x.e::<F>() }"),
            ["crate::a::B", "Vec", "crate::c::d", "e"]
        );
        assert_eq!(leaves("pub(in crate::a) fn f() -> impl Sized + use<'a> {}"), Vec::<String>::new());
    }

    #[test]
    fn super_and_self_and_inline_modules_are_resolved() {
        let files = [
            ("lib.rs", "pub mod a;"),
            ("a/mod.rs", "mod b; mod c; pub struct Top;"),
            ("a/b.rs", "pub struct B; mod inner { use super::super::c::C; }"),
            ("a/c.rs", "use super::{b::B, Top}; pub struct C; use self::C as D;"),
        ];
        let mut found = imports(&files);
        found.sort();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            found,
            [
                pair("a/b.rs", "a/c.rs"),
                pair("a/c.rs", "a/b.rs"),
                pair("a/c.rs", "a/c.rs"),
                pair("a/c.rs", "a/mod.rs")
            ]
        );
    }

    #[test]
    fn a_name_leads_to_the_file_that_defines_it() {
        let files = [
            ("lib.rs", "pub mod a; pub mod x;"),
            ("a/mod.rs", "mod b; mod c; pub use b::B; pub use c::*;"),
            ("a/b.rs", "pub struct B;"),
            ("a/c.rs", "pub enum C {}"),
            ("x.rs", "use crate::a::{self, B, C}; fn f() { a::b::g(); }"),
        ];
        let targets: Vec<String> = imports(&files)
            .into_iter()
            .filter(|(file, _)| file == "x.rs")
            .map(|(_, target)| target)
            .collect();
        assert_eq!(targets, ["a/mod.rs", "a/b.rs", "a/c.rs", "a/b.rs"]);
    }

    #[test]
    fn modules_that_exist_in_tests_alone_are_left_out() {
        let files = [
            ("lib.rs", "pub mod a; pub mod b;"),
            ("a/mod.rs", "#[cfg(test)] mod tests;"),
            ("a/tests.rs", "use crate::b::B;"),
            ("b.rs", "pub struct B;"),
        ];
        assert_eq!(imports(&files), []);
    }
}
