use std::fs::{create_dir, set_permissions, write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

/// Somebody else than root and the one who runs the tests.
const STRANGER: u32 = 4_711;

/// `etc/conf.d/a.toml` in a directory of its own, all of it right.
fn tree() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("etc/conf.d/a.toml");
    for directory in ["etc", "etc/conf.d"] {
        create_dir(home.path().join(directory)).expect("made");
        mode(&home.path().join(directory), 0o755);
    }
    write(&file, "x").expect("written");
    mode(&file, 0o644);
    (home, file)
}

fn mode(path: &Path, mode: u32) {
    set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn told(path: &Path) -> String {
    check(path).err().map_or(String::new(), |fault| fault.to_string())
}

#[test]
fn a_file_and_every_directory_above_it_may_be_changed_by_nobody_else() {
    let (home, file) = tree();
    assert_eq!(told(&file), "");
    mode(&file, 0o646);
    assert_eq!(told(&file), format!("everybody may change it (mode 646): run chmod o-w {}", file.display()));
    mode(&file, 0o644);
    for above in ["etc", "etc/conf.d"] {
        let above = home.path().join(above);
        for open in [0o777, 0o757, 0o2777] {
            mode(&above, open);
            let shown = above.display();
            let right = format!(
                "everybody may change {shown} (mode {open:03o}), which leads to it: run chmod o-w {shown}"
            );
            assert_eq!(told(&file), right);
        }
        mode(&above, 0o755);
    }
    assert_eq!(told(&file), "");
}

#[test]
fn a_directory_that_is_asked_for_counts_like_a_file() {
    let (home, _) = tree();
    let directory = home.path().join("etc/conf.d");
    mode(&directory, 0o777);
    assert!(told(&directory).starts_with("everybody may change it (mode 777)"), "{}", told(&directory));
}

#[test]
fn a_sticky_directory_keeps_what_is_ours_in_it() {
    let (home, file) = tree();
    mode(&home.path().join("etc"), 0o1777);
    mode(&home.path().join("etc/conf.d"), 0o1777);
    assert_eq!(told(&file), "");
    let (sticky, open) = (home.path().join("etc/conf.d"), 0o1777);
    // A file that is made there may be made by somebody else first.
    let fault = check_state_directory(&sticky).expect_err("everybody may make files there").to_string();
    assert!(fault.contains(&format!("(mode {open:o}): run chmod o-w")), "{fault}");
}

#[test]
fn a_group_of_others_may_change_nothing() {
    let (_home, file) = tree();
    mode(&file, 0o664);
    if geteuid().is_root() {
        chown(&file, None, Some(STRANGER)).expect("root may");
    }
    let gid = std::fs::metadata(&file).expect("there").gid();
    // Who is not root has no other group to give the file to: it may be that user's own.
    let right = match group::is_private(&file, gid, geteuid().as_raw()) {
        true => String::new(),
        false => format!("group {gid} may change it (mode 664): run chmod g-w {}", file.display()),
    };
    assert_eq!(told(&file), right);
    assert!(!geteuid().is_root() || !right.is_empty(), "a group that this machine does not know");
}

/// With a list, the bit of the group is the list's mask, and lets in whom the list names (acl(5)).
#[test]
fn an_access_control_list_takes_the_exception_of_a_private_group() {
    let (_home, file) = tree();
    // Version 2; the owner, a named user, the group, the mask, others: tag, permissions, user.
    let entries = [
        (0x01, 6, u32::MAX),
        (0x02, 6, STRANGER),
        (0x04, 4, u32::MAX),
        (0x10, 6, u32::MAX),
        (0x20, 4, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, may, user) in entries {
        list.extend([u16::to_le_bytes(tag), u16::to_le_bytes(may)].concat());
        list.extend(u32::to_le_bytes(user));
    }
    let set = rustix::fs::setxattr(&file, "system.posix_acl_access", &list, rustix::fs::XattrFlags::empty());
    let gid = std::fs::metadata(&file).expect("there").gid();
    match set {
        Ok(()) => assert!(!group::is_private(&file, gid, geteuid().as_raw())),
        // A file system without lists has no exception to take.
        Err(error) => assert_eq!(error, rustix::io::Errno::OPNOTSUPP),
    }
}

#[test]
fn a_stranger_s_file_directory_or_link_is_not_taken() {
    let (home, file) = tree();
    // Root gives them away, and asks for a user who owns nothing here; who is not root does the latter alone.
    let is_root = geteuid().is_root();
    let rule = Rule { user: if is_root { STRANGER + 1 } else { STRANGER }, root: 0 };
    let owner = if is_root { STRANGER } else { geteuid().as_raw() };
    for path in [home.path().join("etc"), file.clone()] {
        if is_root {
            chown(&path, Some(STRANGER), None).expect("root may");
        }
        let fault = rule.check(&file).expect_err("a stranger's").to_string();
        assert!(fault.starts_with(&format!("user {owner} owns ")), "{fault}");
        assert!(fault.contains("run chown root "), "{fault}");
        if is_root {
            chown(&path, Some(0), None).expect("root may");
        }
    }
    let link = home.path().join("etc/link");
    symlink(&file, &link).expect("made");
    if is_root {
        std::os::unix::fs::lchown(&link, Some(STRANGER), None).expect("root may");
        let fault = rule.check(&link).expect_err("a stranger's").to_string();
        let right = format!("run chown -h root {}", link.display());
        assert!(fault.ends_with(&right), "{fault}");
    }
}

#[test]
fn root_is_told_to_run_as_the_owner_and_not_to_take_the_file_away() {
    for (path, it) in [("/var/lib/picket", "it"), ("/var/lib", "/var/lib, which leads to it")]
        .map(|(path, it)| (Path::new(path), it))
    {
        for (user, is_link) in [(0, false), (0, true), (999, true)] {
            let what = What::Owner { owner: STRANGER, user, right: 0, is_link };
            let fault = Fault { file: "/var/lib/picket".into(), path: path.to_owned(), what }.to_string();
            assert!(fault.starts_with(&format!("user {STRANGER} owns {it}, and ")), "{fault}");
            assert_eq!(fault.contains(&format!("sudo -u '#{STRANGER}'")), user == 0, "{fault}");
            assert_eq!(fault.contains("chown"), user != 0, "{fault}");
        }
    }
}

#[test]
fn a_link_counts_by_its_own_directory_and_by_what_it_leads_to() {
    let (home, file) = tree();
    let beside = home.path().join("beside");
    create_dir(&beside).expect("made");
    mode(&beside, 0o755);
    let link = beside.join("link");
    // Relative, and with a way up in it.
    symlink("../etc/conf.d/a.toml", &link).expect("made");
    assert_eq!(told(&link), "");
    for (path, open, right) in
        [(&beside, 0o777, 0o755), (&home.path().join("etc"), 0o777, 0o755), (&file, 0o666, 0o644)]
    {
        mode(path, open);
        assert!(told(&link).contains(&format!("chmod o-w {}", path.display())), "{}", told(&link));
        mode(path, right);
    }
    symlink("round", beside.join("round")).expect("made");
    assert!(check(&beside.join("round")).is_err());
}

/// As kubelet writes a config map, a secret or a projected volume: a link to a link to a directory with a date for its name.
#[test]
fn a_volume_of_a_pod_is_right_where_it_is_sticky() {
    let home = tempfile::tempdir().expect("a directory");
    let volume = home.path().join("volume");
    let dated = volume.join("..2026_01_02_03_04_05.1");
    create_dir(&volume).expect("made");
    create_dir(&dated).expect("made");
    mode(&dated, 0o755);
    write(dated.join("picket.toml"), "x").expect("written");
    mode(&dated.join("picket.toml"), 0o644);
    symlink("..2026_01_02_03_04_05.1", volume.join("..data")).expect("made");
    symlink("..data/picket.toml", volume.join("picket.toml")).expect("made");
    // Projected volumes and secrets lie on a tmpfs, whose root has this mode.
    mode(&volume, 0o1777);
    assert_eq!(told(&volume.join("picket.toml")), "");
    // A volume of kind configMap lies on the node's disk, with this one.
    mode(&volume, 0o777);
    assert!(told(&volume.join("picket.toml")).contains("everybody may change"));
}

#[test]
fn a_secret_is_read_by_nobody_else() {
    let (home, file) = tree();
    for (open, words) in [
        (0o644, "everybody may read it (mode 644): run chmod 600 "),
        (0o602, "everybody may change it (mode 602): run chmod 600 "),
    ] {
        mode(&file, open);
        let fault = read_secret(&file).expect_err("open").to_string();
        assert_eq!(fault, format!("{words}{}", file.display()));
    }
    for closed in [0o640, 0o600, 0o400] {
        mode(&file, closed);
        assert_eq!(read_secret(&file).expect("closed"), b"x");
    }
    let nowhere = home.path().join("nowhere");
    let fault = read_secret(&nowhere).expect_err("not there");
    assert!(check_if_there(&nowhere).is_ok());
    assert!(fault.to_string().starts_with(&format!("{} cannot be read: ", nowhere.display())));
}
