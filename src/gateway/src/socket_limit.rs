//! Room for sockets: a device whose session is open takes one, and ten thousand are more than a process may usually have.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that are open besides: the store, the audit, listeners, programs that are run.
const BESIDES: u64 = 512;

/// How many files are open at once where every device has a session, and how many where each of them was lost and has another one.
fn wanted(devices: usize, connections: u32) -> (u64, u64) {
    let (devices, besides) = (devices as u64, u64::from(connections) + BESIDES);
    (devices + besides, 2 * devices + besides)
}

/// Sees to it that so many devices can have their sessions at once, and raises the limit as far as it may be raised, and no further
/// than that: programs that are run get it too. `Some`: there is not room for all, in words. A fence of a few nodes has room then, too.
pub(crate) fn make(devices: usize, connections: u32) -> Option<String> {
    let (needed, wanted) = wanted(devices, connections);
    let limit = getrlimit(Resource::Nofile);
    let now = limit.current.unwrap_or(u64::MAX);
    if now >= wanted {
        return None;
    }
    // Beyond what is allowed only who may raise that, too.
    let most = limit.maximum.map(|most| most.max(wanted));
    let whole = rustix::process::Rlimit { current: Some(wanted), maximum: most };
    if setrlimit(Resource::Nofile, whole).is_ok() {
        return None;
    }
    let most = limit.maximum.unwrap_or(u64::MAX).min(wanted);
    let part = rustix::process::Rlimit { current: Some(most), maximum: limit.maximum };
    let has = if setrlimit(Resource::Nofile, part).is_ok() { most } else { now };
    if has >= needed {
        return None;
    }
    Some(format!(
        "{devices} devices and {connections} connections need {needed} open files at once, and this process may have {has}: \
         what is more cannot be asked meanwhile, also in a fence. Allow {wanted} (LimitNOFILE={wanted} in the unit, ulimit -n {wanted})"
    ))
}

#[cfg(test)]
mod tests {
    use super::make;

    #[test]
    fn few_have_room_and_what_is_missing_for_too_many_is_told() {
        assert_eq!(make(1, 1), None);
        let told = make(usize::MAX / 8, 768).expect("nobody may have so many");
        assert!(told.contains("LimitNOFILE=") && told.contains("768 connections"), "{told}");
    }
}
