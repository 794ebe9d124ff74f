//! The extension module `longshore._native` as a library that Python loads: it exports the function
//! with which Python initializes the module. The code is in `longshore-extension`, which Cargo
//! compiles in parallel with the program. maturin compiles this crate alone, when the program is
//! ready.

pub use longshore_extension::native;
