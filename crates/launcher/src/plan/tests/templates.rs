//! Templates of pods, and what pods of a run have.

use super::*;

#[test]
fn init_containers_request_no_more_than_the_command() {
    let settings = "launcher_image = 'longshore:1'\nresources = { cpu = '50m', memory = '100Mi' }";
    let plan = planned(settings, &["true"], None);
    let pod = pod_spec(&plan);
    let expected = json!({
        "requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "100Mi"},
    });
    assert_eq!(pod["initContainers"][0]["resources"], expected);
}

#[test]
fn restricted_pods() {
    let plan = planned("restricted = true", &["true"], None);
    let pod = pod_spec(&plan);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let main = &pod["containers"][0]["securityContext"];
    assert_eq!(main["allowPrivilegeEscalation"], false);
}

#[test]
fn pods_with_the_network_of_the_node() {
    let settings = "host_network = true\n[roles.worker]\ncount = 2\n\
                    [roles.logger]\nhost_network = false";
    let plan = planned(settings, &["true"], None);
    let network = |role: &str| {
        let planned = plan.roles.iter().find(|planned| planned.role.name == role);
        let spec = planned.unwrap().job.spec.clone().unwrap();
        let pod = spec.template.spec.unwrap();
        (pod.host_network, pod.dns_policy)
    };
    let of_cluster = "ClusterFirstWithHostNet".to_owned();
    assert_eq!(network("worker"), (Some(true), Some(of_cluster)));
    assert_eq!(network("logger"), (None, None));
}

#[test]
fn invalid_templates() {
    let refused = |template: &str| {
        let settings = format!("command = 'a'\n[template.{template}");
        let settings = Settings::parse(&settings, Path::new("longshore.toml")).unwrap();
        let spec = resolve(&settings, &Flags::default(), "code").unwrap();
        let run = RunName::new("code", "ab2cd");
        plan(&spec, &run, "default", None).unwrap_err().to_string()
    };
    assert_eq!(
        refused("spec]\nruntimeClas = 'a'"),
        "invalid pod template for role \"main\": unknown field \"spec.template.spec.runtimeClas\"; correct `template` or `affinity`"
    );
    assert!(
        refused("metadata.labels]\n'longshore.dev/run' = 'x'").contains("is reserved for the run")
    );
    // No field is lost on the way into the type of a Job.
    assert_eq!(
        refused("spec]\nrestartPolicyRules = 'a'\nactiveDeadlineSeconds = '1h'"),
        "invalid pod template for role \"main\": unknown field \"spec.template.spec.restartPolicyRules\"; correct `template` or `affinity`"
    );
    assert_eq!(
        refused("spec]\nactiveDeadlineSeconds = '1h'"),
        "invalid pod template for role \"main\": field \"spec.template.spec.activeDeadlineSeconds\" must be an integer in the range of the field, not \"1h\"; correct `template` or `affinity`"
    );
    let replaced = "spec]\ncontainers = [{ '$patch' = 'replace' }, { name = 'other' }]";
    assert!(refused(replaced).contains("the container \"main\" must stay"));
}

#[test]
fn every_field_of_a_template_is_kept() {
    let settings = "command = 'a'\n[template.spec]\nhostname = 'h'\noverhead = { cpu = 1 }\n\
                    [template.spec.os]\nname = 'linux'\n\
                    [affinity.nodeAffinity]\npreferredDuringSchedulingIgnoredDuringExecution = []";
    let plan = planned(settings, &["true"], None);
    let pod = pod_spec(&plan);
    assert_eq!(pod["hostname"], "h");
    assert_eq!(
        pod["overhead"],
        json!({"cpu": "1"}),
        "a quantity is a string"
    );
    assert_eq!(pod["os"], json!({"name": "linux"}));
    let none = json!({"preferredDuringSchedulingIgnoredDuringExecution": []});
    assert_eq!(pod["affinity"]["nodeAffinity"], none);
}

#[test]
fn numbers_that_do_not_fit_their_field_are_refused() {
    let settings = Settings::parse("command = 'a'\nretries = 3000000000", Path::new("a")).unwrap();
    let spec = resolve(&settings, &Flags::default(), "code").unwrap();
    let refused = plan(&spec, &RunName::new("code", "ab2cd"), "default", None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "invalid retries 3000000000: use at most 2147483647"
    );
}
