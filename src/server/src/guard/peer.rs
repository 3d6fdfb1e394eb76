//! Who is at the other end of a connection.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use picket_core::roles::{LOOPBACK, Person, Proof};
use tokio::net::UnixStream;

use super::login;
use super::origin::Origin;

/// Who is at the other end, as it was found out when the connection was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A process on this machine, as the kernel says.
    Process {
        uid: u32,
        gids: Arc<[u32]>,
        /// Who that is, for people; it grants nothing.
        shown: Option<Arc<str>>,
    },
    /// Whoever has the key of a certificate of our CA.
    Certified {
        name: Arc<str>,
        /// When the certificate expires, in seconds since 1970.
        not_after: i64,
    },
    /// Somebody on this machine, of whom nothing is known.
    Loopback(IpAddr),
}

impl Peer {
    /// The process behind a Unix socket.
    pub(crate) async fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let found = stream.peer_cred()?;
        let mut gids = vec![found.gid()];
        gids.extend(groups(stream));
        let shown = login::shown(found.uid(), login::of(stream, found.pid())).await;
        Ok(Peer::Process { uid: found.uid(), gids: gids.into(), shown })
    }

    /// The name, as it stands in holds, history and logs: `spiffe://lab/ns/db`, `uid:1000`, `tcp:127.0.0.1`.
    pub(crate) fn name(&self) -> String {
        match self {
            Peer::Process { uid, .. } => format!("uid:{uid}"),
            Peer::Certified { name, .. } => name.to_string(),
            Peer::Loopback(address) => format!("tcp:{address}"),
        }
    }

    /// As whom it is told of, and as whom it counts: whoever reaches the loopback chooses an address of it.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Peer::Process { shown, .. } => Origin { shown: shown.clone(), ..Origin::known(&self.name()) },
            Peer::Certified { .. } => Origin::known(&self.name()),
            Peer::Loopback(_) => Origin::stranger(&self.name(), LOOPBACK),
        }
    }

    /// As roles are granted to.
    pub(crate) fn person(&self) -> Person {
        let proof = match self {
            Peer::Process { uid, gids, shown } => {
                Proof::Kernel { uid: *uid, gids: gids.clone(), shown: shown.clone() }
            }
            Peer::Certified { .. } => Proof::Certificate,
            Peer::Loopback(_) => Proof::Address,
        };
        Person { name: self.name(), proof }
    }
}

/// The supplementary groups of the process when it connected (`SO_PEERGROUPS`, since Linux 4.13); none where the kernel
/// does not tell.
#[allow(unsafe_code)]
fn groups(stream: &UnixStream) -> Vec<u32> {
    /// A process has at most so many (`NGROUPS_MAX`, limits.h).
    const MOST: usize = 65_536;
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let room = groups.len() * size_of::<libc::gid_t>();
        let Ok(mut length) = libc::socklen_t::try_from(room) else { return Vec::new() };
        // SAFETY: the kernel writes at most `length` bytes to the buffer, which has as many and lives until after the
        // call, and the number of bytes that it needs to `length`. The descriptor is open as long as `stream` lives.
        let answer = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &mut length,
            )
        };
        let count = usize::try_from(length).unwrap_or(0) / size_of::<libc::gid_t>();
        if answer == 0 {
            groups.truncate(count);
            return groups;
        }
        let too_small = std::io::Error::last_os_error().raw_os_error() == Some(libc::ERANGE);
        if !too_small || count <= groups.len() || count > MOST {
            return Vec::new();
        }
        groups.resize(count, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_reaches_the_loopback_counts_as_one_whatever_address_they_choose() {
        let at = |address: &str| Peer::Loopback(address.parse().expect("an address"));
        let (one, other) = (at("127.0.0.1").origin(), at("127.9.9.9").origin());
        assert_eq!((&one.name, &other.name), (&"tcp:127.0.0.1".to_owned(), &"tcp:127.9.9.9".to_owned()));
        assert_eq!(one.as_one, other.as_one);
        assert_eq!(one.as_one, at("::1").origin().as_one);
    }

    #[tokio::test]
    async fn the_kernel_tells_user_and_groups() {
        let (stream, _other) = UnixStream::pair().expect("a pair");
        let Peer::Process { uid, gids, .. } = Peer::of(&stream).await.expect("told") else {
            panic!("a process")
        };
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let numbers = |key: &str| -> Vec<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("there");
            line.split_whitespace().map(|number| number.parse().expect("a number")).collect()
        };
        assert_eq!(uid, numbers("Uid:")[1]);
        assert_eq!(gids[0], numbers("Gid:")[1]);
        assert_eq!(&gids[1..], numbers("Groups:"));
    }
}
