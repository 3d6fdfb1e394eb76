//! Three gateways and three members of etcd, each pair on a host with a network of its own, before real machines: whatever dies,
//! freezes or is cut off, and whenever, no volume is let go of a machine that can still write to it, and none comes back
//! that nobody unfenced.
//!
//! Who decides is a process of its own (`tests/peers/judge.py`), which reads what observers saw on the machines' disks and what
//! the receiver of releases, the machines' power control and the caller noted. Ten random runs; `cargo xtask soak ha` makes
//! 300, and goes through every named step. `PICKET_SEED=… PICKET_RUNS=1` makes the run again that a failure names.

mod caller;
mod control;
mod figures;
mod permit;
mod plan;
mod random;
mod run;
mod scene;
mod steps;
mod trouble;
