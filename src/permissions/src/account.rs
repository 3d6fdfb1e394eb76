//! Names of this machine's accounts, for people to read. Nothing is granted by them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No more of the list of accounts is read.
const LONGEST: u64 = 1 << 20;
/// A longer name is no account's (useradd(8) makes names of at most 32 characters; other sources make longer ones).
const NAME: usize = 256;

/// The name of a user, as `/etc/passwd` has it. `None`: that file does not name them, cannot be read, or has no word for
/// a name.
///
/// No directory service is asked: it may be what the failed node carried, and an answer that does not come would be waited
/// for.
pub fn account(user: u32) -> Option<String> {
    account_in(Path::new("/etc/passwd"), user)
}

fn account_in(file: &Path, user: u32) -> Option<String> {
    let mut text = String::new();
    File::open(file).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    let mut accounts = text.lines().filter_map(crate::group::account);
    let (name, ..) = accounts.find(|(_, uid, _)| *uid == user)?;
    is_name(name).then(|| name.to_owned())
}

/// A name that reads as one word: what it is shown in has other words around it.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-$@+\\".contains(letter);
    !name.is_empty() && name.len() <= NAME && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_first_name_that_the_list_has_for_them() {
        let list = tempfile::NamedTempFile::new().expect("a file");
        let accounts = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\ntoor:x:0:0::/:/bin/sh\n\
                        CORP\\bob:x:1001:1::/:/bin/sh\nan as root:x:1002:1::/:/bin/sh\n:x:1003:1::/:\nbad\n";
        std::fs::write(list.path(), accounts).expect("written");
        let name = |user| account_in(list.path(), user);
        assert_eq!(name(0).as_deref(), Some("root"));
        assert_eq!(name(1000).as_deref(), Some("ann"));
        assert_eq!(name(1001).as_deref(), Some("CORP\\bob"));
        assert_eq!(name(1002), None, "it would read as a sentence");
        assert_eq!((name(1003), name(4711)), (None, None));
        assert_eq!(account_in(Path::new("/nowhere"), 0), None);
    }
}
