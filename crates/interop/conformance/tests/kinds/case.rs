//! A case of the corpus: an object to create and the steps that follow.

use longshore_conformance::{ApiTest, PatchType, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::normalize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// API version and plural: `apps/v1 deployments`.
    r#in: String,
    create: Value,
    #[serde(default)]
    then: Vec<Step>,
    /// True if the object is cluster-scoped; its name starts with `$NS`.
    #[serde(default)]
    wide: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    /// A merge patch.
    Patch(Value),
    /// A merge patch of the status subresource.
    Status(Value),
    /// A merge patch of the approval subresource.
    Approval(Value),
    /// An update without a resource version.
    Put(Value),
    /// An update of the finalize subresource of a namespace.
    Finalize(Value),
    Delete(Value),
}

impl Case {
    /// The responses of the server to all steps.
    pub(crate) async fn run(&self, test: &ApiTest) -> Value {
        let (group_version, plural) = self.r#in.split_once(' ').unwrap();
        let path = if self.wide {
            test.cluster_path(group_version, plural)
        } else {
            test.path(group_version, plural)
        };
        let fill = |value: &Value| -> Value {
            let text = value.to_string().replace("$NS", test.namespace());
            serde_json::from_str(&text).unwrap()
        };
        let mut object = fill(&self.create);
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let one = format!("{path}/{name}");
        object["apiVersion"] = json!(group_version);
        let mut responses = vec![test.post(&path, &object).await];
        for step in &self.then {
            let response = match step {
                Step::Patch(patch) => test.patch(&one, PatchType::Merge, &fill(patch)).await,
                Step::Status(patch) | Step::Approval(patch) => {
                    let part = match step {
                        Step::Approval(_) => "approval",
                        _ => "status",
                    };
                    let part = format!("{one}/{part}");
                    test.patch(&part, PatchType::Merge, &fill(patch)).await
                }
                Step::Put(object) | Step::Finalize(object) => {
                    let mut object = fill(object);
                    object["apiVersion"] = json!(group_version);
                    let part = match step {
                        Step::Finalize(_) => "/finalize",
                        _ => "",
                    };
                    test.put(&format!("{one}{part}"), &object).await
                }
                Step::Delete(options) => test.delete_with(&one, &fill(options)).await,
            };
            responses.push(response);
        }
        if responses[0].code == 201 {
            // The next case may use the same name.
            let bare = json!({"metadata": {"finalizers": null}});
            test.patch(&one, PatchType::Merge, &bare).await;
            let at_once = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
            test.delete_with(&one, &at_once).await;
        }
        let shown =
            |response: &Response| normalize::response(response, test.namespace(), &self.r#in);
        responses.iter().map(shown).collect()
    }
}
