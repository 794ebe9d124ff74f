//! The modules of a crate, and the names that they use of each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::source::{Token, code};
use crate::run::Outcome;

/// A path in code, for example `["crate", "engine", "Store"]`.
type Names = Vec<String>;

/// A module with its own file.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) file: PathBuf,
    /// Names of its submodules, and their indexes in [`Modules`].
    pub(super) children: BTreeMap<String, usize>,
    pub(super) parent: Option<usize>,
    /// Paths that its code uses.
    uses: BTreeSet<Names>,
    /// Names that `use` imports, with the path of each.
    bound: BTreeMap<String, Names>,
    /// Paths of `use …::*`.
    globs: Vec<Names>,
    /// Names that the module defines.
    defined: BTreeSet<String>,
}

/// All modules of a crate; the first is the root.
#[derive(Debug, Default)]
pub(super) struct Modules(pub(super) Vec<Module>);

/// The use of a name of one module by another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The last name of the path.
    pub(super) name: String,
}

impl Modules {
    /// Reads the crate with this root file. Skips items with `#[cfg(test)]`, and modules with
    /// `#[path]`.
    pub(super) fn read(root: &Path) -> Outcome<Self> {
        let mut modules = Self::default();
        let folder = root.parent().unwrap_or(Path::new(""));
        modules.add(root.to_owned(), folder.to_owned(), None)?;
        Ok(modules)
    }

    fn add(&mut self, file: PathBuf, folder: PathBuf, parent: Option<usize>) -> Outcome<usize> {
        let text =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let (module, children) = parse(&text);
        let index = self.0.len();
        self.0.push(Module {
            file,
            parent,
            ..module
        });
        for name in children {
            let inner = folder.join(&name);
            let plain = folder.join(format!("{name}.rs"));
            let file = if plain.exists() {
                plain
            } else {
                inner.join("mod.rs")
            };
            let child = self.add(file, inner, Some(index))?;
            self.0[index].children.insert(name, child);
        }
        Ok(index)
    }

    /// Every use of a name that another module defines.
    pub(super) fn uses(&self) -> BTreeSet<Use> {
        let mut found = BTreeSet::new();
        for (from, module) in self.0.iter().enumerate() {
            for path in &module.uses {
                let name = path.last().cloned().unwrap_or_default();
                match self.resolve(from, path, 0) {
                    Some(to) if to != from => {
                        found.insert(Use { from, to, name });
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// The module and its ancestors; the root is last.
    pub(super) fn ancestors(&self, module: usize) -> Vec<usize> {
        std::iter::successors(Some(module), |at| self.0[*at].parent).collect()
    }

    /// The module that defines `path` as seen from `from`; `None` for names of other crates.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let module = &self.0[from];
        // Code that does not compile can import names in a circle.
        if depth > 20 {
            return None;
        }
        match first.as_str() {
            "crate" => Some(self.follow(0, rest, depth)),
            "self" => Some(self.follow(from, rest, depth)),
            "super" => Some(self.follow(module.parent?, rest, depth)),
            name if module.children.contains_key(name) => Some(self.follow(from, path, depth)),
            _ => None,
        }
    }

    fn follow(&self, at: usize, path: &[String], depth: usize) -> usize {
        let Some((name, rest)) = path.split_first() else {
            return at;
        };
        let module = &self.0[at];
        if name == "super" {
            return module.parent.map_or(at, |up| self.follow(up, rest, depth));
        }
        if let Some(child) = module.children.get(name) {
            return self.follow(*child, rest, depth);
        }
        if let Some(bound) = module.bound.get(name) {
            let path: Names = bound.iter().chain(rest).cloned().collect();
            return self.resolve(at, &path, depth + 1).unwrap_or(at);
        }
        if module.defined.contains(name) {
            return at;
        }
        let behind = |glob: &Names| self.resolve(at, glob, depth + 1);
        let mut globs = module.globs.iter().filter_map(behind);
        globs
            .find(|to| self.0[*to].defined.contains(name))
            .unwrap_or(at)
    }
}

/// Parses a file into a module, and the names of its submodules with files.
fn parse(text: &str) -> (Module, Vec<String>) {
    let tokens = code(text);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        inside: Vec::new(),
        module: Module::default(),
        files: Vec::new(),
    };
    reader.read();
    (reader.module, reader.files)
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// For each open brace, innermost last: true if it opens an inline module.
    inside: Vec<bool>,
    module: Module,
    files: Vec<String>,
}

impl Reader<'_> {
    fn text(&self, ahead: usize) -> &str {
        self.tokens
            .get(self.at + ahead)
            .map_or("", |token| token.text)
    }

    fn follows(&self, words: &[&str]) -> bool {
        (words.iter().enumerate()).all(|(ahead, word)| self.text(ahead) == *word)
    }

    fn read(&mut self) {
        while self.at < self.tokens.len() {
            if self.follows(&["#", "[", "cfg", "(", "test", ")", "]"]) {
                self.at += 7;
                self.skip_item();
                continue;
            }
            // The file belongs to another crate.
            if self.follows(&["#", "[", "path", "="]) {
                self.skip_item();
                continue;
            }
            match self.text(0) {
                "mod" if self.text(2) == ";" => {
                    let name = self.text(1).to_owned();
                    self.files.push(name);
                    self.at += 3;
                }
                "mod" if self.text(2) == "{" => {
                    self.inside.push(true);
                    self.at += 3;
                }
                "{" => {
                    self.inside.push(false);
                    self.at += 1;
                }
                "}" => {
                    self.inside.pop();
                    self.at += 1;
                }
                "use" if self.text(1) != "<" => {
                    self.at += 1;
                    self.read_use(&Vec::new());
                }
                "crate" | "super" | "self" if self.text(1) == ":" && self.text(2) == ":" => {
                    let path = self.read_path();
                    self.add_use(path);
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" => {
                    self.define(1);
                }
                "macro_rules" => self.define(2),
                _ => self.at += 1,
            }
        }
    }

    fn define(&mut self, ahead: usize) {
        let name = self.text(ahead).to_owned();
        self.module.defined.insert(name);
        self.at += 1;
    }

    /// Skips the rest of an item: to its semicolon or closing brace.
    fn skip_item(&mut self) {
        let mut open = 0_usize;
        while self.at < self.tokens.len() {
            let text = self.text(0).to_owned();
            self.at += 1;
            match text.as_str() {
                "{" | "(" | "[" => open += 1,
                ")" | "]" => open = open.saturating_sub(1),
                "}" => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        return;
                    }
                }
                ";" if open == 0 => return,
                _ => {}
            }
        }
    }

