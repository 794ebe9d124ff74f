//! The delivery of the code to tasks, and their commands.

use super::*;

#[test]
fn a_signed_url_is_only_in_the_runs_secret() {
    let url = SignedUrl::new("https://h/b/x.tar.gz?sig=hush");
    let bundle = bundle(Delivery::Url(url.clone()));
    let plan = planned("", &["true"], Some(&bundle));
    let download = config(&plan).bundle.unwrap().download.unwrap();
    assert_eq!((download.url, download.size), (url, 3));
    assert!(plan.bundle.is_none());
    let pod = pod_spec(&plan);
    let names = |values: &Value| -> Vec<String> {
        let values = values.as_array().unwrap().iter();
        values.map(|value| value["name"].to_string()).collect()
    };
    assert_eq!(names(&pod["initContainers"]), ["\"fetch\""]);
    assert_eq!(names(&pod["volumes"]), ["\"longshore\"", "\"config\""]);
    let mounts = &pod["initContainers"][0]["volumeMounts"];
    assert_eq!(names(mounts), ["\"longshore\"", "\"config\""]);
    assert!(!plan.to_yaml().unwrap().contains("hush"));
    assert!(!format!("{bundle:?} {:?}", config(&plan)).contains("hush"));
}

#[test]
fn without_code_there_is_no_bundle_and_no_fetch_container() {
    let plan = planned("code = false", &["true"], None);
    assert!(plan.bundle.is_none());
    assert!(pod_spec(&plan).get("initContainers").is_none());
    assert!(plan.service.is_none());
}

