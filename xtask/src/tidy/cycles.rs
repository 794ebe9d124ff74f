//! Finds modules of a crate that import each other. A module and its submodules may import
//! each other. At each level of the module tree, a module includes its submodules.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
};

use super::modules::{Modules, Use};
use crate::run::Outcome;

/// Uses between siblings: modules with the same parent.
type Graph<'a> = BTreeMap<usize, BTreeMap<usize, &'a Use>>;

/// Lists the shortest cycle of each group of modules that import each other.
pub(super) fn check(name: &str, root: &Path, problems: &mut Vec<String>) -> Outcome {
    let modules = Modules::read(root)?;
    let uses = modules.uses();
    let mut levels: BTreeMap<usize, Graph<'_>> = BTreeMap::new();
    for one in &uses {
        let Some((level, from, to)) = siblings(&modules, one) else {
            continue;
        };
        let graph = levels.entry(level).or_default();
        graph.entry(from).or_default().entry(to).or_insert(one);
    }
    for graph in levels.values() {
        let mut seen = BTreeSet::new();
        for start in graph.keys() {
            if seen.contains(start) {
                continue;
            }
            let Some(cycle) = shortest(graph, *start) else {
                continue;
            };
            seen.extend(cycle.iter().map(|(module, _)| *module));
            problems.push(describe(name, &modules, &cycle));
        }
    }
    Ok(())
}

/// The common parent of the two siblings that a use connects, and the siblings.
fn siblings(modules: &Modules, one: &Use) -> Option<(usize, usize, usize)> {
    let from = modules.ancestors(one.from);
    let to = modules.ancestors(one.to);
    let level = *from.iter().find(|module| to.contains(module))?;
    let below = |path: &[usize]| {
        let at = path.iter().position(|module| *module == level)?;
        path.get(at.checked_sub(1)?).copied()
    };
    Some((level, below(&from)?, below(&to)?))
}

/// The shortest cycle through a module.
fn shortest<'a>(graph: &Graph<'a>, start: usize) -> Option<Vec<(usize, &'a Use)>> {
    let mut reached: BTreeMap<usize, (usize, &Use)> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for (to, by) in graph.get(&at).into_iter().flatten() {
            if reached.contains_key(to) {
                continue;
            }
            reached.insert(*to, (at, by));
            queue.push_back(*to);
        }
    }
    let mut cycle = Vec::new();
    let mut at = start;
    loop {
        let (before, by) = reached.get(&at)?;
        cycle.push((*before, *by));
        at = *before;
        if at == start {
            cycle.reverse();
            return Some(cycle);
        }
    }
}

fn describe(name: &str, modules: &Modules, cycle: &[(usize, &Use)]) -> String {
    let file = |module: usize| {
        let path = &modules.0[module].file;
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        let from = parts.iter().rposition(|part| part == "src").unwrap_or(0);
        parts[from..].join("/")
    };
    let steps: Vec<String> = cycle
        .iter()
        .map(|(_, by)| format!("{} uses {} of {}", file(by.from), by.name, file(by.to)))
        .collect();
    format!(
        "modules of {name} import each other: {}; move shared code to a module that both can import",
        steps.join(", ")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("src").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut found = Vec::new();
        check("it", &folder.path().join("src/lib.rs"), &mut found).unwrap();
        found
    }

    #[test]
    fn the_shortest_cycle_is_reported() {
        let found = problems(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a/mod.rs", "mod inner; use crate::c::Three;"),
            ("a/inner.rs", "use crate::b::Two;"),
            ("b.rs", "use crate::a::One; pub struct Two;"),
            ("c.rs", "pub struct Three; use crate::b::Two;"),
        ]);
        assert_eq!(
            found[0],
            "modules of it import each other: src/a/inner.rs uses Two of src/b.rs, \
             src/b.rs uses One of src/a/mod.rs; move shared code to a module that both can import"
        );
    }

    #[test]
    fn a_module_and_its_submodules_may_import_each_other() {
        let found = problems(&[
            ("lib.rs", "mod a; pub struct Root; use a::One;"),
            ("a/mod.rs", "mod inner; use inner::Two; pub struct One;"),
            (
                "a/inner.rs",
                "use super::One; use crate::Root; pub struct Two;",
            ),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
    #[test]
    fn modules_whose_files_other_crates_have_are_left_out() {
        let found = problems(&[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "#[path = \"../../other/shared.rs\"] mod shared; use crate::b::Two; pub struct One;",
            ),
            ("b.rs", "use crate::a::One; pub struct Two;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
