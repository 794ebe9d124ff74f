//! The required node affinity of a pod.

use longshore_model::Quantity;
use longshore_model::facts::NodeFacts;
use serde_json::Value;

fn terms(affinity: &Value) -> &[Value] {
    let required = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = affinity.pointer(required).and_then(Value::as_array);
    terms.map_or(&[], Vec::as_slice)
}

fn rules(term: &Value) -> impl Iterator<Item = (&Value, bool)> {
    let list = |key: &str| term[key].as_array().into_iter().flatten();
    let labels = list("matchExpressions").map(|rule| (rule, false));
    labels.chain(list("matchFields").map(|rule| (rule, true)))
}

/// Returns true if a node matches the affinity: all rules of at least one term.
pub(super) fn allows(affinity: &Value, node: &NodeFacts) -> bool {
    let terms = terms(affinity);
    let holds = |term: &Value| {
        let mut rules = rules(term).peekable();
        rules.peek().is_some() && rules.all(|(rule, of_fields)| is_met(rule, of_fields, node))
    };
    terms.is_empty() || terms.iter().any(holds)
}

/// A rule that no node meets, as a text, if there is only one term. Several terms are alternatives,
/// so that no single rule is the cause.
pub(super) fn unmet(affinity: &Value, nodes: &[NodeFacts]) -> Option<String> {
    let [term] = terms(affinity) else {
        return None;
    };
    let (rule, _) = rules(term)
        .find(|(rule, of_fields)| !nodes.iter().any(|node| is_met(rule, *of_fields, node)))?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let values: Vec<String> = values(rule).map(str::to_owned).collect();
    let (key, operator) = (word(&rule["key"]), word(&rule["operator"]));
    Some(match (operator.as_str(), &values[..]) {
        ("In", [value]) => format!("{key}={value}"),
        ("Exists", _) => key,
        _ => format!("{key} {operator} ({})", values.join(", ")),
    })
}

fn values(rule: &Value) -> impl Iterator<Item = &str> {
    let values = rule["values"].as_array().into_iter().flatten();
    values.filter_map(Value::as_str)
}

fn is_met(rule: &Value, of_fields: bool, node: &NodeFacts) -> bool {
    let key = rule["key"].as_str().unwrap_or_default();
    let found = match of_fields {
        // Kubernetes supports no other field.
        true => (key == "metadata.name").then_some(&node.metadata.name),
        false => node.metadata.labels.get(key),
    };
    let found = found.map(String::as_str);
    let is_one = || found.is_some_and(|found| values(rule).any(|value| value == found));
    let number = |text: &str| text.parse::<Quantity>().ok().map(|number| number.value());
    let compared = |holds: fn(f64, f64) -> bool| {
        let bound = values(rule).next().and_then(number);
        matches!((found.and_then(number), bound), (Some(has), Some(bound)) if holds(has, bound))
    };
    match rule["operator"].as_str().unwrap_or_default() {
        "In" => is_one(),
        "NotIn" => !is_one(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compared(|has, bound| has > bound),
        "Lt" => compared(|has, bound| has < bound),
        _ => false,
    }
}
