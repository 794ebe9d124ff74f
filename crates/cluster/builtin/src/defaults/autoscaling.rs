//! Defaults of HorizontalPodAutoscalers.

use serde_json::{Value, json};

use crate::json::{self, Object};

pub(crate) fn fill(object: &mut Object) {
    let spec = json::child(object, "spec");
    json::default(spec, "minReplicas", 1);
    if json::items(spec, "metrics").next().is_none() {
        let cpu = json!({
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 80},
            },
        });
        spec.insert("metrics".into(), json!([cpu]));
    }
    if let Some(Value::Object(behavior)) = spec.get_mut("behavior") {
        let up = json::child(behavior, "scaleUp");
        json::default(up, "stabilizationWindowSeconds", 0);
        rules(up, &[("Pods", 4), ("Percent", 100)]);
        rules(json::child(behavior, "scaleDown"), &[("Percent", 100)]);
    }
}

fn rules(rules: &mut Object, policies: &[(&str, i64)]) {
    json::default(rules, "selectPolicy", "Max");
    let policy = |(kind, value): &(&str, i64)| {
        json!({
            "type": kind, "value": value, "periodSeconds": 15,
        })
    };
    let policies: Vec<Value> = policies.iter().map(policy).collect();
    json::default(rules, "policies", policies);
}
