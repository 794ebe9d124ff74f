//! Tests of the Job, its names and labels, and invalid input.
#![allow(clippy::unwrap_used)]

use longshore_model::name;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{labels::uuid, *};
use longshore_launcher::{
    names,
    store::{SECRET_LIMIT, StoreError},
};

const UUID: &str = "8c0b0e94-3c1f-4a65-9d57-2f6d1c4b7a10";
const SECRET: &str = "hunter2";

fn config() -> Value {
    json!({
        "version": "1",
        "artifact_store": "gs://team/zenml/",
        "metadata": {"type": "mysql", "args": {"password": SECRET}},
        "backend": {
            "type": "orchestrator",
            "source": "zenml.backends.orchestrator.kubernetes.OrchestratorKubernetesBackend@zenml_0.3.8",
            "args": {"namespace": "ml"},
        },
        "pipeline": {
            "args": {"name": format!("training_digits_{UUID}"), "enable_cache": true},
            "datasource": {"id": "0e4a-17", "name": "digits"},
            "steps": {},
        },
    })
}

fn read(value: &Value) -> PipelineConfig {
    PipelineConfig::from_value(value.clone()).unwrap()
}

fn named(name: &str) -> PipelineConfig {
    let mut value = config();
    value["pipeline"]["args"]["name"] = json!(name);
    read(&value)
}

fn backend() -> OrchestratorKubernetesBackend {
    OrchestratorKubernetesBackend::default()
}

fn bundle() -> BundleInfo {
    BundleInfo {
        sha256: "0123456789abcdef".repeat(4),
        size: 3,
        delivery: Delivery::Folder {
            root: "/srv/zenml/staging".into(),
        },
    }
}

fn file(plan: &Plan, name: &str) -> String {
    let data = plan.config.data.as_ref().unwrap();
    String::from_utf8(data[name].0.clone()).unwrap()
}

/// The Job as JSON.
fn job_of(backend: &OrchestratorKubernetesBackend, config: &PipelineConfig) -> Value {
    serde_json::to_value(backend.create_job_object(config).unwrap()).unwrap()
}

#[test]
fn the_defaults_are_zenmls() {
    let backend = backend();
    assert_eq!(backend.image, "python:3-slim");
    assert_eq!(backend.job_prefix, "zenml-");
    assert!(backend.extra_labels.is_empty() && backend.extra_annotations.is_empty());
    assert_eq!(backend.namespace, None);
    assert_eq!(backend.image_pull_policy.as_str(), "IfNotPresent");
    let path = backend.kubernetes_config_path;
    assert_eq!(path.to_str(), Some("~/.kube/config"));
}

#[test]
fn the_job() {
    let backend = OrchestratorKubernetesBackend {
        image: "zenml:1".into(),
        extra_labels: [("team", "a b"), ("app", "mine")]
            .map(|(key, value)| (key.into(), value.into()))
            .into(),
        extra_annotations: [("note", "for all"), (names::COMMAND, "stolen")]
            .map(|(key, value)| (key.into(), value.into()))
            .into(),
        ..backend()
    };
    let plan = backend.plan(&read(&config()), Some(&bundle())).unwrap();
    let job = serde_json::to_value(&plan.roles[0].job).unwrap();
    insta::assert_snapshot!(longshore_model::yaml::write(&job));
    assert_eq!(
        (plan.roles.len(), &plan.service, &plan.bundle),
        (1, &None, &None)
    );
    assert_eq!(plan.run.as_str(), job["metadata"]["name"]);
    let secret = plan.config.metadata.name.as_deref();
    assert_eq!(secret, Some(plan.run.as_str()));
    // Only the Secret contains the config.
    let job = job.to_string();
    assert!(!job.contains(SECRET) && !job.contains("mysql"));
    let pipeline: Value = serde_json::from_str(&file(&plan, "pipeline.json")).unwrap();
    assert_eq!(pipeline, config());
    let program = file(&plan, "run_pipeline.py");
    assert!(program.contains("OrchestratorBaseBackend().run(config)"));
    assert!(program.contains(&format!("WORK = {:?}", names::WORK)));
    assert!(file(&plan, "run.json").contains(&bundle().sha256));
}

