//! Limits of Kubernetes and of the kernel for values that a run passes to its tasks, checked before
//! anything is created.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::api::{batch::v1::Job, core::v1::Secret};
use longshore_diagnosis::names;

use super::{PlanError, Planner};
use crate::config::RoleSpec;

/// The maximum size of all annotations of an object.
const ANNOTATIONS: usize = 256 << 10;
/// The maximum size of the data of a Secret.
const SECRET: usize = 1 << 20;
/// The maximum size of an argument, or of a variable with its name, without the final NUL: the
/// kernel's `MAX_ARG_STRLEN`.
const WORD: usize = (128 << 10) - 1;

const FILE: &str =
    "write it to a file in the folder of the code, and pass the name of the file instead";

impl Planner<'_> {
    /// Checks the arguments and variables of a role, and the annotations of its Job.
    pub(super) fn check_sizes(&self, role: &RoleSpec, job: &Job) -> Result<(), PlanError> {
        for (index, word) in role.command.iter().enumerate() {
            let what = || format!("argument {index} of the command of role {:?}", role.name);
            at_most(WORD, "an argument", word.len(), what, FILE)?;
        }
        for (name, value) in &role.env {
            let what = || format!("the variable {name} of role {:?}", role.name);
            at_most(WORD, "a variable", name.len() + 1 + value.len(), what, FILE)?;
        }
        let annotations = job.metadata.annotations.iter().flatten();
        let sizes: BTreeMap<&str, usize> = annotations
            .map(|(key, value)| (key.as_str(), key.len() + value.len()))
            .collect();
        if let Some(size) = sizes.get(names::CALLER) {
            let what = || "the environment of the invoking shell".to_owned();
            let remedy = "unset large variables, which tasks of the embedded cluster get";
            at_most(WORD, "a variable", *size, what, remedy)?;
        }
        let all = sizes.values().sum::<usize>();
        let largest = sizes.into_iter().max_by_key(|(_, size)| *size);
        let Some((key, size)) = largest.filter(|_| all > ANNOTATIONS) else {
            return Ok(());
        };
        let (what, remedy) = match key {
            names::COMMAND => (format!("the command of role {:?}", role.name), FILE),
            _ => (format!("the annotation {key}"), "use a shorter one"),
        };
        Err(PlanError::TooLong {
            what,
            size,
            holder: "the record of a Job",
            limit: ANNOTATIONS,
            remedy,
        })
    }

    /// Checks the size of the Secret with the configuration of the pods.
    pub(super) fn check_secret(&self, secret: &Secret) -> Result<(), PlanError> {
        let data = secret.data.iter().flatten();
        let size = data.map(|(_, value)| value.0.len()).sum();
        let variables = self.spec.roles.iter().flat_map(|role| &role.env);
        let variables: usize = variables
            .map(|(name, value)| name.len() + value.len())
            .sum();
        let (what, remedy) = match &self.spec.sweep {
            Some(sweep) if variables < size / 2 => (
                format!(
                    "the list of {} combinations",
                    sweep.sweep.combinations.len()
                ),
                "split the sweep into several, or pass an index and read the values from a file",
            ),
            _ if variables >= size / 2 => (
                "the configuration of the run, with its variables,".to_owned(),
                "write large values to a file in the folder of the code",
            ),
            _ => (
                "the configuration of the run".to_owned(),
                "use fewer tasks, or shorter names",
            ),
        };
        at_most(SECRET, "a Secret", size, || what, remedy)
    }
}

fn at_most(
    limit: usize,
    holder: &'static str,
    size: usize,
    what: impl FnOnce() -> String,
    remedy: &'static str,
) -> Result<(), PlanError> {
    match size > limit {
        true => Err(PlanError::TooLong {
            what: what(),
            size,
            holder,
            limit,
            remedy,
        }),
        false => Ok(()),
    }
}