    /// Reads a path in an expression or a type.
    fn read_path(&mut self) -> Names {
        let mut path = vec![self.text(0).to_owned()];
        self.at += 1;
        while self.follows(&[":", ":"]) {
            let next = self.tokens.get(self.at + 2);
            let Some(name) = next.filter(|token| token.is_identifier()) else {
                break;
            };
            path.push(name.text.to_owned());
            self.at += 3;
        }
        path
    }

    /// Reads the tree of a `use` declaration; `before` is the path before the tree.
    fn read_use(&mut self, before: &Names) {
        let mut path = before.clone();
        while self.at < self.tokens.len() {
            match self.text(0) {
                ":" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(0), "}" | "") {
                        self.read_use(&path);
                        if self.text(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    let path = self.outside(path);
                    self.module.uses.insert(path.clone());
                    self.module.globs.push(path);
                    return;
                }
                "as" => {
                    let name = self.text(1).to_owned();
                    self.at += 2;
                    self.bind(name, path);
                    return;
                }
                "," | ";" | "}" => {
                    let name = path.last().cloned().unwrap_or_default();
                    self.bind(name, path);
                    if self.text(0) == ";" {
                        self.at += 1;
                    }
                    return;
                }
                name => {
                    let name = name.to_owned();
                    self.at += 1;
                    // `use a::{self}` imports `a`.
                    if name != "self" || path.is_empty() {
                        path.push(name);
                    }
                }
            }
        }
    }

    fn bind(&mut self, name: String, path: Names) {
        let path = self.outside(path);
        self.module.uses.insert(path.clone());
        self.module.bound.insert(name, path);
    }

    fn add_use(&mut self, path: Names) {
        let path = self.outside(path);
        self.module.uses.insert(path);
    }

    /// Converts a path in an inline module to one in the file of that module.
    fn outside(&self, mut path: Names) -> Names {
        for _ in self.inside.iter().filter(|module| **module) {
            match path.first().map(String::as_str) {
                Some("super") if path.get(1).is_some_and(|next| next == "super") => {
                    path.remove(0);
                }
                Some("super") => {
                    "self".clone_into(&mut path[0]);
                    break;
                }
                _ => break,
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> Modules {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Modules::read(&folder.path().join("lib.rs")).unwrap()
    }

    fn edges(modules: &Modules) -> Vec<(String, String, String)> {
        let name = |index: usize| {
            let stem = modules.0[index].file.file_stem().unwrap();
            stem.to_string_lossy().into_owned()
        };
        (modules.uses().into_iter())
            .map(|one| (name(one.from), name(one.to), one.name))
            .collect()
    }

    fn edge(from: &str, to: &str, name: &str) -> (String, String, String) {
        (from.to_owned(), to.to_owned(), name.to_owned())
    }

    #[test]
    fn names_resolve_to_the_module_that_defines_them() {
        let modules = crate_of(&[
            ("lib.rs", "mod a; mod b; mod c; pub use a::One; use c::*;"),
            ("a.rs", "pub struct One; fn f() { super::b::go(); }"),
            (
                "b.rs",
                "use crate::{One, Three as T, b};\nfn go() { let x = String::new(); }",
            ),
            ("c.rs", "pub struct Three;"),
        ]);
        let found = edges(&modules);
        assert!(found.contains(&edge("a", "b", "go")), "{found:?}");
        assert!(found.contains(&edge("b", "a", "One")), "{found:?}");
        assert!(found.contains(&edge("b", "c", "Three")), "{found:?}");
        assert!(!found.iter().any(|(_, _, name)| name == "new"), "{found:?}");
    }

    #[test]
    fn uses_in_tests_are_ignored() {
        let modules = crate_of(&[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "mod inner { use super::super::b::Two; }\n#[cfg(test)] mod tests { use crate::b::One; }\n#[cfg(test)] use crate::b::Three;",
            ),
            ("b.rs", "pub struct One; pub struct Two; pub struct Three;"),
        ]);
        let found = edges(&modules);
        assert!(found.contains(&edge("a", "b", "Two")), "{found:?}");
        assert_eq!(found.iter().filter(|one| one.0 == "a").count(), 1);
    }
}
