//! EC2, Compute Engine and OpenStack, as peers that others wrote or that answer by the published description have them.

mod aws;
mod gcp;
mod openstack;
mod scene;
