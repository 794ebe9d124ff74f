//! Several users of one namespace: service accounts, each with a kubeconfig.

use std::{path::PathBuf, process::Command};

use longshore::Cluster;
use serde_json::{Value, json};

use crate::machine::{Answer, Machine, eventually};

/// The namespace that the users share.
pub(crate) const NAMESPACE: &str = "team";

pub(crate) struct Team {
    pub(crate) machine: Machine,
}

impl Team {
    /// A cluster with these users, who may do everything in the namespace.
    pub(crate) fn new(users: &[&str]) -> Self {
        let team = Self::without_rights(users, &[]);
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
        team.bind("all", &role, users);
        team
    }

    /// A cluster with these users, who may do nothing, started with more arguments of `up`.
    pub(crate) fn without_rights(users: &[&str], up: &[&str]) -> Self {
        let machine = Machine::new();
        machine.longshore(&[&["up"], up].concat()).expect(0);
        let team = Self { machine };
        team.post(
            "/api/v1/namespaces",
            &json!({"metadata": {"name": NAMESPACE}}),
        );
        for user in users {
            let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
            team.post(&accounts, &json!({"metadata": {"name": user}}));
            let token = team.post(&format!("{accounts}/{user}/token"), &json!({}));
            let text = std::fs::read_to_string(team.administrator()).unwrap();
            let field = |name: &str| {
                let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
                let mut values = lines
                    .filter(|(key, _)| *key == name)
                    .map(|(_, value)| value);
                values.next().unwrap().trim_matches('"').to_owned()
            };
            let data = field("certificate-authority-data");
            let config = json!({
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": field("server"), "certificate-authority-data": data}}],
                "users": [{"name": "u", "user": {"token": token["status"]["token"]}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
                "current-context": "c",
            });
            std::fs::write(team.kubeconfig(user), config.to_string()).unwrap();
        }
        team
    }

    /// Binds a role to users in the namespace.
    pub(crate) fn bind(&self, name: &str, role: &Value, users: &[&str]) {
        let subject =
            |user: &&str| json!({"kind": "ServiceAccount", "namespace": NAMESPACE, "name": user});
        let subjects: Vec<Value> = users.iter().map(subject).collect();
        let bindings =
            format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings");
        self.post(
            &bindings,
            &json!({"metadata": {"name": name}, "roleRef": role, "subjects": subjects}),
        );
    }

    /// Creates an object as the administrator.
    pub(crate) fn post(&self, path: &str, object: &Value) -> Value {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let path_of_config = self.administrator();
            let cluster = Cluster::from_kubeconfig(Some(&path_of_config), None).await;
            cluster
                .unwrap()
                .proxy()
                .post(path, &[], object)
                .await
                .unwrap()
        })
    }

    fn administrator(&self) -> PathBuf {
        self.machine.data().join("kubeconfig")
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.machine.home().join(user)
    }

    /// A command of a user.
    pub(crate) fn command(&self, user: &str, words: &[&str]) -> Command {
        let mut command = self.machine.command(words);
        command.env("LONGSHORE_KUBECONFIG", self.kubeconfig(user));
        command
    }

    /// Runs a command as a user.
    pub(crate) fn longshore(&self, user: &str, words: &[&str]) -> Answer {
        Answer::new(&self.command(user, words).output().unwrap())
    }

    /// Starts a run of a user; returns its name.
    pub(crate) fn start(&self, user: &str, name: &str, options: &[&str], script: &str) -> String {
        let begin = [
            "run",
            "--name",
            name,
            "--launcher-image",
            "longshore:1",
            "-d",
        ];
        let words = [&begin[..], options, &["--", "sh", "-c", script]].concat();
        let started = self.longshore(user, &words).expect(0);
        started.out.trim().to_owned()
    }

    /// The state of a run.
    pub(crate) fn state(&self, name: &str) -> String {
        let found = [
            "runs",
            "--namespace",
            NAMESPACE,
            "--name",
            name,
            "--output",
            "json",
        ];
        let found = self.machine.longshore(&found).expect(0).json();
        found[0]["state"].as_str().unwrap_or("removed").to_owned()
    }

    #[track_caller]
    pub(crate) fn until(&self, name: &str, state: &str) {
        eventually(&format!("{name} is {state}"), || self.state(name) == state);
    }
}

/// The cluster's name for a user.
pub(crate) fn full_name(user: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{user}")
}
