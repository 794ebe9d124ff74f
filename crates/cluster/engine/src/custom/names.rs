//! Accepts names of definitions. A name is accepted if no other definition in
//! the same group uses it.

use std::collections::HashSet;

use jiff::Timestamp;
use longshore_builtin::{definition::is_condition_true, json};
use serde_json::{Map, Value};

use super::{DefinitionSummary, set_condition};

/// The names in use by the definitions of a group.
#[derive(Debug, Default)]
struct UsedNames<'a> {
    resources: HashSet<&'a str>,
    kinds: HashSet<&'a str>,
}

fn text<'a>(names: &'a Value, field: &str) -> &'a str {
    names[field].as_str().unwrap_or_default()
}

fn list(names: &Value, field: &str) -> Vec<String> {
    let words = names[field].as_array().into_iter().flatten();
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

impl<'a> UsedNames<'a> {
    fn of(definitions: impl Iterator<Item = &'a DefinitionSummary>) -> Self {
        let mut taken = Self::default();
        for definition in definitions {
            taken
                .resources
                .extend(definition.resources.iter().map(|name| &**name));
            taken
                .kinds
                .extend(definition.kinds.iter().map(|name| &**name));
        }
        taken
    }
}

/// Updates the accepted names and the conditions `NamesAccepted` and `Established` of a definition.
/// `group` contains all definitions of its group. Returns true if the definition has changed.
pub(crate) fn accept<'a>(
    definition: &mut json::Object,
    group: impl Iterator<Item = &'a DefinitionSummary>,
    now: Timestamp,
) -> bool {
    let asked = json::at(definition, "spec.names")
        .cloned()
        .unwrap_or_default();
    let old = json::at(definition, "status.acceptedNames")
        .cloned()
        .unwrap_or_default();
    if asked == old {
        return false;
    }
    let taken = UsedNames::of(group);
    let mut names = old.as_object().cloned().unwrap_or_default();
    let mut problem: Option<(String, String)> = None;
    for (field, reason, taken) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let conflicts = match field {
            "shortNames" => {
                let own: HashSet<String> = list(&old, field).into_iter().collect();
                let new = list(&asked, field);
                let fresh = new.into_iter().filter(|name| !own.contains(name));
                fresh.filter(|name| taken.contains(name.as_str())).collect()
            }
            _ if text(&asked, field) == text(&old, field) => Vec::new(),
            _ if taken.contains(text(&asked, field)) => vec![text(&asked, field).to_owned()],
            _ => Vec::new(),
        };
        if conflicts.is_empty() {
            set(&mut names, field, &asked);
            continue;
        }
        let conflicts: Vec<_> = conflicts
            .iter()
            .map(|name| format!("{name:?} is already in use"))
            .collect();
        let message = match conflicts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        problem = Some((reason.to_owned(), message));
    }
    set(&mut names, "categories", &asked);
    let established = is_condition_true(definition, "Established");
    let before = definition.get("status").cloned();
    json::child(definition, "status").insert("acceptedNames".into(), Value::Object(names));
    let (reason, message) = match &problem {
        Some((reason, message)) => (reason.as_str(), message.as_str()),
        None => ("NoConflicts", "no conflicts found"),
    };
    set_condition(
        definition,
        "NamesAccepted",
        problem.is_none(),
        reason,
        message,
        now,
    );
    if !established {
        let (reason, message) = match &problem {
            Some(_) => ("NotAccepted", "not all names are accepted"),
            None => (
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        };
        set_condition(
            definition,
            "Established",
            problem.is_none(),
            reason,
            message,
            now,
        );
    }
    definition.get("status") != before.as_ref()
}

fn set(names: &mut Map<String, Value>, field: &str, asked: &Value) {
    match asked.get(field) {
        Some(value) => names.insert(field.to_owned(), value.clone()),
        None => names.remove(field),
    };
}
