//! Label selectors in the texts of events.

use longshore_model::selector::StructuredSelector;

/// Returns a selector in the format of Kubernetes' components.
pub(crate) fn printed(selector: &StructuredSelector) -> String {
    let mut text = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
    for (key, value) in &selector.match_labels {
        text.push_str(&format!("{key}: {value},"));
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for one in &selector.match_expressions {
        text.push_str(&format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            one.key,
            one.operator,
            one.values.join(" ")
        ));
    }
    text.push_str("},}");
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_printed_as_in_kubernetes() {
        let selector: StructuredSelector = serde_json::from_value(json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
        }))
        .unwrap();
        assert_eq!(
            printed(&selector),
            "&LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:\
             []LabelSelectorRequirement{LabelSelectorRequirement{Key:tier,Operator:In,\
             Values:[a b],},},}"
        );
    }
}
