//! Servers that have a guest: Nova's fake hypervisor has none, and switches a machine of the test's instead (`switch` in
//! `tests/peers/openstack/hypervisor.py`). It does so within its own off and on: once Nova says SHUTOFF nothing of the guest is left.

use serde_json::{Value, json};

use super::OpenStack;
use crate::error::Result;

impl OpenStack {
    /// From now on a server's power is that machine's, which this program switches with 1 or 0 behind its arguments.
    pub(in crate::peers) fn guest(&self, server: &str, switch: &[String]) -> Result<()> {
        self.knob(&format!("guest-{server}"), &json!({ "switch": switch })).map(drop)
    }

    /// With what the tenant logs in, for a program that is neither Picket nor openstacksdk.
    pub(in crate::peers) fn tenant(&self) -> Value {
        json!({ "auth_url": self.auth_url(), "user": "tenant", "password": "tenant-secret", "project": "tenant" })
    }
}
