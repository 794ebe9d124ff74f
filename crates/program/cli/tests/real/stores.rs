//! Code in a store for which pods have no credentials.

use std::{fs, io::Read as _};

use crate::{
    machine::Answer,
    s3::{BUCKET, S3},
    stage::{Stage, said},
};

/// More bytes than a Secret may have.
const SIZE: usize = 5 << 20;

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_bundle_is_downloaded_by_a_signed_url() {
    let stage = Stage::new();
    let server = S3::start_at(stage.machine());
    let mut data = vec![0; SIZE];
    fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut data))
        .unwrap();
    fs::write(stage.machine.code().join("data"), data).unwrap();
    let store = format!("s3://{BUCKET}/team");
    let script = "wc -c < data; env | grep -c -e AWS_ -e Signature";
    let mut command = stage.run_command(&["--store", &store, "--", "sh", "-c", script]);
    command.envs(server.settings());
    let answer = Answer::new(&command.output().unwrap());
    // The last command finds nothing.
    let answer = answer.expect(1);
    assert_eq!(said(&answer), format!("{SIZE}\n0\n"), "{}", answer.err);
}
