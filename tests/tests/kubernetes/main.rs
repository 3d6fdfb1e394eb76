//! A real Kubernetes with real kubelets: what a fence lets go there, and the controller that asks for fences.

mod cluster;
mod controller;
mod story;
mod thousand;
