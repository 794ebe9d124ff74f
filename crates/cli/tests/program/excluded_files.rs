//! Files that `run` does not send, as it reports them.

use crate::machine::Machine;

#[test]
fn all_excluded_files_can_be_listed() {
    let machine = Machine::new();
    machine.write(".longshoreignore", "*.log\n");
    for n in 10..35 {
        machine.write(&format!("{n}.log"), "");
    }
    machine.write("odd\n\x1b.log", "");
    let answer = machine.longshore(&["run", "--", "true"]).expect(0);
    let named: Vec<String> = (10..20).map(|n| format!("{n}.log")).collect();
    let said = format!(
        "; excluded {} and 16 more (--dry-run lists them)\n",
        named.join(", ")
    );
    assert!(answer.err.contains(&said), "{}", answer.err);
    let answer = machine
        .longshore(&["run", "--dry-run", "--", "true"])
        .expect(0);
    let (_, listed) = answer.err.split_once("; excluded:\n").unwrap();
    let mut expected: Vec<String> = (10..35).map(|n| format!("  {n}.log")).collect();
    expected.push("  odd\\n^[.log".to_owned());
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    assert!(!answer.out.contains("34.log"), "{}", answer.out);
}
