//! The directory of the Unix socket.
//!
//! # Invariants
//!
//! - Only root and the gateway's user may put a socket there. Shown by
//!   `a_directory_in_which_others_may_put_a_socket_is_refused`,
//!   `a_sticky_directory_keeps_no_place_for_a_socket`.
//! - A directory is made only where others may make files beside it, and then for that user alone. Any other
//!   one must be there. Shown by `a_directory_of_its_own_is_made_in_a_sticky_one`,
//!   `no_directory_is_made_where_nobody_else_may_make_one`.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use picket_permissions::What;

use super::ListenError;

/// Where the socket lies.
pub(super) fn of(socket: &Path) -> &Path {
    socket.parent().unwrap_or(Path::new("/"))
}

/// Refuses a directory in which somebody else could put another socket in this one's place. One that is missing is not refused.
pub(super) fn check(socket: &Path) -> Result<(), ListenError> {
    let directory = of(socket);
    picket_permissions::check_if_there(directory).map_err(|fault| ListenError::Exposed { fault })?;
    if is_shared(directory) { Err(ListenError::Shared(directory.to_owned())) } else { Ok(()) }
}

/// The directory above the socket's, where the socket's own is missing and a start makes it.
pub(super) fn is_made_in(socket: &Path) -> Option<&Path> {
    let directory = of(socket);
    let above = directory.parent()?;
    let is_missing =
        std::fs::symlink_metadata(directory).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    // A memory volume of a pod is such a directory, and nobody else is there to make one in it.
    (is_missing && picket_permissions::check(above).is_ok() && is_shared(above)).then_some(above)
}

/// Makes the directory, where [`is_made_in`] says so.
pub(super) fn make(socket: &Path) -> io::Result<()> {
    if is_made_in(socket).is_none() {
        return Ok(());
    }
    let directory = of(socket);
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        // Somebody was faster: whose it is, `check` sees.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            tracing::info!(path = %directory.display(), "the socket's directory is made");
            Ok(())
        }
    }
}

/// Whether others may make files there.
fn is_shared(directory: &Path) -> bool {
    // The sticky bit keeps a file that is there. While the gateway restarts its socket is not: whoever binds the path first has it.
    let found = picket_permissions::check_state_directory(directory);
    found.is_err_and(|fault| !matches!(fault.what, What::Unread(_)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::super::{Addresses, SocketFile};
    use super::*;

    fn at(path: PathBuf) -> Addresses {
        Addresses { unix: Some(SocketFile { path, mode: SocketFile::MODE }), tcp: None }
    }

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[tokio::test]
    async fn a_directory_in_which_others_may_put_a_socket_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        mode(dir.path(), 0o777);
        let path = dir.path().join("s");
        let right = format!("(mode 777): run chmod o-w {}", dir.path().display());
        let bound = at(path.clone()).bind().await.expect_err("everybody may write").to_string();
        let checked = at(path.clone()).check().expect_err("everybody may write").to_string();
        assert!(bound.ends_with(&right) && checked == bound && !path.exists(), "{bound}");
        mode(dir.path(), 0o750);
        at(path).bind().await.expect("nobody else may write");
    }

    #[tokio::test]
    async fn a_sticky_directory_keeps_no_place_for_a_socket() {
        let dir = tempfile::tempdir().expect("a directory");
        mode(dir.path(), 0o1777);
        let path = dir.path().join("s");
        let bound = at(path.clone()).bind().await.expect_err("whoever is first has it");
        let checked = at(path.clone()).check().expect_err("whoever is first has it").to_string();
        assert!(matches!(&bound, ListenError::Shared(told) if told == dir.path()), "{bound}");
        // `chmod o-w /tmp` would be the end of more than a gateway.
        assert!(bound.to_string() == checked && !checked.contains("chmod") && !path.exists(), "{bound}");
    }

    #[tokio::test]
    async fn a_directory_of_its_own_is_made_in_a_sticky_one() {
        let dir = tempfile::tempdir().expect("a directory");
        // With the group's bit, as kubelet gives it to a memory volume of a pod.
        mode(dir.path(), 0o3777);
        let own = dir.path().join("own");
        let addresses = at(own.join("s"));
        addresses.check().expect("a start makes it");
        assert!(!own.exists(), "a check makes nothing");
        drop(addresses.bind().await.expect("made"));
        let made = std::fs::metadata(&own).expect("it stays").permissions().mode();
        assert_eq!(made & 0o777, 0o700);
        addresses.check().expect("it is there");
        drop(addresses.bind().await.expect("bound again"));
        // As another user may have made it first.
        mode(&own, 0o777);
        assert!(matches!(addresses.bind().await, Err(ListenError::Exposed { .. })));
    }

    #[tokio::test]
    async fn no_directory_is_made_where_nobody_else_may_make_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let own = dir.path().join("own");
        for open in [0o700, 0o777] {
            mode(dir.path(), open);
            at(own.join("s")).check().expect_err("it must be there");
            at(own.join("s")).bind().await.expect_err("it must be there");
            assert!(!own.exists(), "{open:o}");
        }
    }
}
