//! Why Nova refuses to stop or start a server (409), and what ends that.

use crate::server::Server;

/// Whether Nova refused a command to that server for its lock, as its words say (`InstanceIsLocked`): every other refusal has the same status.
pub(crate) fn is_for_its_lock(words: &str, server: &str) -> bool {
    words.ends_with(&format!("Instance {server} is locked"))
}

/// What ends a state in which Nova neither stops nor starts a server (`nova.compute.api.API.stop` takes it in ACTIVE and ERROR, `start` in
/// STOPPED), and which does not end by itself; `None`: it is in no such state.
pub(crate) fn way_out(server: &Server) -> Option<String> {
    let status = server.status.as_deref()?;
    let command = match status {
        "PAUSED" => "unpause",
        "SUSPENDED" => "resume",
        "RESCUE" => "unrescue",
        "SHELVED" | "SHELVED_OFFLOADED" => "unshelve",
        "VERIFY_RESIZE" => "resize confirm",
        "SOFT_DELETED" => "restore",
        _ => return None,
    };
    Some(format!(
        "Nova neither stops nor starts a server that is {status}: openstack server {command} {} ends that",
        server.id
    ))
}

#[cfg(test)]
mod tests;
