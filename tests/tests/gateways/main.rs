//! The gateway as a process: alone in operation, and three of them over a real etcd, of which any may die.

mod daemon;
mod etcd;
mod ha;
mod hosts;
mod operation;
