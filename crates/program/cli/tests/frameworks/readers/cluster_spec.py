"""What TensorFlow's own ClusterSpec returns for specs.

stdin:  {"specs": [{"worker": ["a:1"]}, {"ps": {"1": "b:1"}}]}
stdout: one line of JSON: {"answers": [...]}, for each spec the results of all its functions, or {"refused": "..."}.
Needs: tensorflow-cpu==2.21.0.
"""
import os

import common

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def describe(spec):
    def message(ask):
        try:
            return ask()
        except ValueError as problem:
            return str(problem)

    jobs = {}
    for job in spec.jobs:
        indices = spec.task_indices(job)
        jobs[job] = {
            "num_tasks": spec.num_tasks(job),
            "task_indices": indices,
            "job_tasks": spec.job_tasks(job) if indices else [],
            "addresses": [spec.task_address(job, index) for index in indices],
            "missing": message(lambda: spec.task_address(job, 77)),
        }
    definition = spec.as_cluster_def()
    return {
        "as_dict": spec.as_dict(),
        "jobs": jobs,
        "bool": bool(spec),
        "definition": [[job.name, sorted((index, job.tasks[index]) for index in job.tasks)] for job in definition.job],
        "again": type(spec)(spec) == spec and type(spec)(definition) == spec,
        "no_job": message(lambda: spec.num_tasks("missing")),
    }


def read(request):
    import tensorflow as tf

    answers = []
    for jobs in request["specs"]:
        try:
            # JSON keys are strings.
            jobs = {
                job: {int(index): address for index, address in tasks.items()} if isinstance(tasks, dict) else tasks
                for job, tasks in jobs.items()
            }
            answers.append(describe(tf.train.ClusterSpec(jobs)))
        except (TypeError, ValueError, AttributeError) as problem:
            answers.append({"refused": str(problem)})
    return {"answers": answers}


common.main(read)
