//! Every format, read by its framework.

use longshore::resolver::{
    ClusterSpec,
    render::{self, Job},
};
use serde_json::{Value, json};

use crate::install::ask;

fn job(spec: &Value) -> Job {
    Job::new(ClusterSpec::from_value(spec).unwrap())
}

/// The environment variables that a framework reads in a task.
fn environment(variables: render::Variables) -> Value {
    let pairs = variables.into_iter();
    pairs
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
        .collect()
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn tensorflow_reads_tf_config() {
    let whole = json!({
        "chief": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222", "[fd00::3]:2222"],
        "ps": ["10.0.0.4:2222"], "evaluator": ["10.0.0.5:2222"],
    });
    let job = job(&whole);
    let mut others = whole.clone();
    others.as_object_mut().unwrap().remove("evaluator");
    for role in job.spec().jobs() {
        for (index, address) in job.spec().tasks(role) {
            let config = render::tf_config(job.spec(), role, index).to_string();
            let read = ask(
                "tensorflow",
                "read_tf_config.py",
                &json!({
                    "env": {"TF_CONFIG": config},
                    "strategy": if role == "ps" { "ps" } else { "multiworker" },
                }),
            );
            assert_eq!(read["task_type"], role, "{read}");
            assert_eq!(read["task_id"], index, "{read}");
            let expected = if role == "evaluator" { &whole } else { &others };
            assert_eq!(&read["cluster"], expected, "{role}:{index}");
            assert_eq!(read["master"], address, "{role}:{index}: {read}");
            assert_eq!(read["error"], Value::Null, "{role}:{index}: {read}");
            if matches!(role, "chief" | "worker") {
                assert_eq!(read["workers"], 3, "{read}");
                assert_eq!(read["is_chief"], role == "chief", "{read}");
            }
        }
    }
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn tensorflow_reads_missing_indices() {
    let holes = json!({"worker": {"1": "10.0.0.2:2222", "4": "10.0.0.5:2222"}});
    let config = render::tf_config(job(&holes).spec(), "worker", 4).to_string();
    let read = ask(
        "tensorflow",
        "read_tf_config.py",
        &json!({"env": {"TF_CONFIG": config}}),
    );
    assert_eq!(read["cluster"], holes);
    assert_eq!(read["master"], "10.0.0.5:2222");
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn torch_reads_its_variables() {
    for (spec, role, index, rank, address) in [
        (
            json!({"worker": ["10.0.0.1:29500", "10.0.0.2:29500"]}),
            "worker",
            1,
            1,
            "10.0.0.1",
        ),
        (
            json!({"master": ["[fd00::1]:29500"], "worker": ["[fd00::2]:29500"]}),
            "worker",
            0,
            1,
            "fd00::1",
        ),
        (
            json!({"master": ["m-0.train:29500"], "worker": ["w-0.train:29500"]}),
            "master",
            0,
            0,
            "m-0.train",
        ),
    ] {
        let job = job(&spec).with_slots(role, index, 4);
        let variables = environment(render::torch(&job, role, index).unwrap());
        let read = ask("pytorch", "read_torch.py", &json!({"env": variables}));
        assert_eq!(
            read,
            json!({
                "rank": rank, "world_size": 2, "master_addr": address, "master_port": 29500,
                "is_master": rank == 0, "local_rank": 0, "local_world_size": 1,
            })
        );
        let read = ask("pytorch", "read_torchrun.py", &json!({"env": variables}));
        let nodes = [&read["min_nodes"], &read["max_nodes"], &read["node_rank"]];
        assert_eq!(nodes, [2, 2, rank], "{read}");
        assert_eq!(read["nproc_per_node"], 4, "{read}");
        assert_eq!(read["rdzv_backend"], "static", "{read}");
        assert_eq!(
            (&read["master_addr"], &read["master_port"]),
            (&json!(address), &json!(29500))
        );
    }
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn jax_reads_its_variables() {
    for (address, index) in [
        ("10.0.0.1:8476", 0),
        ("w-0.train:8476", 1),
        ("[fd00::1]:8476", 1),
    ] {
        let job = job(&json!({"worker": [address, "10.0.0.2:8476"]}));
        let variables = environment(render::jax(&job, "worker", index).unwrap());
        let read = ask("jax", "read_jax.py", &json!({"env": variables}));
        assert_eq!(read["coordinator_address"], address, "{read}");
        assert_eq!(
            (&read["num_processes"], &read["process_id"]),
            (&json!(2), &json!(index))
        );
        assert_eq!(read["connects_to"], address, "{read}");
    }
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn launchers_read_hostfiles() {
    let spec = json!({
        "launcher": ["train-launcher-0.train:22"],
        "worker": ["train-worker-0.train:22", "10.0.0.2:22", "10.0.0.2:23"],
    });
    let job = job(&spec).with_slots("worker", 0, 8);
    let text = render::hostfile(&job);
    let hosts = json!({"train-launcher-0.train": 1, "train-worker-0.train": 8, "10.0.0.2": 2});
    let order = json!(["train-launcher-0.train", "train-worker-0.train", "10.0.0.2"]);
    for script in ["read_deepspeed.py", "read_horovod.py"] {
        let read = ask("pytorch", script, &json!({"hostfile": text}));
        assert_eq!(read["hosts"], hosts, "{script}: {read}");
        assert_eq!(read["order"], order, "{script}: {read}");
    }
}
