//! The peers, and the tools to look at them with.

mod address;
mod aws;
mod bmc17;
mod built;
mod calls;
mod etcd;
mod foreign;
mod gcp;
mod hand;
mod helm;
mod ipmi_sim;
mod judge;
mod knob;
mod kubernetes;
mod machine;
mod network;
mod observer;
mod observing;
mod openstack;
mod pacemaker;
mod pdu;
mod process;
mod promtool;
mod python;
mod ready;
mod reaper;
mod sdk;
mod slots;
mod small_disk;
mod sushy;
mod tcp_fault;
mod tools;
mod udp_fault;
mod window;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use address::fresh_address;
pub use aws::{AccessKey, AwsRole, Became, Ec2, Ec2Request, Treatment, VolumeState};
pub use bmc17::Bmc17;
pub use calls::{Asked, Calls};
pub use etcd::{CLIENT_PORT as ETCD_CLIENT_PORT, Etcd, EtcdCluster, EtcdMember};
pub use foreign::Foreign;
pub use gcp::{
    ComputeEngine, GceDisk, GceDiskState, GceEvent, GceInstance, GceMake, GceRequest, GceState, GceToken,
    GceTreatment, GceUser,
};
pub use helm::helm;
pub use ipmi_sim::{Hold, IpmiSim, IpmiSimBuilder};
pub use judge::{Logs, Verdict, judge};
pub use knob::Knob;
pub use kubernetes::{
    CsiCall, Database, Frozen, Kubernetes, KubernetesMachine, Kwok, Silent, Stopped, Write, Writers, kubectl,
};
pub use machine::{Machine, PowerEvent};
pub use network::{Cut, Network, Place};
pub use observer::{Beat, Observer};
pub use observing::{parse_metrics, parse_yaml, parse_yaml_documents};
pub use openstack::{
    Credential, Effect, HOSTS as OPENSTACK_HOSTS, OpenStack, Request, RequestRule, Rules, ServerFault,
};
pub use pacemaker::Fencer;
pub use pdu::Pdu;
pub use process::Process;
pub use promtool::promtool;
pub use python::interpreter as test_python;
pub use ready::{HANGS, eventually, until, wait_for_bmc};
pub use sdk::Who;
pub use slots::take_all_sessions;
pub use small_disk::SmallDisk;
pub use sushy::{SYSTEMS, Sushy, SushyFault};
pub use tcp_fault::TcpFault;
pub use tools::{Ipmipower, Ipmitool, PowerWord};
pub use udp_fault::{Counts, Faults, UdpFault};

/// The account of every simulated BMC with all rights.
pub const ADMIN: &str = "admin";
/// The account that may switch power and no more: what Picket needs.
pub const OPERATOR: &str = "operator";
/// The password of both.
pub const PASSWORD: &str = "secret12";

/// Whether a node is on, asked of the node itself and not of anything that speaks for it.
pub type Truth = Arc<dyn Fn() -> bool + Send + Sync>;

/// A file of `tests/peers`.
pub(crate) fn peer_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}
