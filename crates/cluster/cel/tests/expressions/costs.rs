//! Tests the costs of expressions. `costs.json` has the costs that Kubernetes 1.37 computes: the
//! estimate, which decides which rules a definition may have, and the cost of an evaluation.

use longshore_cel::{Decl, Environment};
use serde_json::Value;

#[test]
fn costs_are_those_of_kubernetes() {
    let data: Value = serde_json::from_str(include_str!("costs.json")).unwrap();
    let decl = Decl::of_schema(&data["schema"], true).unwrap();
    let environment = Environment::new()
        .with("self", decl.clone())
        .with("oldSelf", decl);
    let object = Some(&data["object"]);
    let rows = data["rules"].as_array().unwrap();
    assert!(rows.len() > 50);
    for row in rows {
        let source = row[0].as_str().unwrap();
        let program = environment
            .compile(source)
            .unwrap_or_else(|error| panic!("{source}: {error}"));
        assert_eq!(Some(program.max_cost()), row[1].as_u64(), "{source}");
        let evaluation = program.evaluate(&[("self", object), ("oldSelf", object)], 1_000_000);
        assert_eq!(Some(evaluation.cost), row[2].as_u64(), "{source}");
    }
}
