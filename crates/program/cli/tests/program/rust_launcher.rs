//! Launching runs from Rust on an embedded cluster whose node has the program.

use longshore::{
    Cluster,
    launcher::{Event, Flags, LaunchOptions, RunSpec, runs},
};

use crate::machine::Machine;

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_launched_and_followed_in_three_calls() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let kubeconfig = machine.data().join("kubeconfig");
    let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None)
        .await
        .unwrap();
    machine.write("longshore.toml", "command = ['sh', 'train.sh']\n");
    machine.write("train.sh", "echo trained; exit 3\n");
    let spec = RunSpec::load(&machine.code(), &Flags::default()).unwrap();
    let options = LaunchOptions::default();
    let launched = spec.submit(&cluster, &machine.code(), options).await;
    let launched = launched.unwrap();
    assert_eq!(launched.packed.as_ref().map(|packed| packed.files), Some(2));
    let mut follow = launched.follow(&cluster).await.unwrap();
    let mut lines = Vec::new();
    let mut outcome = None;
    while let Some(event) = follow.next().await {
        match event.unwrap() {
            Event::Log(line) => lines.push(line.line),
            Event::Finished(finished) => outcome = Some(finished),
            _ => {}
        }
    }
    let outcome = outcome.unwrap();
    assert_eq!(
        (lines.join("\n").as_str(), outcome.exit_code),
        ("trained", 3)
    );
    let found = runs::find(&cluster, "default", "last").await.unwrap();
    assert_eq!(found.run, launched.run);
}
