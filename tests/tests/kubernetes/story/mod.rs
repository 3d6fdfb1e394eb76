//! OpenStack and Kubernetes together, both as released: machines are servers of Nova, their kubelets' pods write to volumes of Cinder,
//! and whoever detaches does it through Nova.

mod asleep;
mod locked;
mod scene;
mod seed;
mod torn;
