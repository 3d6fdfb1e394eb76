//! The judge, rule by rule: S1 and S2 for one device, S3 for many, S13 and the grades.

#![allow(clippy::unwrap_used)] // A fixture that cannot be made ends its test.

mod counting;
mod grade;
mod lacks;
mod levels;
mod long_window;
mod lost;
mod own_off;
mod shape;
mod supplies;
mod untold;
