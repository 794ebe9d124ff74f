//! The houses: the folders of `crates`, and the permitted dependencies between them.

use std::path::Path;

/// Each house, and the other houses that its crates may use. Tests may use other houses, too,
/// according to the list of dependencies between crates.
const HOUSES: &[(&str, &[&str])] = &[
    ("client", &[]),
    ("cluster", &["client"]),
    ("runs", &["client"]),
    ("program", &["client", "cluster", "runs"]),
    ("interop", &["client", "cluster", "runs", "program"]),
];

/// The problem of a dependency between the crates in two folders, if it is not permitted.
pub(super) fn check(from: &Path, to: &Path) -> Option<String> {
    let (from_house, to_house) = (house(from)?, house(to)?);
    let Some((_, uses)) = HOUSES.iter().find(|(name, _)| *name == from_house) else {
        return Some(format!(
            "{} is in an unknown house: move it to one of crates/, or add {from_house} to HOUSES in \
             xtask/src/tidy/houses.rs",
            from.display()
        ));
    };
    let is_permitted = from_house == to_house || uses.contains(&to_house);
    (!is_permitted).then(|| {
        format!(
            "{} depends on {}: crates of {from_house} may not use crates of {to_house}",
            from.display(),
            to.display()
        )
    })
}

/// Returns the house of a crate in `crates/HOUSE/CRATE`; `None` for other packages.
fn house(folder: &Path) -> Option<&str> {
    let house = folder.parent()?;
    let is_in_crates = house.parent()?.file_name()? == "crates";
    is_in_crates.then(|| house.file_name()?.to_str()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(from: &str, to: &str) -> Option<String> {
        check(Path::new(from), Path::new(to))
    }

    #[test]
    fn runs_and_cluster_do_not_use_each_other() {
        assert_eq!(
            problem("/r/crates/runs/launcher", "/r/crates/client/model"),
            None
        );
        assert_eq!(
            problem("/r/crates/cluster/node", "/r/crates/cluster/clock"),
            None
        );
        assert_eq!(problem("/r/crates/program/cli", "/r/crates/runs/ui"), None);
        assert_eq!(problem("/r/xtask", "/r/crates/runs/ui"), None);
        for (from, to) in [
            ("crates/runs/launcher", "crates/cluster/clock"),
            ("crates/cluster/node", "crates/runs/ssh"),
            ("crates/client/client", "crates/cluster/clock"),
            ("crates/program/cli", "crates/interop/bench"),
        ] {
            let text = problem(&format!("/r/{from}"), &format!("/r/{to}")).unwrap_or_default();
            assert!(text.contains("may not use crates of"), "{from}: {text}");
        }
        let unknown = problem("/r/crates/new/one", "/r/crates/client/model").unwrap_or_default();
        assert!(unknown.contains("unknown house"), "{unknown}");
    }
}
