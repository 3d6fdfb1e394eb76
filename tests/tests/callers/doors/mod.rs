//! The doors of the real daemon: who is let in, who may what, and how much of it.

mod authority;
mod certificates;
mod children;
mod crowd;
mod foreign;
mod holds;
mod pki;
mod queue;
mod replaced;
mod roles;
mod scene;
mod settings;
mod socket;
