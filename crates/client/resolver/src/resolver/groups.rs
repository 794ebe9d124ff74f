//! Combines the selectors of all roles into few list requests, and assigns the
//! listed pods to the roles.

use std::collections::BTreeMap;

use longshore_client::LabelSelector;
use longshore_model::facts::PodFacts;

use crate::tasks::Selected;

/// The roles and their selectors, in the given order.
pub(super) type Mapping = Vec<(String, Vec<LabelSelector>)>;

/// Returns the selectors to list with: a single one if it covers all selectors and
/// little else, otherwise one for each label that several selectors share.
pub(super) fn list_selectors(mapping: &Mapping) -> Vec<LabelSelector> {
    let all: Vec<LabelSelector> = mapping
        .iter()
        .flat_map(|(_, selectors)| selectors.iter().cloned())
        .collect();
    if let Some(one) = LabelSelector::covering(&all) {
        return vec![one];
    }
    let mut by_label: BTreeMap<String, Vec<LabelSelector>> = BTreeMap::new();
    let mut list_selectors = Vec::new();
    for selector in all {
        let label = selector.narrowest().map(|(label, _)| label.to_owned());
        match label {
            Some(label) => by_label.entry(label).or_default().push(selector),
            None if list_selectors.contains(&selector) => {}
            None => list_selectors.push(selector),
        }
    }
    // All selectors of a group have the group's label, so that one selector can
    // cover them.
    let covering = by_label
        .values()
        .filter_map(|group| LabelSelector::covering(group));
    list_selectors.extend(covering);
    list_selectors
}

/// Assigns pods to the roles and selectors that match them.
pub(super) fn select<'a>(mapping: &'a Mapping, pods: &[&'a PodFacts]) -> Vec<Selected<'a>> {
    let of_role = |(role, selectors): &'a (String, Vec<LabelSelector>)| Selected {
        role,
        pods: selectors
            .iter()
            .map(|selector| {
                let pods = pods.iter().copied();
                pods.filter(|pod| selector.matches(&pod.metadata.labels))
                    .collect()
            })
            .collect(),
    };
    mapping.iter().map(of_role).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn listed(selectors: &[&str]) -> Vec<String> {
        let selectors = selectors.iter().map(|text| text.parse().unwrap()).collect();
        let list_selectors = list_selectors(&vec![("worker".to_owned(), selectors)]);
        list_selectors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn selectors_with_a_common_label_need_one_request() {
        assert_eq!(listed(&["job-name=a"]), ["job-name=a"]);
        assert_eq!(listed(&["job-name=a", "job-name=b"]), ["job-name in (a,b)"]);
        assert_eq!(
            listed(&["app=x,role=ps", "role=worker,app=x"]),
            ["app=x,role in (ps,worker)"]
        );
    }

    #[test]
    fn selectors_without_a_common_label_need_separate_requests() {
        assert_eq!(
            listed(&["job-name=a", "role=ps", "job-name in (b,c)", "!x", "!x"]),
            ["!x", "job-name in (a,b,c)", "role=ps"]
        );
        assert_eq!(listed(&[""]), [""]);
        assert_eq!(listed(&[]), Vec::<String>::new());
    }
}
