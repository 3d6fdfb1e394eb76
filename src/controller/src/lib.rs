//! Watches a Kubernetes' Nodes, and asks the gateway to fence those that failed.

pub mod mind;
