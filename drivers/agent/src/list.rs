//! The reviewed list: what the off and the status of each agent mean, read in its source.
//!
//! Read in fence-agents 4.12.1 (Debian 12, 4.12.1-1), each in `agents/<name without
//! fence_>/fence_<name>.py` there, or in the file that Debian links it to; SNMP agents also in
//! `lib/fencing_snmp.py.py`, all in `lib/fencing.py.py`.
//!
//! # Invariants
//!
//! - An agent is [`Proof::Power`] only where every word that is not the device's own word for off is not
//!   read as off (S1).
//! - What an agent's word is worth stands in this list alone.

use picket_core::device::{DeviceClass, Grade};

mod names;
mod source;

pub use source::SOURCE;

/// The version of fence-agents whose sources were read.
pub const READ_IN: &str = "4.12.1";

/// Whether an agent that tells this version is the one that was read; a distribution's revision may follow.
pub fn was_read(version: &str) -> bool {
    version
        .strip_prefix(READ_IN)
        .is_some_and(|rest| !rest.starts_with(|c: char| c == '.' || c.is_ascii_alphanumeric()))
}

/// What an agent's off proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Power: its status is off only where the device said so.
    Power,
    /// Its status is off also where it does not know: it never proves alone.
    TowardsOff,
    /// Never power: no device.
    Never,
}

/// What an agent switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchTarget {
    /// A machine, by its management controller, blade or partition controller.
    Host,
    /// An outlet.
    Outlet,
    /// A virtual machine, by its hypervisor or cloud.
    Machine,
    /// Whatever a daemon behind it does: the settings say the class.
    Anything,
}

/// Where the agent puts its secrets, besides its own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretExposure {
    /// Nowhere that other users see.
    Nothing,
    /// In the arguments of a program that it runs: every user of the gateway's machine can read them while it runs.
    Arguments,
    /// In the environment of a program that it runs, which the same user and root can read.
    Environment,
}

/// One agent.
#[derive(Clone, Copy, Debug)]
pub struct Agent {
    /// Its program's name.
    pub name: &'static str,
    /// What its off proves.
    pub proof: Proof,
    /// What it switches.
    pub switches: SwitchTarget,
    /// What its off does and what its status reads as off; or why it is no device.
    pub why: &'static str,
}

impl Agent {
    /// The class of its devices; `None`: the settings say it.
    pub fn class(&self) -> Option<DeviceClass> {
        match self.switches {
            SwitchTarget::Host | SwitchTarget::Machine => Some(DeviceClass::Host),
            SwitchTarget::Outlet => Some(DeviceClass::Supply),
            SwitchTarget::Anything => None,
        }
    }

    /// The best grade that its Off can have.
    pub fn grade(&self) -> Grade {
        match (self.proof, self.switches) {
            (Proof::Power, SwitchTarget::Host | SwitchTarget::Outlet) => Grade::Observed,
            (Proof::Power, SwitchTarget::Machine) => Grade::Hypervisor,
            (Proof::Power, SwitchTarget::Anything) | (Proof::TowardsOff | Proof::Never, _) => Grade::Claimed,
        }
    }

    /// Where in its source that was read: a function or table, and text of one of its lines.
    pub fn source(&self) -> Option<(&'static str, &'static str)> {
        let short = self.name.strip_prefix("fence_")?;
        SOURCE.iter().find(|(name, _, _)| *name == short).map(|(_, function, text)| (*function, *text))
    }

    /// Where its secrets can be seen while it runs.
    pub fn shows(&self) -> SecretExposure {
        const ARGUMENTS: [&str; 18] = [
            "apc_snmp",
            "cisco_mds",
            "eaton_snmp",
            "emerson",
            "ibmblade",
            "idrac",
            "ifmib",
            "ilo3",
            "ilo4",
            "ilo5",
            "imm",
            "intelmodular",
            "ipdu",
            "ipmilan",
            "ipmilanplus",
            "lindypdu",
            "tripplite_snmp",
            "vmware",
        ];
        const ENVIRONMENT: [&str; 2] = ["amt", "ironic"];
        let short = self.name.strip_prefix("fence_").unwrap_or(self.name);
        if ARGUMENTS.contains(&short) {
            SecretExposure::Arguments
        } else if ENVIRONMENT.contains(&short) {
            SecretExposure::Environment
        } else {
            SecretExposure::Nothing
        }
    }
}

