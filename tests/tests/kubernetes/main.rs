//! The Kubernetes of the tests, looked at with kubectl alone: a test that relies on a cluster in which nothing can go wrong shows nothing.

mod away;
mod found;
mod knobs;
mod many;
mod moving;
mod released;
mod scene;
