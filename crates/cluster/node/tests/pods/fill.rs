//! Volumes of new pods that a hook fills.

use std::{fs, sync::Mutex};

use longshore_node::{FillVolumes, NewVolume};

use super::{helpers::has_namespaces, *};

/// Writes a file to each volume called `filled`, and records its calls.
#[derive(Debug, Default)]
struct Filler(Mutex<Vec<(String, Option<String>)>>);

impl FillVolumes for Filler {
    fn fill(&self, volume: &NewVolume<'_>) {
        let note = volume.annotations.get("note").cloned();
        self.0.lock().unwrap().push((volume.name.to_owned(), note));
        assert!(volume.name != "broken", "on purpose");
        if volume.name == "filled" {
            fs::write(volume.path.join("there"), "before\n").unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_volumes_are_filled_once_before_the_first_container_starts() {
    let filler = Arc::new(Filler::default());
    let mut stage = Stage::without_agent(None, None);
    stage.fill_volumes = Some(filler.clone());
    stage.start().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let spec = |script: &str, names: &[&str]| {
        let mut main = shell(script);
        let mounts = names.iter();
        let mounts = mounts.map(|name| json!({"name": name, "mountPath": format!("/v-{name}")}));
        main["volumeMounts"] = mounts.collect();
        let volumes: Value = names
            .iter()
            .map(|name| json!({"name": name, "emptyDir": {}}))
            .collect();
        json!({"restartPolicy": "OnFailure", "containers": [main], "volumes": volumes})
    };
    let script = "cat /v-filled/there; ls -A /v-other; echo after > /v-filled/there; \
                  test -e /v-filled/again && exit 0; touch /v-filled/again; exit 1";
    stage.run("one", spec(script, &["filled", "other"])).await;
    let pod = stage.ended("one").await;
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(
        stage.log(&pod).await,
        "after\n",
        "a restart finds the files of the first container"
    );
    let asked = |name: &str| (name.to_owned(), None);
    assert_eq!(*filler.0.lock().unwrap(), [asked("filled"), asked("other")]);

    // A panic while a volume is filled does not prevent the pod from running.
    stage.run("two", spec("ls -A /v-broken", &["broken"])).await;
    let pod = stage.ended("two").await;
    assert_eq!(pod["status"]["phase"], "Succeeded");

    // Containers of another user could not access the files.
    let before = filler.0.lock().unwrap().len();
    let mut other = spec("true", &["filled"]);
    other["securityContext"] =
        json!({"runAsUser": helpers::UNPRIVILEGED, "fsGroup": helpers::UNPRIVILEGED});
    stage.run("three", other).await;
    stage.ended("three").await;
    if helpers::is_root() {
        assert_eq!(filler.0.lock().unwrap().len(), before);
    }
    stage.stop().await;
}