#[test]
fn the_pod_reads_the_original_text() {
    let text = r#"{"pipeline": {"z": 1, "args": {"name": "a"}, "b": 123456789012345678901234567890}, "artifact_store": "s3://b"}"#;
    let config = PipelineConfig::from_json(text).unwrap();
    let plan = backend().plan(&config, None).unwrap();
    assert_eq!(file(&plan, "pipeline.json"), text);
    // Without a bundle, the pod has no fetch container.
    let spec = plan.roles[0].job.spec.as_ref().unwrap();
    let pod = spec.template.spec.as_ref().unwrap();
    assert_eq!(pod.init_containers, None);
}

#[test]
fn settings_add_what_zenml_has_no_parameter_for() {
    let text = "image = 'file:1'\nlauncher_image = 'longshore:1'\nretries = 3\nnamespace = 'ml'\n\
         service_account = 'trainer'\nimage_pull_policy = 'Always'\n\
         [resources]\ngpu = 1\n[labels]\nteam = 'a'\nowner = 'b'\n[template.spec]\nruntimeClassName = 'nvidia'\n\
         [[template.spec.containers]]\nname = 'main'\nworkingDir = '/tmp'\n";
    let settings = Settings::parse(text, "longshore.toml".as_ref()).unwrap();
    let backend = OrchestratorKubernetesBackend {
        settings,
        extra_labels: [("team".to_owned(), "c".to_owned())].into(),
        ..backend()
    };
    let job = job_of(&backend, &read(&config()));
    let pod = &job["spec"]["template"]["spec"];
    let main = &pod["containers"][0];
    assert_eq!(job["metadata"]["namespace"], "ml");
    assert_eq!(job["spec"]["backoffLimit"], 3);
    assert_eq!(
        (
            &job["metadata"]["labels"]["team"],
            &job["metadata"]["labels"]["owner"]
        ),
        (&json!("c"), &json!("b"))
    );
    assert_eq!(
        (&main["image"], &main["imagePullPolicy"]),
        (&json!("python:3-slim"), &json!("IfNotPresent"))
    );
    assert_eq!(
        (&main["name"], &main["workingDir"]),
        (&job["metadata"]["name"], &json!("/tmp"))
    );
    assert_eq!(main["command"][0], "/longshore/bin/longshore");
    assert_eq!(main["resources"]["limits"]["nvidia.com/gpu"], "1");
    assert_eq!(
        (&pod["runtimeClassName"], &pod["serviceAccountName"]),
        (&json!("nvidia"), &json!("trainer"))
    );
    assert_eq!(pod["initContainers"][0]["name"], "install");
    for (text, key) in [
        ("[roles.a]\ncommand = 'x'\n", "roles"),
        ("cron = '@daily'\n", "cron"),
        ("jobset = true\n", "jobset"),
    ] {
        let settings = Settings::parse(text, "longshore.toml".as_ref()).unwrap();
        let backend = OrchestratorKubernetesBackend {
            settings,
            ..self::backend()
        };
        let problem = backend.plan(&read(&config()), None).unwrap_err();
        assert!(problem.to_string().contains(&format!("remove `{key}`")));
    }
}

#[test]
fn labels_that_do_not_fit_are_kept_as_annotations() {
    let long = format!("training_{}_{UUID}", "My Model! ".repeat(8));
    let job = job_of(&backend(), &named(&long));
    let (metadata, pod) = (&job["metadata"], &job["spec"]["template"]["metadata"]);
    let label = metadata["labels"]["pipeline"].as_str().unwrap();
    assert!(label.starts_with("training_My-Model--My") && label.len() <= 63);
    assert_eq!(metadata["labels"]["pipeline-id"], UUID);
    let full: Value =
        serde_json::from_str(metadata["annotations"][FULL_LABELS].as_str().unwrap()).unwrap();
    assert_eq!(full, json!({"pipeline": long}));
    assert_eq!(metadata["annotations"][names::FULL_NAME], long);
    assert_eq!(pod["labels"], metadata["labels"]);
    // Labels that fit need no annotation.
    let job = job_of(&backend(), &named("a"));
    assert_eq!(job["metadata"]["annotations"][FULL_LABELS], Value::Null);
}

