//! What names the machine that each agent switches, read in the same sources as the list.
//!
//! # Invariants
//!
//! - An agent never chooses by itself, and takes nothing for another machine than the settings name (S13).
//!   Shown by `an_agent_that_would_choose_by_itself_is_told_which`.

use super::{Agent, SwitchTarget};

/// BMCs by `ipmitool`: one program under several names.
const BY_IPMITOOL: [&str; 7] = [
    "fence_idrac",
    "fence_ilo3",
    "fence_ilo4",
    "fence_ilo5",
    "fence_imm",
    "fence_ipmilan",
    "fence_ipmilanplus",
];
/// Cipher suites of IPMI 2.0 with which a packet is not signed, or nobody authenticated at all (table 22-20).
const UNSIGNED: [u8; 4] = [0, 1, 6, 15];
/// Its dialect of SMASH-CLP names outlets by path.
const RARITAN: &str = "/system1/outlet";

impl Agent {
    /// Parameters that its metadata does not ask for, and what it takes without them.
    pub fn needs(&self) -> &'static [(&'static str, &'static str)] {
        match self.name {
            "fence_redfish" => &[("systems_uri", "takes the last system that the service lists")],
            "fence_openstack" | "fence_powerman" | "fence_vmware" => &[("plug", "is told of no machine")],
            "fence_drac5" => &[(
                "drac_version",
                "takes whatever greets it in unknown words for a DRAC 5, which has one machine (\"DRAC 5\", \"DRAC CMC\" or \
                 \"DRAC MC\")",
            )],
            "fence_gce" => &[
                ("project", "takes the project of the machine on which it runs"),
                ("zone", "takes the first zone that has an instance of that name"),
            ],
            "fence_azure_arm" => &[
                ("resourceGroup", "takes the resource group of the machine on which it runs"),
                ("subscriptionId", "takes the subscription of the machine on which it runs"),
            ],
            "fence_kubevirt" => &[
                ("namespace", "takes that of the current context"),
                ("kubeconfig", "takes the cluster of whoever runs it"),
            ],
            _ => &[],
        }
    }

    /// Parameters with which its off would not mean what the list says, or that name nothing, with the reason.
    pub fn refused(&self) -> &'static [(&'static str, &'static str)] {
        match self.name {
            "fence_gce" => {
                &[("baremetalsolution", "with it the status is what was asked for, whatever is so")]
            }
            "fence_azure_arm" => &[("network_fencing", "with it a blocked network counts as off")],
            "fence_cdu" => {
                &[("switch", "the agent does nothing with it: outlets that differ by it alone are one")]
            }
            "fence_openstack" => &[("uuid", "it is taken instead of plug: give it as plug")],
            _ => &[],
        }
    }

    /// Whether it is `ipmitool` that asks, which speaks IPMI 2.0 only where it is told to (`lanplus`).
    pub fn is_ipmi(&self) -> bool {
        BY_IPMITOOL.contains(&self.name)
    }

    /// Whether an outlet, slot or node that is numbered is the same with zeros before its number. A machine has a name, where `07` is not `7`.
    pub fn counts(&self) -> bool {
        self.switches != SwitchTarget::Machine
    }

    /// The plug in its shortest spelling.
    pub fn plug<'a>(&self, plug: &'a str) -> &'a str {
        match self.name {
            "fence_raritan" => plug.strip_prefix(RARITAN).unwrap_or(plug),
            _ => plug,
        }
    }

    /// Why this value of a parameter (with `_`, in lower case) is not what it looks like to this agent.
    pub fn mistakes(&self, parameter: &str, value: &str) -> Option<&'static str> {
        match parameter {
            "plug" | "port" => self.mistakes_plug(value),
            "zone" => value.contains(',').then_some("names several: give the one of this machine"),
            "cipher" if self.is_ipmi() => {
                let is_signed = value.parse::<u8>().is_ok_and(|suite| !UNSIGNED.contains(&suite));
                (!is_signed).then_some(
                    "expected the number of a cipher suite that authenticates each packet, 3 or 17 (0, 1, 6 and 15 do not)",
                )
            }
            "auth" if self.is_ipmi() && value == "none" => Some("then nobody is authenticated"),
            _ => None,
        }
    }

    fn mistakes_plug(&self, plug: &str) -> Option<&'static str> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self.name {
            "fence_eaton_snmp" | "fence_eps" | "fence_netio" | "fence_raritan" => (!is_number(self.plug(plug)))
                .then_some("expected the outlet's number: by a name it could not be told from another device's number"),
            "fence_hpblade" => (!is_number(plug.trim_end_matches(|c: char| c.is_ascii_alphabetic())))
                .then_some("expected the bay's number, of one bay"),
            "fence_apc" | "fence_apc_snmp" | "fence_cdu" | "fence_tripplite_snmp" => plug
                .contains(':')
                .then_some("what is before the colon is a switch to the agent: give the outlet alone"),
            "fence_powerman" => plug
                .contains(['[', ']', ' '])
                .then_some("names several: make a device for each, so that each is seen off"),
            "fence_rhevm" => plug.contains(['*', ' ']).then_some("names several: the agent takes the first that is found"),
            "fence_virsh" => is_number(plug).then_some(
                "libvirt takes a number for the id of a domain that runs, which may be another machine's: give its name or UUID",
            ),
            _ => None,
        }
    }
}
