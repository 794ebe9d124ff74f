//! The fields of ClusterRoles that determine the aggregation.

use longshore_client::{Error, Item, LabelSelector, kinds::Any};
use longshore_model::selector::StructuredSelector;
use serde::Deserialize;
use serde_json::Value;

/// The fields of an aggregated role.
#[derive(Debug)]
pub(super) struct Aggregation {
    pub(super) selectors: Vec<LabelSelector>,
    /// The current rules of the role.
    pub(super) rules: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregationRule {
    cluster_role_selectors: Option<Vec<StructuredSelector>>,
}

impl Aggregation {
    /// Reads a role; `None` if it is not aggregated.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Any>) -> Result<Option<Self>, Error> {
        let Some(rule) = item.field::<AggregationRule>(&["aggregationRule"])? else {
            return Ok(None);
        };
        let selectors = rule.cluster_role_selectors.unwrap_or_default();
        let selectors = selectors.into_iter().map(|selector| {
            LabelSelector::try_from(selector).map_err(|error| Error::Invalid(error.to_string()))
        });
        Ok(Some(Self {
            selectors: selectors.collect::<Result<_, _>>()?,
            rules: rules(item)?,
        }))
    }
}

/// The rules of a role.
pub(super) fn rules(item: &Item<Any>) -> Result<Vec<Value>, Error> {
    Ok(item.field(&["rules"])?.unwrap_or_default())
}

/// Adds the rules that are not in `gathered` yet.
pub(super) fn gather(gathered: &mut Vec<Value>, rules: Vec<Value>) {
    for rule in rules {
        if !gathered.contains(&rule) {
            gathered.push(rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_not_repeated() {
        let rule = |verb: &str| json!({"verbs": [verb]});
        let mut gathered = vec![rule("get")];
        gather(&mut gathered, vec![rule("list"), rule("get"), rule("list")]);
        assert_eq!(gathered, [rule("get"), rule("list")]);
    }
}
