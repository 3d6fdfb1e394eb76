//! Where callers are listened to: a Unix socket, and TCP.
//!
//! # Invariants
//!
//! - Without TLS nothing but the loopback is listened on. Shown by
//!   `tcp_is_loopback_alone_and_a_taken_port_is_told`.
//! - A file is removed from the socket's path only if it is a socket at which nobody answers. Shown by
//!   `a_socket_that_answers_is_taken_and_one_that_does_not_is_cleared`,
//!   `a_file_that_is_no_socket_is_left_alone`.
//! - Nobody can connect before the socket has its mode.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use tokio::net::{TcpListener, UnixListener, UnixSocket, UnixStream};

use crate::serve::ServeError;
use crate::tls::Tls;

mod directory;

/// Connections that may wait to be taken.
const BACKLOG: u32 = 256;

/// Where to listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// A Unix socket.
    pub unix: Option<SocketFile>,
    /// TCP, without TLS loopback alone; port 0 takes any that is free.
    pub tcp: Option<SocketAddr>,
}

/// A Unix socket's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFile {
    /// Its path. Its directory must be there; below one that is sticky and open to others a start makes it.
    pub path: PathBuf,
    /// Its mode: who may write to it may fence.
    pub mode: u32,
}

impl SocketFile {
    /// The gateway's user and group.
    pub const MODE: u32 = 0o660;
}

/// Why nothing can be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Without an address nobody could call.
    #[error("there is nothing to listen on: name a Unix socket or a loopback address")]
    Nowhere,
    /// TCP beyond this machine would be without TLS.
    #[error("{0} is not a loopback address: without TLS only 127.0.0.0/8 and ::1 are listened on")]
    NotLoopback(SocketAddr),
    /// Somebody has the port.
    #[error(
        "{0} is taken: another gateway, or another program, listens there; choose another port or stop it"
    )]
    PortTaken(SocketAddr),
    /// Somebody answers at the socket.
    #[error("{} is taken: another gateway answers there; choose another path or stop it", .0.display())]
    SocketTaken(PathBuf),
    /// Somebody else could put another socket in its place, and answer callers that a node is off.
    #[error("{} cannot be the socket's directory: {fault}", .fault.file.display())]
    Exposed {
        /// What is wrong with the directory, or above it.
        fault: picket_permissions::Fault,
    },
    /// Everybody, or a group, may make files in the sticky directory. While the gateway is away they could put a socket of
    /// their own there, and answer callers that a node is off. Nothing is listened on, and no power was switched.
    #[error(
        "{} cannot be the socket's directory: others may make files in it, and its sticky bit does not keep them from putting \
         another socket there while the gateway is away; choose a directory of the gateway's user, or name one below this: \
         picketd makes it with mode 700",
        .0.display()
    )]
    Shared(PathBuf),
    /// Something else stands at the path.
    #[error("{} is there and is no socket: it is left alone; choose another path or remove it", .0.display())]
    NotASocket(PathBuf),
    /// Anything else.
    #[error("cannot listen on {place}: {source}{}", hint(.place, .source))]
    Io {
        /// Where.
        place: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

fn hint(place: &str, source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::NotFound => {
            let directory = Path::new(place).parent().unwrap_or(Path::new("/"));
            format!(
                " (its directory must be there, and belong to the user who runs picketd: install -d -m 750 -o {} -g {} {})",
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
                directory.display()
            )
        }
        io::ErrorKind::PermissionDenied => " (the gateway's user must be allowed to write there)".to_owned(),
        io::ErrorKind::InvalidInput => " (a socket's path has at most 107 bytes)".to_owned(),
        _ => String::new(),
    }
}

/// What is listened on.
#[derive(Debug)]
pub struct Listeners {
    pub(crate) unix: Option<BoundSocket>,
    pub(crate) tcp: Option<TcpListener>,
    pub(crate) tls: Option<Arc<Tls>>,
}

impl Listeners {
    /// Whether TLS is spoken on TCP.
    pub fn are_guarded(&self) -> bool {
        self.tls.is_some()
    }
}

/// A Unix socket that is listened on; its file goes with it.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub(crate) listener: UnixListener,
    pub(crate) file: OwnFile,
}

/// A socket's file that this process made.
#[derive(Debug)]
pub(crate) struct OwnFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Another gateway may have taken the path since: its file has another inode.
        if std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the socket's file is left behind");
        }
    }
}

