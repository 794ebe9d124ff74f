//! The page in a browser, by WebDriver. Run with `cargo xtask test --browser`.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "the benchmark of the page uses the rest")]
mod driver;
#[allow(dead_code)]
#[path = "../ui/fixture.rs"]
mod fixture;
mod hostile;
mod pages;
mod parts;
