//! A case of the corpus: an object to create, and what is done to it then.

use longshore_conformance::{Answer, ApiTest, PatchType};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::normal;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// Group and version, and the plural: `apps/v1 deployments`.
    r#in: String,
    create: Value,
    #[serde(default)]
    then: Vec<Step>,
    /// For objects that belong to no namespace; their names begin with `$NS`.
    #[serde(default)]
    wide: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    /// A merge patch.
    Patch(Value),
    /// A merge patch of the status.
    Status(Value),
    /// A merge patch of the approval.
    Approval(Value),
    /// A whole new object; without a version.
    Put(Value),
    /// A whole new namespace, with its finalizers.
    Finalize(Value),
    Delete(Value),
}

impl Case {
    /// What the server answers, step by step.
    pub(crate) async fn run(&self, test: &ApiTest) -> Value {
        let (group_version, plural) = self.r#in.split_once(' ').unwrap();
        let path = if self.wide {
            test.wide(group_version, plural)
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
        let mut answers = vec![test.post(&path, &object).await];
        for step in &self.then {
            let answer = match step {
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
            answers.push(answer);
        }
        if answers[0].code == 201 {
            // The next case may use the name again.
            let bare = json!({"metadata": {"finalizers": null}});
            test.patch(&one, PatchType::Merge, &bare).await;
            let at_once = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
            test.delete_with(&one, &at_once).await;
        }
        let shown = |answer: &Answer| normal::answer(answer, test.namespace(), &self.r#in);
        answers.iter().map(shown).collect()
    }
}
