//! Groups that have no other members than root and the program's user.

use std::path::Path;

use rustix::fs::getxattr;

/// Whether the group may write without anybody else: it is private, and no access control list lets others in by its bit.
pub(crate) fn is_private(path: &Path, gid: u32, user: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    !has_list(path) && has_only(gid, user, &read("/etc/passwd"), &read("/etc/group"))
}

/// Whether an access control list stands on the file. With one, the group's bits of the mode are the list's mask (acl(5)).
fn has_list(path: &Path) -> bool {
    // Only whether there is one: nothing of it is taken.
    getxattr(path, "system.posix_acl_access", &mut [0_u8; 0]).is_ok()
}

/// Whether these accounts put root and `user` alone into the group.
fn has_only(gid: u32, user: u32, passwd: &str, group: &str) -> bool {
    let accounts: Vec<(&str, u32, u32)> = passwd.lines().filter_map(account).collect();
    let is_right = |uid: u32| uid == 0 || uid == user;
    // An account whose first group this is stands in no list of members.
    if accounts.iter().any(|(_, uid, first)| *first == gid && !is_right(*uid)) {
        return false;
    }
    let named: Vec<&str> = group.lines().filter_map(|line| members(line, gid)).collect();
    // A group that these files do not name comes from a directory service, and its members are not known.
    !named.is_empty()
        && named
            .iter()
            .flat_map(|members| members.split(','))
            .filter(|name| !name.is_empty())
            .all(|name| accounts.iter().any(|(account, uid, _)| *account == name && is_right(*uid)))
}

/// The name, the user and the first group of a line of passwd(5).
pub(crate) fn account(line: &str) -> Option<(&str, u32, u32)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let uid = fields.nth(1)?.parse().ok()?;
    Some((name, uid, fields.next()?.parse().ok()?))
}

/// The members of a line of group(5), where the line is of this group.
fn members(line: &str, gid: u32) -> Option<&str> {
    let mut fields = line.split(':').skip(2);
    (fields.next()?.parse() == Ok(gid)).then(|| fields.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\ncy:x:1002:50::/:\n";
    const GROUP: &str = "root:x:0:\nann:x:1000:\nbob:x:1001:ann\nteam:x:60:ann,bob\nstaff:x:50:\nown:x:61:ann,root\ngone:x:62:dan\n";

    #[test]
    fn a_group_is_private_where_root_and_the_user_alone_are_in_it() {
        for (gid, is_private) in [
            (0, true),
            (1000, true),
            (1001, false),
            (60, false),
            (50, false),
            (61, true),
            (62, false),
            (4711, false),
        ] {
            assert_eq!(has_only(gid, 1000, PASSWD, GROUP), is_private, "{gid}");
        }
        assert!(!has_only(1000, 65_532, PASSWD, GROUP), "another user's");
        assert!(!has_only(0, 0, "", ""), "nothing is known");
    }
}
