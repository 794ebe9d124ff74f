//! The kinds that a policy matches.

use std::collections::BTreeSet;

use longshore_builtin::json;
use longshore_engine::Engine;
use longshore_model::Gvk;
use serde_json::{Map, Value};

/// The largest number of kinds whose types are checked.
const MAX_KINDS: usize = 10;

/// The kinds that the rules of a policy name without wildcards, in order.
pub(super) fn matched_kinds(engine: &Engine, spec: &Map<String, Value>) -> Vec<Gvk> {
    let mut found: BTreeSet<(String, String, String)> = BTreeSet::new();
    let constraints = spec.get("matchConstraints").and_then(Value::as_object);
    for rule in constraints
        .into_iter()
        .flat_map(|constraints| json::items(constraints, "resourceRules"))
    {
        let groups = words(rule, "apiGroups");
        let versions = words(rule, "apiVersions");
        if groups
            .iter()
            .chain(&versions)
            .any(|word| word.contains('*'))
        {
            continue;
        }
        let mut resources = words(rule, "resources");
        resources.retain(|resource| !resource.contains(['*', '/']));
        let mut count = 0;
        for group in &groups {
            for version in &versions {
                for resource in &resources {
                    let Some(info) = engine.find(group, version, resource) else {
                        continue;
                    };
                    let kind = info.gvk.kind.to_string();
                    found.insert(((*group).to_owned(), (*version).to_owned(), kind));
                    count += 1;
                    if count == MAX_KINDS {
                        return kinds(found);
                    }
                }
            }
        }
    }
    kinds(found)
}

fn kinds(found: BTreeSet<(String, String, String)>) -> Vec<Gvk> {
    let kinds = found.into_iter().map(|(group, version, kind)| Gvk {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
    });
    kinds.collect()
}

/// The words of a list, sorted.
fn words<'a>(rule: &'a Map<String, Value>, field: &str) -> Vec<&'a str> {
    let list = rule.get(field).and_then(Value::as_array);
    let mut words: Vec<&str> = list
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    words.sort_unstable();
    words
}
