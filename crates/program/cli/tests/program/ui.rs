//! The page for runs, served by the program.

use crate::{
    machine::{Machine, eventually, processes_with},
    page::Page,
    s3::{BUCKET, Fault, S3},
};

#[test]
fn a_run_and_its_outputs_are_shown_until_the_run_is_removed() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let script = "mkdir out; echo weights > 'out/a b.bin'; echo hello";
    let run = ["run", "--name", "digits", "--output-files", "out/**"];
    let words: Vec<&str> = run.into_iter().chain(["--", "sh", "-c", script]).collect();
    machine.longshore(&words).expect(0);
    let names = machine.longshore(&["runs", "--output", "name"]).expect(0);
    let name = names.out.trim().to_owned();

    let page = Page::start(machine.command(&["ui"]));
    assert_eq!(processes_with(&page.token), [""; 0]);
    let (_, list) = page.get("");
    assert!(list.contains(&name), "{list}");
    page.events_until("events", &name);
    let path = format!("runs/default/{name}");
    let (_, logs) = page.get(&format!("{path}/logs"));
    assert!(
        logs.contains("hello") && logs.contains("event: end"),
        "{logs}"
    );

    let (_, outputs) = page.get(&format!("{path}/outputs"));
    assert!(outputs.contains("out/a b.bin"), "{outputs}");
    let file = format!("{path}/file?task=main%2F0&path=out%2Fa%20b.bin");
    let (head, content) = page.get(&file);
    assert_eq!(content, "weights\n");
    assert!(
        head.contains("content-type: application/octet-stream"),
        "{head}"
    );
    let disposition = r#"content-disposition: attachment; filename="a_b.bin""#;
    assert!(head.contains(disposition), "{head}");
    let (head, _) = page.get(&format!("{path}/file?task=main%2F0&path=..%2Fetc%2Fpasswd"));
    assert!(head.contains(" 404 "), "{head}");
    // The run's Secret has its configuration.
    let (_, objects) = page.get(&format!("{path}/objects"));
    assert!(objects.contains("kind=Secret"), "{objects}");

    page.press(&format!("{path}/remove"));
    let runs = machine.longshore(&["runs", "--output", "name"]).expect(0);
    assert_eq!(runs.out, "");
    let kept = machine.data().join("outputs/runs/default").join(&name);
    let lists = std::fs::read_dir(kept).map_or(0, |entries| {
        let names = entries.map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with(".json"))
            .count()
    });
    assert_eq!(lists, 0);

    page.program.signal("INT");
    let answer = page.program.end().expect(0);
    assert!(answer.err.contains("valid once"), "{}", answer.err);
    assert!(!answer.err.contains(&page.token), "{}", answer.err);
}

#[test]
fn outputs_in_a_store_and_in_a_claim_are_shown() {
    let (machine, server) = (Machine::new(), S3::start());
    let config = machine.home().join("config");
    let config = config.to_str().unwrap();
    machine.longshore(&["up", "--kubeconfig", config]).expect(0);
    machine.write(
        "claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: results, namespace: default}\n\
         spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}\n",
    );
    machine.longshore(&["create", "-f", "claim.yaml"]).expect(0);
    let there = |arguments: &[&str]| {
        let mut command = machine.command(arguments);
        command
            .envs(server.settings())
            .env("LONGSHORE_KUBECONFIG", config);
        command
    };
    let store = format!("s3://{BUCKET}/team");
    let task = [
        "--output-files",
        "a.bin",
        "--",
        "sh",
        "-c",
        "echo weights > a.bin",
    ];
    let run = |name: &str, place: &[&str]| {
        let words = [&["run", "--name", name], place, &task].concat();
        let mut command = there(&words);
        let answer = crate::machine::Answer::new(&command.output().unwrap()).expect(0);
        let names = machine.longshore(&["runs", "--output", "name"]).expect(0);
        let mut names = names.out.lines();
        let own = names.find(|own| own.starts_with(name));
        own.unwrap_or_else(|| panic!("{}", answer.err)).to_owned()
    };
    let stored = run("stored", &["--store", &store]);
    let claimed = run("claimed", &["--outputs-claim", "results"]);
    let page = Page::start(there(&["ui"]));
    let (_, list) = page.get(&format!("runs/default/{stored}/outputs"));
    assert!(list.contains("a.bin"), "{list}");
    let file = format!("runs/default/{stored}/file?task=main%2F0&path=a%2Ebin");
    assert_eq!(page.get(&file).1, "weights\n");
    let (_, list) = page.get(&format!("runs/default/{claimed}/outputs"));
    assert!(list.contains("PersistentVolumeClaim results"), "{list}");
    assert!(
        list.contains(&format!("longshore outputs {claimed}")),
        "{list}"
    );
    // If the store refuses a request, the page reports it without a signature.
    server.fail("list-type", &[Fault::Answer(500); 1]);
    std::fs::remove_dir_all(server.file("team/outputs")).unwrap();
    let (_, list) = page.get(&format!("runs/default/{stored}/outputs"));
    assert!(list.contains("has no outputs"), "{list}");
    assert!(!list.contains("X-Amz-"), "{list}");
}

#[test]
fn a_port_in_use_is_reported() {
    let machine = Machine::new();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let answer = machine.longshore(&["ui", "--port", &port]).expect(1);
    assert!(
        answer.err.contains("cannot listen on 127.0.0.1"),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("choose another port"), "{}", answer.err);
}

#[test]
fn commands_in_explanations_have_the_options_for_the_cluster() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.run_script("exit 3").expect(3);
    let names = machine.longshore(&["runs", "--output", "name"]).expect(0);
    let name = names.out.trim();
    // Without the variable, the folder must be an option of each command.
    let data = machine.data();
    let data = data.to_str().unwrap();
    let mut command = machine.command(&["ui", "--data-dir", data]);
    command.env_remove("LONGSHORE_DATA_DIR");
    let page = Page::start(command);
    let (_, why) = page.get(&format!("runs/default/{name}/why"));
    assert!(why.contains("exit code 3"), "{why}");
    assert!(why.contains(&format!("--data-dir {data}")), "{why}");
}

#[test]
fn a_browser_gets_a_private_file_and_no_token_as_argument() {
    let machine = Machine::new();
    let script = "#!/bin/sh\ncat \"$1\" > opened\nstat -c %a \"$1\" > mode\necho \"$@\" > arguments.part\n\
                  mv arguments.part arguments\n";
    machine.write("xdg-open", script);
    let made = machine.shell("chmod +x xdg-open").status().unwrap();
    assert!(made.success());
    let mut command = machine.command(&["ui", "--open"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", machine.code().display()));
    let page = Page::start(command);
    let read = |name: &str| std::fs::read_to_string(machine.code().join(name)).unwrap_or_default();
    eventually("a browser is opened", || read("arguments").ends_with('\n'));
    assert_eq!(read("mode"), "600\n");
    let opened = read("opened");
    let (_, token) = opened.split_once("/open?token=").unwrap();
    let token = token.split_once('"').unwrap().0;
    assert_ne!(token, page.token);
    assert!(!read("arguments").contains(token), "{}", read("arguments"));
    let file = read("arguments").trim().to_owned();
    assert!(std::path::Path::new(&file).exists(), "{file}");
    page.program.signal("TERM");
    page.program.end().expect(0);
    assert!(!std::path::Path::new(&file).exists(), "{file}");
}