/// The agent of that name.
pub fn find(name: &str) -> Option<&'static Agent> {
    LIST.iter().find(|agent| agent.name == name)
}

macro_rules! list {
    ($($name:literal $proof:ident $switches:ident $why:literal)*) => {
        /// All of them, by name.
        pub const LIST: &[Agent] = &[$(Agent {
            name: concat!("fence_", $name), proof: Proof::$proof, switches: SwitchTarget::$switches, why: $why,
        }),*];
    };
}

// One line an agent, like the table that it is.
#[rustfmt::skip]
list! {
    "ack_manual"      Never      Anything "a person's word: Picket's own is `picket attest`"
    "aliyun"          TowardsOff Machine  "a hibernated instance is off: its memory is kept and goes on later"
    "alom"            TowardsOff Host     "the word standby anywhere in what showplatform prints is off, names too"
    "amt"             TowardsOff Host     "powerdown by amttool; every power state but S0 is off, sleep too"
    "apc"             TowardsOff Outlet   "on firmware before 5 an outlet whose name has the word OFF is off"
    "apc_snmp"        TowardsOff Outlet   "whatever SNMP answers that is not the number for on is off, also for an outlet that is not there"
    "aws"             TowardsOff Machine  "a hibernated instance is off: its memory is kept and goes on later"
    "azure_arm"       TowardsOff Machine  "a hibernated machine is off: its memory is kept and goes on later"
    "bladecenter"     Power      Host     "power -off of a blade; the management module's own word is the status"
    "brocade"         Never      Anything "closes a port of a storage fabric: the machine goes on"
    "cdu"             Power      Outlet   "the outlet by telnet; On and Off alone are read"
    "cisco_mds"       Never      Anything "closes a port of a storage fabric: the machine goes on"
    "cisco_ucs"       TowardsOff Host     "a blade that is missing, mismatched, or in any state but on is off"
    "compute"         Never      Anything "tells Nova that a compute host is down: nothing is switched off"
    "crosslink"       Never      Anything "pings over a cable: silence is off"
    "cyberpower_ssh"  TowardsOff Outlet   "reads outlets 10 and up under their first digit, so that outlet 1 has the state of another"
    "docker"          Never      Anything "kills a container, which is no machine: its host goes on writing for it"
    "drac"            TowardsOff Host     "takes the first on or off in the list of modules, whichever module it is of"
    "drac5"           Power      Host     "racadm serveraction powerdown; ON and OFF alone are read, while it is powering it is on"
    "dummy"           Never      Anything "writes a file; one that cannot be read is off"
    "eaton_snmp"      Power      Outlet   "the outlet by SNMP; the numbers for on and off alone are read"
    "ecloud"          TowardsOff Machine  "in a VPC whatever is not online is off, also where nothing is said"
    "emerson"         TowardsOff Outlet   "whatever SNMP answers that is not the number for on is off"
    "eps"             Power      Outlet   "the outlet by HTTP; 0 alone is off. In this version it fails under Python 3"
    "evacuate"        Never      Anything "tells Nova to start the machines of a host elsewhere: nothing is switched off"
    "gce"             Power      Machine  "instances.stop, which leaves the guest its time; TERMINATED alone is off"
    "hds_cb"          Power      Host     "power off of a partition; the controller's own word is the status"
    "heuristics_ping" Never      Anything "pings, to say who may fence: nothing is switched off"
    "hpblade"         Power      Host     "poweroff server force; the enclosure's own word is the status, of a Superdome DOWN"
    "ibm_powervs"     Power      Machine  "immediate-shutdown; SHUTOFF alone is off"
    "ibm_vpc"         Power      Machine  "stop; stopped alone is off"
    "ibmblade"        TowardsOff Host     "whatever SNMP answers that is not the number for on is off"
    "ibmz"            TowardsOff Machine  "every status of a partition but the one for on is off"
    "idrac"           Power      Host     "chassis power off by ipmitool; its words on and off alone are read"
    "ifmib"           Never      Anything "closes a port of a network switch: the machine goes on"
    "ilo"             Never      Anything "presses and holds the power button, on iLO 2 as a toggle: what arrives late switches on"
    "ilo2"            Never      Anything "presses and holds the power button, on iLO 2 as a toggle: what arrives late switches on"
    "ilo3"            Power      Host     "chassis power off by ipmitool; its words on and off alone are read"
    "ilo3_ssh"        TowardsOff Host     "every EnabledState that does not begin with enabled is off"
    "ilo4"            Power      Host     "chassis power off by ipmitool; its words on and off alone are read"
    "ilo4_ssh"        TowardsOff Host     "every EnabledState that does not begin with enabled is off"
    "ilo5"            Power      Host     "chassis power off by ipmitool; its words on and off alone are read"
    "ilo5_ssh"        TowardsOff Host     "every EnabledState that does not begin with enabled is off"
    "ilo_moonshot"    Power      Host     "set node power off force; the chassis' own word is the status, a cartridge that is not listed an error"
    "ilo_mp"          TowardsOff Host     "every EnabledState that does not begin with enabled is off"
    "ilo_ssh"         TowardsOff Host     "every EnabledState that does not begin with enabled is off"
    "imm"             Power      Host     "chassis power off by ipmitool; its words on and off alone are read"
    "intelmodular"    TowardsOff Host     "whatever SNMP answers that is not the number for on is off"
    "ipdu"            TowardsOff Outlet   "whatever SNMP answers that is not the number for on is off"
    "ipmilan"         Power      Host     "chassis power off by ipmitool; its words on and off alone are read"
    "ipmilanplus"     Power      Host     "chassis power off by ipmitool; its words on and off alone are read"
    "ironic"          TowardsOff Host     "reads Ironic's database, which is up to a minute old, by the first letters after power"
    "kdump"           Never      Anything "waits for a message of the crashed machine: nothing is switched off"
    "kubevirt"        TowardsOff Machine  "stop, which leaves the guest its time; an instance that is not found is off"
    "ldom"            TowardsOff Machine  "bound is off, also the target of a migration whose source runs"
    "lindypdu"        Never      Anything "sets all outlets of the unit as it read them before: two at once switch each other's outlets on"
    "lpar"            TowardsOff Machine  "every state of a partition that it does not know is off"
    "mpath"           Never      Anything "takes a key off shared disks: the machine goes on, and so do its other disks"
    "netio"           Power      Outlet   "the outlet by telnet; 0 alone is off"
    "openstack"       TowardsOff Machine  "os-stop; SHUTOFF is off, which of a dead compute host is a value of Nova's database"
    "ovh"             Never      Anything "restarts the machine into a rescue system: it is not off"
    "powerman"        Power      Anything "off by powermand; its word off alone is off, and as good as the devices behind it"
    "pve"             TowardsOff Machine  "a machine suspended to disk is off: its memory is kept and goes on later"
    "raritan"         Power      Outlet   "the outlet by telnet; 1 and 2 alone are read"
    "raritan_px3"     TowardsOff Outlet   "a group of outlets has the last word of its list: partly on is off"
    "rcd_serial"      Never      Anything "pulls a reset line, without any status"
    "redfish"         Power      Host     "ComputerSystem.Reset ForceOff; PowerState Off alone is off"
    "rhevm"           TowardsOff Machine  "an answer without a status is off"
    "rsa"             Power      Host     "power off; the adapter's own word is the status"
    "rsb"             Power      Host     "the power menu; on and off alone are read"
    "sanbox2"         Never      Anything "closes a port of a storage fabric: the machine goes on"
    "sbd"             Never      Anything "leaves a message on a disk, which a watchdog of the machine itself obeys"
    "scsi"            Never      Anything "takes a key off shared disks: the machine goes on, and so do its other disks"
    "skalar"          TowardsOff Machine  "suspended, failed, starting, and a node that cannot be reached are off"
    "tripplite_snmp"  TowardsOff Outlet   "whatever SNMP answers that is not the number for on is off, also for an outlet that is not there"
    "vbox"            TowardsOff Machine  "what is not in the list of machines that run is off, also where that list is empty by a fault"
    "virsh"           TowardsOff Machine  "every answer without a word for on or error is off, also none"
    "vmware"          TowardsOff Machine  "every state but powered on is off, and every machine of a host that is disconnected"
    "vmware_rest"     TowardsOff Machine  "suspended is off: its memory is kept and goes on later"
    "vmware_soap"     TowardsOff Machine  "every state but powered on is off, suspended too"
    "vmware_vcloud"   TowardsOff Machine  "suspended is off: its memory is kept and goes on later"
    "wti"             TowardsOff Outlet   "a group of outlets none of which says on is off, also one without outlets"
    "xenapi"          Power      Machine  "hard_shutdown; Halted alone is off"
    "zvmip"           TowardsOff Machine  "an image that is not defined is off"
}

#[cfg(test)]
mod tests;
