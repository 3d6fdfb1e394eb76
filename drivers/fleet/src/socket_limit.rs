//! Room for sockets.

use rustix::process::{Resource, getrlimit, setrlimit};

/// What a process has open besides, and some connections.
const BESIDES: u64 = 256;

/// There are more sockets to open than this process may.
#[derive(Debug, thiserror::Error)]
#[error(
    "{wanted} open files are needed and {most} allowed; allow more (ulimit -n {wanted}) or take fewer machines"
)]
pub struct SocketLimitError {
    wanted: u64,
    most: u64,
}

/// Sees to it that so many sockets may be open, and raises the limit as far as it may be raised.
///
/// # Errors
/// It may not be raised so far.
pub fn room_for(sockets: usize) -> Result<(), SocketLimitError> {
    let wanted = sockets as u64 + BESIDES;
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|now| now < wanted) {
        limit.current = Some(wanted);
        // Beyond what is allowed only who may raise that, too.
        limit.maximum = limit.maximum.map(|most| most.max(wanted));
        setrlimit(Resource::Nofile, limit).map_err(|_| SocketLimitError { wanted, most })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::room_for;

    #[test]
    fn what_is_too_much_is_told() {
        room_for(1).expect("there is room for one");
        let said = room_for(usize::MAX / 2).expect_err("there is no such limit").to_string();
        assert!(said.contains("ulimit -n"), "{said}");
    }
}
