//! JobSet and Kueue, installed on the cluster from their own manifests.
//!
//! Their modules contain the manifests: custom resource definitions, RBAC, webhooks and a
//! Deployment. Only the Deployment is changed: it runs an image of the program that was
//! built here, requests nothing of the small node, and tolerates what tests do to the node.

use std::{path::PathBuf, process::Command};

use serde_json::{Value, json};

use super::{Places, ctr::ctr, make_folder, modules, sources, until, write};
use crate::{
    image,
    run::{Outcome, output},
};

struct Addon {
    /// The module's folder in `xtask/kubernetes`, the program's name, and the prefix of its
    /// namespace.
    name: &'static str,
    /// The Go module with the manifests.
    module: &'static str,
    /// An object that its webhooks admit, which nothing needs.
    probe: fn() -> Value,
}

const ADDONS: [Addon; 2] = [
    Addon {
        name: "jobset",
        module: "sigs.k8s.io/jobset",
        probe: jobset,
    },
    // After JobSet: from then on its webhooks see every pod.
    Addon {
        name: "kueue",
        module: "sigs.k8s.io/kueue",
        probe: flavor,
    },
];

/// Builds and installs both, and waits until their webhooks answer.
pub(super) fn install(places: &Places) -> Outcome {
    modules::build_addons(places)?;
    ADDONS.iter().try_for_each(|addon| addon.install(places))
}

impl Addon {
    fn install(&self, places: &Places) -> Outcome {
        let Self { name, .. } = self;
        let image = format!("localhost/longshore/{name}:dev");
        let folder = places.state(name);
        make_folder(&folder)?;
        let archive = image::of_program(&folder, &image, &places.program(name))?;
        ctr(
            places,
            &["images", "import", &archive.display().to_string()],
        )?;

        let manifests = self.manifests()?.join("config/default");
        let overlay = json!({
            // kustomize refuses absolute paths.
            "resources": [format!("../../..{}", manifests.display())],
            "patches": [{
                "target": {"kind": "Deployment"},
                "patch": deployment(&image).to_string(),
            }],
        });
        write(&folder.join("kustomization.yaml"), &overlay.to_string())?;
        let mut kustomize = Command::new(places.program("kustomize"));
        let objects = output(kustomize.arg("build").arg(&folder))?;
        self.apply(places, "objects.yaml", &objects, &[])?;

        let namespace = format!("{name}-system");
        let wait = ["wait", "deployments", "--all", "--for=condition=Available"];
        let within = ["--namespace", &namespace, "--timeout=120s"];
        places.kubectl(&[&wait[..], &within].concat())?;
        let probe = (self.probe)().to_string();
        until(&format!("{name}'s webhooks answer"), || {
            self.apply(places, "probe.json", &probe, &["--dry-run=server"])
                .is_ok()
        })
    }

    fn apply(&self, places: &Places, file: &str, objects: &str, words: &[&str]) -> Outcome {
        let file = places.state(self.name).join(file);
        write(&file, objects)?;
        let file = file.display().to_string();
        let apply = ["apply", "--server-side", "--filename", &file];
        places.kubectl(&[&apply[..], words].concat()).map(drop)
    }

    /// The folder of the module.
    fn manifests(&self) -> Outcome<PathBuf> {
        let mut go = Command::new("go");
        go.current_dir(sources().join(self.name))
            .args(["mod", "download", "-json", self.module])
            .env("GOFLAGS", "");
        let found: Value = serde_json::from_str(&output(&mut go)?)
            .map_err(|error| format!("`go mod download` of {}: {error}", self.module))?;
        let folder = found["Dir"].as_str();
        folder
            .map(PathBuf::from)
            .ok_or_else(|| format!("{} has no folder: {found}", self.module))
    }
}

/// What is changed of a Deployment, as a JSON patch.
fn deployment(image: &str) -> Value {
    let pod = "/spec/template/spec";
    let container = format!("{pod}/containers/0");
    let change = |path: String, value: Value| json!({"op": "add", "path": path, "value": value});
    json!([
        change(format!("{container}/image"), image.into()),
        change(format!("{container}/imagePullPolicy"), "Never".into()),
        change(format!("{container}/resources"), json!({})),
        change(format!("{pod}/securityContext/runAsUser"), 65532.into()),
        change(
            format!("{pod}/tolerations"),
            json!([{"operator": "Exists"}])
        ),
    ])
}

fn jobset() -> Value {
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {"replicatedJobs": [{
            "name": "main",
            "template": {"spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "none"}],
            }}}},
        }]},
    })
}

fn flavor() -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "probe"},
    })
}
