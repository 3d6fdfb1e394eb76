//! The Kubernetes of the tests, looked at with kubectl alone, and by gateways: a test that relies on a cluster in which nothing can go wrong shows nothing.

mod away;
mod blocked;
mod breach;
mod door;
mod fenced;
mod found;
mod freed;
mod gone;
mod hooked;
mod knobs;
mod late;
mod looks;
mod managed;
mod many;
mod moving;
mod odd;
mod released;
mod replaced;
mod rights;
mod scene;
mod second;
mod seed;
mod seen;
mod swept;
mod twice;
mod wrong;