#[test]
fn a_pipeline_without_data_or_id_has_no_such_labels() {
    let mut value = config();
    for source in [Value::Null, json!({}), json!({"id": null})] {
        value["pipeline"]["datasource"] = source;
        let mut backend = backend();
        backend
            .extra_labels
            .insert("datasource-id".into(), "x".into());
        let labels = &job_of(&backend, &read(&value))["metadata"]["labels"];
        assert_eq!(labels["datasource-id"], Value::Null);
        assert_eq!(labels["pipeline-id"], UUID);
    }
    value["pipeline"]["args"]["name"] = json!("training_plain");
    let labels = &job_of(&backend(), &read(&value))["metadata"]["labels"];
    assert_eq!(
        (&labels["app"], &labels["pipeline-id"]),
        (&json!("zenml"), &Value::Null)
    );
}

#[test]
fn the_first_uuid_is_found() {
    for (text, found) in [
        (format!("training_a_{UUID}"), Some(UUID)),
        (format!("é-{UUID}-{UUID}"), Some(UUID)),
        (format!("-{UUID}"), Some(UUID)),
        (UUID.to_uppercase(), None),
        (UUID[1..].to_owned(), None),
        (String::new(), None),
    ] {
        assert_eq!(uuid(&text), found, "{text}");
    }
}

#[test]
fn missing_and_wrong_values_are_named_by_path() {
    let problem = |change: &dyn Fn(&mut Value)| {
        let mut value = config();
        change(&mut value);
        let read = PipelineConfig::from_value(value);
        let asked = read.and_then(|config| {
            backend().create_job_object(&config)?;
            config.staging().map(drop)
        });
        asked.unwrap_err().to_string()
    };
    type Change = dyn Fn(&mut Value);
    let cases: [(&Change, &str); 8] = [
        (
            &|config| *config = json!([]),
            "\"config\" of the pipeline's config must be a mapping, but is a list",
        ),
        (
            &|config| config["pipeline"] = Value::Null,
            "no \"pipeline.args.name\"",
        ),
        (
            &|config| config["pipeline"]["args"] = json!("x"),
            "\"pipeline.args\" of the pipeline's config must be a mapping, but is a text",
        ),
        (
            &|config| config["pipeline"]["args"]["name"] = json!(7),
            "\"pipeline.args.name\" of the pipeline's config must be a text, but is a number",
        ),
        (
            &|config| config["pipeline"]["datasource"]["id"] = json!([1]),
            "\"pipeline.datasource.id\"",
        ),
        (
            &|config| config["artifact_store"] = Value::Null,
            "no \"artifact_store\"",
        ),
        (
            &|config| config["artifact_store"] = json!("hdfs://x/y"),
            "has an unknown scheme",
        ),
        (
            &|config| {
                config["backend"]["args"]["tar_path"] = json!("gs://team/zenml_working_1.tar.gz")
            },
            "which `run` did not upload",
        ),
    ];
    for (change, text) in cases {
        let problem = problem(change);
        assert!(problem.contains(text), "{problem}");
        assert!(!problem.contains(SECRET), "{problem}");
    }
}

#[test]
fn parameters_are_checked() {
    let problem = |backend: &OrchestratorKubernetesBackend| {
        let made = backend.create_job_object(&read(&config()));
        made.unwrap_err().to_string()
    };
    let pair = |key: &str| [(key.to_owned(), "x".to_owned())].into();
    let wrong_label = OrchestratorKubernetesBackend {
        extra_labels: pair("a b"),
        ..backend()
    };
    assert!(problem(&wrong_label).starts_with("extra_labels: invalid label key \"a b\""));
    let wrong_annotation = OrchestratorKubernetesBackend {
        extra_annotations: pair("/x"),
        ..backend()
    };
    assert!(problem(&wrong_annotation).starts_with("extra_annotations: invalid annotation key"));
    let wrong_namespace = OrchestratorKubernetesBackend {
        namespace: Some("My Space".into()),
        ..backend()
    };
    assert!(problem(&wrong_namespace).contains("namespace"));
    let mut value = config();
    value["data"] = json!("x".repeat(usize::try_from(SECRET_LIMIT).unwrap()));
    let large = backend().plan(&read(&value), None).unwrap_err();
    assert!(matches!(large, ZenmlError::TooLarge { .. }), "{large}");
}

