//! Settings: what is read, what is refused, and with which words.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod budget_table;
mod common;
mod effective;
mod etcd;
mod example;
mod faults;
mod load;
mod metrics;
mod never;
mod own_node;
mod pki;
mod schema;
