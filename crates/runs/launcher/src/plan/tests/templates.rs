//! Templates of pods, and other settings of a run's pods.

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
    // Reading the result as a Job loses no field.
    assert_eq!(
        refused("spec]\nrestartPolicyRules = 'a'\nactiveDeadlineSeconds = '1h'"),
        "invalid pod template for role \"main\": unknown field \"spec.template.spec.restartPolicyRules\"; correct `template` or `affinity`"
    );
    assert_eq!(
        refused("spec]\nactiveDeadlineSeconds = '1h'"),
        "invalid pod template for role \"main\": field \"spec.template.spec.activeDeadlineSeconds\" must be an integer in the range of the field, not \"1h\"; correct `template` or `affinity`"
    );
    for (key, value) in [("command", "['true']"), ("args", "['--lr', '1']")] {
        let error = refused(&format!(
            "spec]\ncontainers = [{{ name = 'main', {key} = {value} }}]"
        ));
        let expected = format!("the template sets `{key}` of the container \"main\"");
        assert!(error.contains(&expected), "{error}");
        assert!(
            error.contains("the command \"sh -c a\" of the run"),
            "{error}"
        );
    }
    assert_eq!(
        refused(
            "spec]\ncontainers = [{ name = 'main', resources = { limits = { memory = '256m' } } }]"
        ),
        "invalid pod template for role \"main\": field \"spec.template.spec.containers[0].resources.limits.memory\" is \"256m\": the suffix m means thousandths of a byte; write 256Mi (powers of 1024) or 256M (powers of 1000); correct `template` or `affinity`"
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

#[test]
fn the_user_of_the_command_fetches_the_code() {
    let code = bundle(Delivery::Url(SignedUrl::new(
        "https://store/bundle".to_owned(),
    )));
    // The security contexts of the pod, of the command, and of `fetch` in the template, and the
    // user and group that fetch the code.
    let cases = [
        (json!({}), json!({}), json!({}), (None, None)),
        (json!({"runAsUser": 7}), json!({}), json!({}), (None, None)),
        (
            json!({}),
            json!({"runAsUser": 7}),
            json!({}),
            (Some(7), None),
        ),
        (
            json!({}),
            json!({"runAsGroup": 8}),
            json!({}),
            (None, Some(8)),
        ),
        (
            json!({"runAsUser": 9, "fsGroup": 9}),
            json!({"runAsUser": 7, "runAsGroup": 8, "readOnlyRootFilesystem": true}),
            json!({}),
            (Some(7), Some(8)),
        ),
        (
            json!({}),
            json!({"runAsUser": 7}),
            json!({"runAsUser": 0}),
            (Some(0), None),
        ),
    ];
    for (of_pod, main, fetch, expected) in cases {
        let template = json!({"spec": {
            "securityContext": of_pod,
            "initContainers": [{"name": "fetch", "securityContext": fetch}],
            "containers": [{"name": "main", "image": "other:1", "securityContext": main}],
        }});
        let settings = toml::to_string(&json!({"command": "a", "template": template})).unwrap();
        let plan = planned(&settings, &[], Some(&code));
        let pod = plan.roles[0]
            .job
            .spec
            .clone()
            .unwrap()
            .template
            .spec
            .unwrap();
        let inits = pod.init_containers.unwrap();
        let fetch = inits.iter().find(|init| init.name == "fetch").unwrap();
        assert_eq!(fetch.image.as_deref(), Some("other:1"));
        let context = fetch.security_context.clone().unwrap_or_default();
        assert_eq!(
            (context.run_as_user, context.run_as_group),
            expected,
            "{main}"
        );
    }
}
