//! The OpenStack of the tests, looked at with openstacksdk alone: a test that relies on a cloud that lies by mistake shows nothing.
//! And Picket over its servers, where openstacksdk and the hypervisor's own journal look on.

mod behind;
mod catalogs;
mod conforming;
mod crash;
mod dead_host;
mod driven;
mod faults;
mod fencing;
mod hosts;
mod late;
mod locked;
mod releasing;
mod scene;
mod stuck;
mod volumes;
mod wrong;