impl Addresses {
    /// Looks whether the Unix socket could be made, and makes nothing: another gateway may answer there now.
    pub fn check(&self) -> Result<(), ListenError> {
        let Some(SocketFile { path, .. }) = &self.unix else { return Ok(()) };
        let failed = |source| ListenError::Io { place: path.display().to_string(), source };
        let directory = directory::is_made_in(path).unwrap_or(directory::of(path));
        directory::check(path)?;
        accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|error| failed(error.into()))?;
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(error)),
            Ok(found) if !found.file_type().is_socket() => Err(ListenError::NotASocket(path.to_owned())),
            Ok(_) => Ok(()),
        }
    }

    /// Begins to listen, without TLS. Must be called within a runtime.
    pub async fn bind(&self) -> Result<Listeners, ListenError> {
        self.bind_with(None).await
    }

    /// Begins to listen, on TCP with TLS where it is given. Must be called within a runtime.
    pub async fn bind_with(&self, tls: Option<Tls>) -> Result<Listeners, ListenError> {
        if self.unix.is_none() && self.tcp.is_none() {
            return Err(ListenError::Nowhere);
        }
        let tcp = match self.tcp {
            Some(address) => Some(tcp(address, tls.is_some()).await?),
            None => None,
        };
        let unix = match &self.unix {
            Some(file) => Some(unix(file).await?),
            None => None,
        };
        Ok(Listeners { unix, tcp, tls: tls.map(Arc::new) })
    }
}

impl Listeners {
    /// Begins to listen on a Unix socket that the gateway's user and group may use, on loopback TCP, or on both.
    pub async fn bind(unix: Option<&Path>, tcp: Option<SocketAddr>) -> Result<Self, ServeError> {
        let unix = unix.map(|path| SocketFile { path: path.to_owned(), mode: SocketFile::MODE });
        Ok(Addresses { unix, tcp }.bind().await?)
    }

    /// The TCP address, with its real port.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|tcp| tcp.local_addr().ok())
    }
}

async fn tcp(address: SocketAddr, is_guarded: bool) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() && !is_guarded {
        return Err(ListenError::NotLoopback(address));
    }
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::PortTaken(address),
        _ => ListenError::Io { place: address.to_string(), source },
    })
}

async fn unix(file: &SocketFile) -> Result<BoundSocket, ListenError> {
    let path = &file.path;
    let failed = |source| ListenError::Io { place: path.display().to_string(), source };
    directory::make(path).map_err(failed)?;
    directory::check(path)?;
    clear(path).await?;
    let socket = UnixSocket::new_stream().map_err(failed)?;
    socket.bind(path).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::SocketTaken(path.clone()),
        _ => failed(source),
    })?;
    let inode = std::fs::symlink_metadata(path).map_err(failed)?.ino();
    let own = OwnFile { path: path.clone(), inode };
    // Until it listens every connection is refused, so that the mode is there before the first caller.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(file.mode)).map_err(failed)?;
    let listener = socket.listen(BACKLOG).map_err(failed)?;
    Ok(BoundSocket { listener, file: own })
}

/// Makes room at the path, if what stands there is a socket that nobody listens at.
async fn clear(path: &Path) -> Result<(), ListenError> {
    let failed = |source| ListenError::Io { place: path.display().to_string(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(ListenError::NotASocket(path.to_owned())),
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "a socket at which nobody answers is removed");
            std::fs::remove_file(path).map_err(failed)
        }
        // A full backlog, or a socket that we may not write to, is somebody's.
        Ok(_) | Err(_) => Err(ListenError::SocketTaken(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: PathBuf) -> Addresses {
        Addresses { unix: Some(SocketFile { path, mode: 0o660 }), tcp: None }
    }

    #[tokio::test]
    async fn a_socket_has_its_mode_and_goes_with_its_listener() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let bound = at(path.clone()).bind().await.expect("bound");
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        drop(bound);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_that_answers_is_taken_and_one_that_does_not_is_cleared() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let first = at(path.clone()).bind().await.expect("bound");
        assert!(matches!(at(path.clone()).bind().await, Err(ListenError::SocketTaken(_))));
        drop(first);
        // As a killed gateway leaves it.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
        assert!(path.exists());
        at(path).bind().await.expect("bound over it");
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        std::fs::write(&path, "precious").expect("written");
        assert!(matches!(at(path.clone()).bind().await, Err(ListenError::NotASocket(_))));
        assert_eq!(std::fs::read(&path).expect("there"), b"precious");
    }

    #[tokio::test]
    async fn a_missing_directory_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = at(dir.path().join("no/s")).bind().await.expect_err("no directory").to_string();
        assert!(error.contains("directory must be there"), "{error}");
    }

    #[tokio::test]
    async fn tcp_is_loopback_alone_and_a_taken_port_is_told() {
        let tcp = |address: &str| Addresses { unix: None, tcp: Some(address.parse().expect("an address")) };
        for far in ["0.0.0.0:0", "192.0.2.1:7423", "[::]:0"] {
            assert!(matches!(tcp(far).bind().await, Err(ListenError::NotLoopback(_))), "{far}");
        }
        let first = tcp("127.0.0.1:0").bind().await.expect("bound");
        let address = first.tcp_address().expect("an address");
        let again = Addresses { unix: None, tcp: Some(address) }.bind().await;
        assert!(matches!(again, Err(ListenError::PortTaken(taken)) if taken == address));
        assert!(matches!(Addresses::default().bind().await, Err(ListenError::Nowhere)));
    }
}
