//! Links the program at fixed addresses. Otherwise, the dynamic loader would change 150,000
//! pointers at each start, which takes 1 of 3 ms, and 2 MB of memory of each process. A pod of a
//! run starts the program once per container. Other programs for Kubernetes, such as kubectl, are
//! linked like this, too.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| std::env::var(key).is_ok_and(|set| set == value);
    // With musl, the program is linked statically, and needs no loader.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        // The option above cancels rustc's `-static-pie`.
        let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
        if features.split(',').any(|feature| feature == "crt-static") {
            println!("cargo:rustc-link-arg-bins=-static");
        }
    }
}
