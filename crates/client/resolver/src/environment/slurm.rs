//! Reads the variables of Slurm's job steps.

use super::{Described, EnvironmentError, hostlist, invalid, required};

/// The port of the first task on a host, as in TensorFlow's `SlurmClusterResolver`.
pub const SLURM_PORT: u16 = 8888;

const REMEDY: &str = "Slurm sets it in the tasks that srun starts";

/// Options for making a cluster from the tasks of a job step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlurmOptions {
    /// The roles and their numbers of tasks, in the order of the ranks; empty for one role
    /// `worker` with all tasks.
    pub jobs: Vec<(String, u32)>,
    /// The port of the first task on a host; each further task there has the next one.
    pub port: u16,
    /// The number of tasks on each host, if it differs from Slurm's.
    pub tasks_per_node: Option<u32>,
}

impl Default for SlurmOptions {
    fn default() -> Self {
        Self {
            jobs: Vec::new(),
            port: SLURM_PORT,
            tasks_per_node: None,
        }
    }
}

/// Reads `SLURM_STEP_NODELIST`, `SLURM_STEP_TASKS_PER_NODE`, `SLURM_STEP_NUM_TASKS` and
/// `SLURM_PROCID`. Ranks follow the hosts of the list, as with Slurm's distribution `block`.
///
/// # Errors
/// [`EnvironmentError::Missing`], [`EnvironmentError::Invalid`], or [`EnvironmentError::Tasks`] if
/// the roles do not have as many tasks as the job step.
///
/// ```
/// use longshore_resolver::environment::{SlurmOptions, slurm};
/// let variable = |name: &str| {
///     let value = match name {
///         "SLURM_STEP_NODELIST" => "gpu[09-10]",
///         "SLURM_STEP_TASKS_PER_NODE" => "2(x2)",
///         "SLURM_STEP_NUM_TASKS" => "4",
///         "SLURM_PROCID" => "3",
///         _ => return None,
///     };
///     Some(value.to_owned())
/// };
/// let described = slurm(variable, &SlurmOptions::default()).unwrap();
/// assert_eq!(described.spec.task_address("worker", 2), Ok("gpu10:8888"));
/// assert_eq!(described.task, Some(("worker".to_owned(), 3)));
/// ```
pub fn slurm(
    variable: impl Fn(&str) -> Option<String>,
    options: &SlurmOptions,
) -> Result<Described, EnvironmentError> {
    const NODES: &str = "SLURM_STEP_NODELIST";
    const PER_NODE: &str = "SLURM_STEP_TASKS_PER_NODE";
    let rank = number(&variable, "SLURM_PROCID")?;
    let nodes = required(&variable, NODES, REMEDY)?;
    let hosts = hostlist::hosts(&nodes).map_err(|problem| invalid(NODES, problem))?;
    let per_node = match options.tasks_per_node {
        Some(tasks) => vec![tasks; hosts.len()],
        None => {
            let text = required(&variable, PER_NODE, REMEDY)?;
            hostlist::tasks_per_node(&text).map_err(|problem| invalid(PER_NODE, problem))?
        }
    };
    if per_node.len() != hosts.len() {
        let problem = format!(
            "it has {} nodes, and {NODES} has {}",
            per_node.len(),
            hosts.len()
        );
        return Err(invalid(PER_NODE, problem));
    }
    let addresses = addresses(&hosts, &per_node, options.port)?;
    let total = number(&variable, "SLURM_STEP_NUM_TASKS")?;
    let jobs = match options.jobs.as_slice() {
        [] => vec![("worker".to_owned(), total)],
        jobs => jobs.to_vec(),
    };
    let wanted: u64 = jobs.iter().map(|(_, tasks)| u64::from(*tasks)).sum();
    if wanted != u64::from(total) || addresses.len() as u64 != wanted {
        return Err(EnvironmentError::Tasks(format!(
            "the roles have {wanted} tasks, the job step has {total}, and its nodes have {}: start as many tasks as the roles have, as in `srun --ntasks {wanted}`",
            addresses.len()
        )));
    }
    let mut described = Described::default();
    let mut ranks = (0..).zip(addresses);
    for (job, tasks) in &jobs {
        described.spec.add_job(job);
        for (at, address) in ranks.by_ref().take(*tasks as usize) {
            let index = described.spec.push(job, address);
            if at == rank {
                described.task = Some((job.clone(), index));
            }
        }
    }
    match described.task {
        Some(_) => Ok(described),
        None => Err(invalid(
            "SLURM_PROCID",
            format!("{rank} is not below {total}"),
        )),
    }
}

fn number(
    variable: &impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<u32, EnvironmentError> {
    let text = required(variable, name, REMEDY)?;
    let wrong = |_| invalid(name, format!("{text:?} is not a number"));
    text.parse().map_err(wrong)
}

/// The addresses of the tasks, by rank.
fn addresses(
    hosts: &[String],
    per_node: &[u32],
    port: u16,
) -> Result<Vec<String>, EnvironmentError> {
    let mut all = Vec::new();
    for (host, tasks) in hosts.iter().zip(per_node) {
        for place in 0..*tasks {
            let port = u16::try_from(u32::from(port) + place).map_err(|_| {
                EnvironmentError::Tasks(format!(
                    "{host} has {tasks} tasks, which need ports above 65535: choose a lower first port"
                ))
            })?;
            all.push(format!("{host}:{port}"));
        }
    }
    Ok(all)
}