#[test]
fn the_command_is_escaped_where_kubernetes_would_expand_it() {
    let plan = planned("", &["sh", "-c", "echo $$ $(HOME) $HOME", ""], None);
    let command = &pod_spec(&plan)["containers"][0]["command"];
    let words: Vec<&str> = command
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(words[4..], ["sh", "-c", "echo $$$ $$(HOME) $HOME", ""]);
    // The human-readable name is unchanged.
    let shown = &job(&plan, 0)["metadata"]["annotations"][names::COMMAND];
    assert_eq!(shown, r#"["sh","-c","echo $$ $(HOME) $HOME",""]"#);
}

#[test]
fn standard_input_belongs_to_the_main_container() {
    let with = |input| {
        let flags = Flags {
            input,
            command: vec!["cat".into()],
            ..Flags::default()
        };
        let spec = resolve(&Settings::default(), &flags, "code").unwrap();
        let plan = plan(&spec, &RunName::new("code", "ab2cd"), "default", None).unwrap();
        let main = pod_spec(&plan)["containers"][0].take();
        ["stdin", "stdinOnce", "tty"].map(|field| main[field] == true)
    };
    use crate::config::Input;
    assert_eq!(with(Input::None), [false, false, false]);
    assert_eq!(with(Input::Piped), [true, true, false]);
    assert_eq!(with(Input::Terminal), [true, false, true]);
}

#[test]
fn tasks_on_the_embedded_cluster_fetch_their_code_themselves() {
    let planned = |settings: &str, change: fn(&mut crate::RunSpec)| {
        let settings = Settings::parse(settings, Path::new("longshore.toml")).unwrap();
        let flags = Flags {
            command: vec!["train".to_owned()],
            ..Flags::default()
        };
        let mut spec = resolve(&settings, &flags, "code").unwrap();
        spec.caller = Some(crate::Caller::default());
        change(&mut spec);
        let root = "/store".into();
        let bundle = bundle(Delivery::Folder { root });
        let plan = plan(
            &spec,
            &RunName::new("code", "ab2cd"),
            "default",
            Some(&bundle),
        )
        .unwrap();
        let pod = pod_spec(&plan);
        let inits = pod["initContainers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let inits: Vec<String> = inits
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect();
        let main = pod["containers"][0].clone();
        let mounts = main["volumeMounts"].as_array().unwrap();
        let has_bundle = mounts
            .iter()
            .any(|mount| mount["mountPath"] == names::BUNDLE_DIR);
        (inits, main["command"].clone(), has_bundle)
    };
    let (inits, command, has_bundle) = planned("", |_| {});
    assert!(inits.is_empty() && has_bundle);
    assert_eq!(
        command,
        json!(["longshore", "bootstrap", "exec", "--fetch", "--", "train"])
    );
    let template = "[template.spec]\ninitContainers = [{ name = 'check', image = 'i' }]";
    let (inits, command, has_bundle) = planned(template, |_| {});
    assert_eq!(
        (inits, has_bundle),
        (vec!["check".to_owned(), "fetch".to_owned()], false)
    );
    assert_eq!(
        command,
        json!(["longshore", "bootstrap", "exec", "--", "train"])
    );
    let elsewhere: fn(&mut crate::RunSpec) = |spec| spec.caller = None;
    let (inits, _, has_bundle) = planned("", elsewhere);
    assert_eq!((inits, has_bundle), (vec!["fetch".to_owned()], false));
}

#[test]
fn the_callers_environment_is_recorded_in_an_annotation() {
    let settings = "[template.spec]\ncontainers = [{ name = 'main', env = [{ name = 'PATH', value = '/bin' }] }]\n\
                    [roles.a]\n[roles.b]\nresources = { gpu = 1 }";
    let settings = Settings::parse(settings, Path::new("longshore.toml")).unwrap();
    let flags = Flags {
        command: vec!["train".into()],
        ..Flags::default()
    };
    let mut spec = resolve(&settings, &flags, "code").unwrap();
    let env = ["PATH", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES"]
        .map(|name| (name.to_owned(), Some("x".to_owned())));
    spec.caller = Some(crate::Caller {
        env: env.into(),
        ..Default::default()
    });
    let plan = plan(&spec, &RunName::new("code", "ab2cd"), "default", None).unwrap();
    let recorded = |job: &Value| {
        job["metadata"]["annotations"][names::CALLER]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(
        recorded(&job(&plan, 0)).unwrap(),
        r#"{"env":{"CUDA_VISIBLE_DEVICES":"x","VIRTUAL_ENV":"x"}}"#,
        "the template's PATH counts"
    );
    assert_eq!(
        recorded(&job(&plan, 1)).unwrap(),
        r#"{"env":{"VIRTUAL_ENV":"x"}}"#,
        "the node allocates the devices"
    );
    for job in [job(&plan, 0), job(&plan, 1)] {
        let template = &job["spec"]["template"];
        assert_eq!(recorded(template), recorded(&job));
        let env = template["spec"]["containers"][0]["env"].as_array().unwrap();
        let variable = env
            .iter()
            .find(|one| one["name"] == names::CALLER_VARIABLE)
            .unwrap();
        assert_eq!(
            variable["valueFrom"]["fieldRef"]["fieldPath"],
            "metadata.annotations['longshore.dev/caller']"
        );
    }
}

#[test]
fn tasks_of_dev_are_supervised() {
    let flags = Flags {
        command: vec!["python".to_owned(), "train.py".to_owned()],
        ..Flags::default()
    };
    let mut spec = resolve(&Settings::default(), &flags, "code").unwrap();
    spec.dev = Some(crate::dev::DevSpec {
        grace: std::time::Duration::from_millis(1_500),
        record: crate::dev::DevRecord {
            folder: "/home/me/app".to_owned(),
            ignore: vec!["*.tmp".to_owned()],
            grace_milliseconds: 1_500,
        },
    });
    let run = RunName::new(&spec.name, "ab2cd");
    let plan = plan(&spec, &run, "default", None).unwrap();
    let annotations = plan.roles[0].job.metadata.annotations.as_ref().unwrap();
    assert_eq!(
        annotations["longshore.dev/dev"],
        r#"{"folder":"/home/me/app","graceMilliseconds":1500,"ignore":["*.tmp"]}"#
    );
    let command = &pod_spec(&plan)["containers"][0]["command"];
    let expected = [
        "longshore",
        "bootstrap",
        "dev",
        "--grace",
        "1500",
        "--",
        "python",
        "train.py",
    ];
    assert_eq!(*command, json!(expected));
}

#[test]
fn what_is_too_large_is_refused_by_name() {
    let refused = |settings: &str, command: &[&str]| {
        let settings = Settings::parse(settings, Path::new("longshore.toml")).unwrap();
        let flags = Flags {
            command: command.iter().map(ToString::to_string).collect(),
            ..Flags::default()
        };
        let spec = resolve(&settings, &flags, "code").unwrap();
        let planned = plan(&spec, &RunName::new("code", "ab2cd"), "default", None);
        planned.err().map(|error| error.to_string())
    };
    let text = |size: usize| "x".repeat(size);
    let files: Vec<String> = (0..6_000).map(|index| format!("{index:0>48}")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let variables = |size: usize| -> String {
        let lines = (0..20).map(|index| format!("A{index} = '{}'\n", text(size)));
        format!("[env]\n{}", lines.collect::<String>())
    };
    let large = text(131_072);
    // The settings, the command, and the begin of the error.
    let cases: [(String, Vec<&str>, &str); 5] = [
        (String::new(), files, "the command of role \"main\" has "),
        (
            String::new(),
            vec!["a", &large],
            "argument 1 of the command of role \"main\" has 131072 bytes, and an argument can have at most 131071: ",
        ),
        (
            format!("[env]\nA = '{}'", text(131_070)),
            vec!["a"],
            "the variable A of role \"main\" has 131072 bytes",
        ),
        (
            variables(100_000),
            vec!["a"],
            "the configuration of the run, with its variables, has 2",
        ),
        (
            format!("[annotations]\nb = '{}'", text(300_000)),
            vec!["a"],
            "the annotation b has ",
        ),
    ];
    for (settings, command, begin) in cases {
        let error = refused(&settings, &command).unwrap_or_default();
        assert!(error.starts_with(begin), "{begin}: {:.200}", error);
        assert!(error.contains(": "), "{error:.200}");
    }
    // Just below the limits.
    assert_eq!(refused("", &["a", &text(131_071)]), None);
    assert_eq!(
        refused(&format!("[env]\nA = '{}'", text(131_069)), &["a"]),
        None
    );
    assert_eq!(refused(&variables(40_000), &["a"]), None);
}
