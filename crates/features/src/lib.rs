//! Enables those Cargo features of the program's dependencies that the tests enable.
//! Cargo builds a crate again for each set of features, with all crates that depend on
//! it. `cargo xtask tidy` compares the features of the program with those of the tests.