#[test]
fn code_goes_below_staging_and_is_found_again() {
    let sha256 = "ab".repeat(32);
    for (artifacts, place) in [
        ("gs://team/zenml/", "gs://team/zenml/staging/bundles/"),
        ("s3://team", "s3://team/staging/bundles/"),
        ("az://team/a", "az://team/a/staging/bundles/"),
        ("/srv/artifacts", "/srv/artifacts/staging/bundles/"),
        ("file:///srv/artifacts", "/srv/artifacts/staging/bundles/"),
    ] {
        let mut value = config();
        value["artifact_store"] = json!(artifacts);
        let config = read(&value);
        let store = config.staging().unwrap();
        let place = format!("{place}{sha256}.tar.gz");
        assert_eq!(pipeline::tar_path(&store, &sha256), place);
        let sent = config.with_tar_path(&place).unwrap();
        assert_eq!(
            sent.value()["backend"]["args"],
            json!({"namespace": "ml", "tar_path": place})
        );
        assert_eq!(config.value(), &value, "the caller's is as it was");
        assert_eq!(sent.sent().unwrap(), Some((store, sha256.clone())));
        // The Job contains the location and downloads the bundle.
        let job = job_of(&backend(), &sent);
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["initContainers"][0]["name"], "fetch");
        assert_eq!(job["metadata"]["annotations"][names::BUNDLE], sha256);
    }
    let relative = read(&json!({"artifact_store": "local", "pipeline": {"args": {"name": "a"}}}));
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        relative.staging().unwrap(),
        Store::Folder(here.join("local/staging"))
    );
    let sent = relative.with_tar_path("/x").unwrap();
    assert_eq!(sent.value()["backend"], json!({"args": {"tar_path": "/x"}}));
    assert!(read(&config()).sent().unwrap().is_none());
}

#[tokio::test]
async fn a_deleted_bundle_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::Folder(folder.path().into());
    let gone = longshore_launcher::store::again(&"ab".repeat(32), &store, Default::default()).await;
    assert!(matches!(gone, Err(StoreError::Gone { .. })));
}

#[tokio::test]
async fn a_path_without_a_kubeconfig() {
    for path in ["/nonexistent/config", "~/nonexistent/config"] {
        let backend = OrchestratorKubernetesBackend {
            kubernetes_config_path: path.into(),
            ..backend()
        };
        let problem = backend.connect().await.err().unwrap().to_string();
        let begin = "The path you provided does not contain a valid Kubernetes config.";
        assert!(problem.starts_with(begin), "{problem}");
        assert!(
            problem.contains("nonexistent") && !problem.contains('~'),
            "{problem}"
        );
    }
}

#[test]
fn only_the_name_of_a_config_is_shown() {
    let shown = format!("{:?}", read(&config()));
    assert!(shown.contains("training_digits") && !shown.contains(SECRET));
}

proptest! {
    #[test]
    fn every_name_gives_a_job_that_kubernetes_takes(
        pipeline in ".{0,120}",
        prefix in "(zenml-|[A-Za-z0-9_. -]{0,70})",
        datasource in ".{1,90}",
        extra in ".{0,90}",
    ) {
        let mut value = config();
        value["pipeline"]["args"]["name"] = json!(pipeline);
        value["pipeline"]["datasource"]["id"] = json!(datasource);
        let backend = OrchestratorKubernetesBackend {
            job_prefix: prefix,
            extra_labels: [("extra".to_owned(), extra)].into(),
            ..backend()
        };
        let job = job_of(&backend, &read(&value));
        let metadata = &job["metadata"];
        let job_name = metadata["name"].as_str().unwrap();
        // The name with an index is still a valid host name.
        prop_assert!(name::dns_label("job", &format!("{job_name}-0")).is_ok(), "{job_name}");
        let pod = &job["spec"]["template"];
        prop_assert_eq!(&pod["spec"]["containers"][0]["name"], job_name);
        prop_assert_eq!(&pod["metadata"]["annotations"][names::CONTAINER], job_name);
        for (key, label) in metadata["labels"].as_object().unwrap() {
            prop_assert!(name::label_key(key).is_ok());
            prop_assert!(name::label_value(label.as_str().unwrap()).is_ok(), "{label}");
        }
        prop_assert_eq!(&metadata["annotations"][names::FULL_NAME], &pipeline);
    }

    #[test]
    fn long_names_stay_apart(stem in "[a-z]{60,90}") {
        let job = |tail: &str| labels::job_name("zenml-", &format!("{stem}{tail}"));
        prop_assert_ne!(job("a"), job("b"));
    }
}
