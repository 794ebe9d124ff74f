//! Tests of the bootstrap in a pod of temporary folders.
#![allow(clippy::unwrap_used)]

mod environment;
mod fetch;
mod prepare;

use std::{collections::BTreeMap, ffi::OsString, fs, process::Command};

use longshore_diagnosis::names;

use super::{BootstrapError, Places, prepare::prepare};
use crate::{
    bundle::{PackOptions, pack},
    pod::{PodBundle, PodConfig, PodRole},
    restarts::PodRestarts,
};

struct Pod {
    folder: tempfile::TempDir,
    places: Places,
    config: PodConfig,
    caller: Option<String>,
}

fn role(name: &str, tasks: &[&str]) -> PodRole {
    let env = BTreeMap::from([("GREETING".to_owned(), format!("hello {name}"))]);
    PodRole {
        name: name.to_owned(),
        tasks: tasks.iter().map(ToString::to_string).collect(),
        env,
        accelerators: 0,
        service: false,
        grace: 30,
        links: BTreeMap::new(),
    }
}

/// A pod whose bundle contains `hello.txt`.
fn pod(roles: Vec<PodRole>) -> Pod {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["home", "config", "bundle", "code"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("code").join("hello.txt"), "hello").unwrap();
    let bundle = pack(&at("code"), &PackOptions::default(), |_| {}).unwrap();
    fs::write(at("bundle").join("bundle.tar.gz"), bundle.bytes().unwrap()).unwrap();
    let config = PodConfig {
        run: "demo-ab2cd".into(),
        scheduled: false,
        sweep: None,
        restarts: PodRestarts::default(),
        idle: None,
        data: Vec::new(),
        data_cache_limit: None,
        roles,
        peer_timeout: 0,
        bundle: Some(PodBundle {
            sha256: bundle.sha256,
            file: "bundle.tar.gz".into(),
            download: None,
        }),
    };
    let places = Places {
        home: at("home"),
        config: at("config"),
        bundle: at("bundle"),
        data: at("data"),
    };
    let pod = Pod {
        folder,
        places,
        config,
        caller: None,
    };
    pod.write();
    pod
}

impl Pod {
    fn write(&self) {
        let text = serde_json::to_vec(&self.config).unwrap();
        fs::write(self.folder.path().join("config/run.json"), text).unwrap();
    }

    fn prepare(
        &self,
        role: &str,
        index: &str,
        command: &[&str],
    ) -> Result<Command, BootstrapError> {
        self.prepare_again(role, index, command, 0)
    }

    /// The command of a task that has failed this many times.
    fn prepare_again(
        &self,
        role: &str,
        index: &str,
        command: &[&str],
        failures: u32,
    ) -> Result<Command, BootstrapError> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        prepare(&self.places, &command, |name| match name {
            "LONGSHORE_ROLE" => Some(role.to_owned()),
            "JOB_COMPLETION_INDEX" => Some(index.to_owned()),
            "LONGSHORE_CALLER" => self.caller.clone(),
            names::FAILURES_VARIABLE => Some(failures.to_string()),
            _ => None,
        })
        .map(|prepared| prepared.command)
    }
}
