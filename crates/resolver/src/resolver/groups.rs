//! Many selectors, few questions: which label selectors the cluster is asked,
//! and who of the answer belongs to which role.

use std::collections::BTreeMap;

use longshore_client::LabelSelector;

use crate::{facts::PodFacts, tasks::Selected};

/// The roles and their selectors, in their order.
pub(super) type Mapping = Vec<(String, Vec<LabelSelector>)>;

/// The selectors to ask with: one where a single one covers all of them and
/// little else, else one for each label that some have in common.
pub(super) fn questions(mapping: &Mapping) -> Vec<LabelSelector> {
    let all: Vec<LabelSelector> = mapping
        .iter()
        .flat_map(|(_, selectors)| selectors.iter().cloned())
        .collect();
    if let Some(one) = LabelSelector::covering(&all) {
        return vec![one];
    }
    let mut by_label: BTreeMap<String, Vec<LabelSelector>> = BTreeMap::new();
    let mut questions = Vec::new();
    for selector in all {
        let label = selector.narrowest().map(|(label, _)| label.to_owned());
        match label {
            Some(label) => by_label.entry(label).or_default().push(selector),
            None if questions.contains(&selector) => {}
            None => questions.push(selector),
        }
    }
    // All of a group have its label, so that they are covered.
    let covering = by_label
        .values()
        .filter_map(|group| LabelSelector::covering(group));
    questions.extend(covering);
    questions
}

/// Who of all pods belongs to which role and selector.
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

    fn asked(selectors: &[&str]) -> Vec<String> {
        let selectors = selectors.iter().map(|text| text.parse().unwrap()).collect();
        let questions = questions(&vec![("worker".to_owned(), selectors)]);
        questions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn selectors_of_one_label_are_one_question() {
        assert_eq!(asked(&["job-name=a"]), ["job-name=a"]);
        assert_eq!(asked(&["job-name=a", "job-name=b"]), ["job-name in (a,b)"]);
        assert_eq!(
            asked(&["app=x,role=ps", "role=worker,app=x"]),
            ["app=x,role in (ps,worker)"]
        );
    }

    #[test]
    fn what_has_no_label_in_common_is_asked_apart() {
        assert_eq!(
            asked(&["job-name=a", "role=ps", "job-name in (b,c)", "!x", "!x"]),
            ["!x", "job-name in (a,b,c)", "role=ps"]
        );
        assert_eq!(asked(&[""]), [""]);
        assert_eq!(asked(&[]), Vec::<String>::new());
    }
}
