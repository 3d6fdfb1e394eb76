//! File systems on which the store's lock does not hold: other machines have them too, and each machine has
//! locks of its own.
//!
//! **Why none is allowed.** Whether a network file system hands a lock to its server depends on how each
//! machine mounted it (`nolock`, `local_lock` of nfs(5)), and a server forgets locks of a client that it
//! believes dead. The gateway that had the lock goes on, and a second one leads beside it. No setting says
//! that it is right: a local disk or etcd is.
//!
//! # Invariants
//!
//! - No store is opened on a file system that other machines may have as well. Shown by
//!   `a_store_that_another_machine_may_open_as_well_is_not_opened`.

use std::io;
use std::path::Path;

use rustix::fs::statfs;

use super::error::OpenError;

/// The numbers of `f_type` (statfs(2), and `include/uapi/linux/magic.h` of Linux; those of file systems outside of it as
/// coreutils' `stat` knows them).
const SHARED: [(u32, &str); 24] = [
    (0x0000_6969, "NFS"),
    (0x0000_517B, "SMB"),
    (0xFE53_4D42, "SMB2"),
    (0xFF53_4D42, "CIFS"),
    (0x00C3_6400, "CephFS"),
    (0x0102_1997, "9P"),
    // sshfs, GlusterFS and s3fs, and virtiofs too. A local one cannot be told from them: the kernel knows FUSE alone.
    (0x6573_5546, "FUSE or virtiofs"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "Lustre"),
    (0x1983_0326, "BeeGFS"),
    (0x4750_4653, "GPFS"),
    (0x7375_7245, "Coda"),
    (0x0000_564C, "NCP"),
    (0x2003_0528, "OrangeFS"),
    (0x6163_6673, "ACFS"),
    (0xAAD7_AAEA, "PanFS"),
    (0xBEEF_DEAD, "StorNext"),
    (0x0131_11A8, "IBRIX"),
    (0xBACB_ACBC, "VMware's shared folders"),
    (0x786F_4256, "VirtualBox's shared folders"),
    (0x7C7C_6673, "Parallels' shared folders"),
];

/// The name of a file system that other machines may have too, by its `f_type`.
pub(super) fn shared(number: u32) -> Option<&'static str> {
    SHARED.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Refuses a place, a file or a directory, that other machines may have too.
pub(super) fn check(place: &Path) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: place.to_owned(), doing: "ask which file system has", source };
    match shared(number(place).map_err(io)?) {
        Some(name) => Err(OpenError::Shared { path: place.to_owned(), name }),
        None => Ok(()),
    }
}

fn number(place: &Path) -> io::Result<u32> {
    // Most machines that run the tests cannot mount a network file system.
    #[cfg(test)]
    if let Some(number) = tests::SAID.get() {
        return Ok(number);
    }
    // The kernel's type of the field differs by architecture; the numbers have 32 bits everywhere.
    Ok(statfs(place)?.f_type as u32)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use picket_core::ids::Incarnation;
    use picket_core::time::WallTime;

    use super::*;
    use crate::EmbeddedStore;

    thread_local! {
        /// What the kernel would say; none: it is asked. These tests do not hang on the file system of the temporary directory.
        pub(super) static SAID: Cell<Option<u32>> = const { Cell::new(Some(EXT)) };
    }

    const EXT: u32 = 0xEF53;

    fn life(number: u8) -> Incarnation {
        Incarnation::mint(WallTime::from_millis(1_700_000_000_000), [number; 10])
    }

    #[tokio::test]
    async fn a_store_that_another_machine_may_open_as_well_is_not_opened() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("picket.redb");
        drop(EmbeddedStore::open(&path, life(1)).expect("it is local"));
        SAID.set(Some(0x6969));
        let checked = EmbeddedStore::check(&path).expect_err("it is on NFS").to_string();
        let opened = EmbeddedStore::open(&path, life(2)).expect_err("it is on NFS");
        SAID.set(Some(EXT));
        assert!(matches!(opened, OpenError::Shared { name: "NFS", .. }), "{opened}");
        assert_eq!(opened.to_string(), checked);
        EmbeddedStore::open(&path, life(3)).expect("it is local");
    }

    #[test]
    fn what_other_machines_have_too_is_known_by_its_number() {
        for (number, name) in [
            (0x6969, "NFS"),
            (0x517B, "SMB"),
            (0xFE53_4D42, "SMB2"),
            (0xFF53_4D42, "CIFS"),
            (0x00C3_6400, "CephFS"),
            (0x0102_1997, "9P"),
            (0x6573_5546, "FUSE or virtiofs"),
            (0x0116_1970, "GFS2"),
            (0x7461_636F, "OCFS2"),
            (0x0BD0_0BD0, "Lustre"),
            (0x1983_0326, "BeeGFS"),
            (0x4750_4653, "GPFS"),
        ] {
            assert_eq!(shared(number), Some(name), "{number:x}");
        }
    }

    #[test]
    fn a_local_file_system_is_none_of_them() {
        // ext, XFS, btrfs, tmpfs, ramfs, overlayfs, ZFS, F2FS, bcachefs.
        for number in [
            EXT,
            0x5846_5342,
            0x9123_683E,
            0x0102_1994,
            0x8584_58F6,
            0x794C_7630,
            0x2FC1_2FC1,
            0xF2F5_2010,
            0xCA45_1A4E,
        ] {
            assert_eq!(shared(number), None, "{number:x}");
        }
    }

    #[test]
    fn the_kernel_is_asked() {
        SAID.set(None);
        // The one file system that every machine has, and under one number.
        let proc = Path::new("/proc");
        assert_eq!(number(proc).expect("there"), 0x9FA0);
        check(proc).expect("no other machine has it");
    }

    #[test]
    fn the_error_names_the_file_system_the_place_and_what_to_do() {
        let told = OpenError::Shared { path: "/mnt/share".into(), name: "NFS" }.to_string();
        for word in ["/mnt/share", "NFS", "local disk", "[store] kind = \"etcd\""] {
            assert!(told.contains(word), "{told}");
        }
    }
}
