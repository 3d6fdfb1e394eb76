use std::fs::File;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::command::init::draft::beside;

fn mode(path: &Path) -> u32 {
    path.metadata().expect("it is there").permissions().mode() & 0o777
}

fn in_folder(overwrites: bool) -> (tempfile::TempDir, SettingsFolder) {
    let folder = tempfile::tempdir().expect("a directory");
    let settings_folder = SettingsFolder { directory: folder.path().to_owned(), account: None, overwrites };
    (folder, settings_folder)
}

#[test]
fn settings_and_secrets_have_their_modes() {
    let (_folder, settings_folder) = in_folder(false);
    settings_folder.write("a = 1\n", Some((&settings_folder.password_file(), b"secret12"))).expect("written");
    assert_eq!(
        (mode(&settings_folder.file()), &*read(&settings_folder.file().display().to_string())),
        (0o640, "a = 1\n")
    );
    assert_eq!(mode(&settings_folder.password_file()), 0o600);
    assert_eq!(settings_folder.secret(&settings_folder.password_file()).expect("read"), b"secret12");
    let left = std::fs::read_dir(&settings_folder.directory).expect("read").count();
    assert_eq!(left, 2, "nothing else is left there");
}

#[test]
fn what_is_there_is_overwritten_by_force_alone() {
    let (_folder, settings_folder) = in_folder(false);
    std::fs::write(settings_folder.file(), "mine").expect("written");
    for fault in [
        settings_folder
            .write("theirs", Some((&settings_folder.password_file(), b"theirs")))
            .expect_err("it is there")
            .to_string(),
        SettingsFolder::of(&settings_folder.directory, false).expect_err("it is there").to_string(),
    ] {
        assert!(fault.contains("--force") && fault.contains("is there already"), "{fault}");
    }
    assert_eq!(std::fs::read_to_string(settings_folder.file()).expect("read"), "mine");
    assert!(!settings_folder.password_file().exists(), "a password without its settings is left");
    std::fs::write(settings_folder.password_file(), "mine").expect("written");
    let forced = SettingsFolder::of(&settings_folder.directory, true).expect("it may");
    let password = settings_folder.password_file();
    forced.write("new", Some((&password, b"theirs"))).expect_err("a secret is never overwritten");
    assert_eq!(std::fs::read_to_string(&password).expect("read"), "mine");
    assert_eq!(std::fs::read_to_string(settings_folder.file()).expect("read"), "mine");
    forced.write("new", None).expect("written");
    assert_eq!(
        std::fs::read_dir(&settings_folder.directory).expect("read").count(),
        2,
        "something else is left there"
    );
    assert_eq!(std::fs::read_to_string(settings_folder.file()).expect("read"), "new");
    assert_eq!(mode(&settings_folder.file()), 0o640);
}

/// Whoever is killed before both are whole leaves neither; the folder of the tests has files without names.
#[test]
fn a_file_has_no_name_before_it_is_whole() {
    let (folder, settings_folder) = in_folder(false);
    let left = || std::fs::read_dir(folder.path()).expect("read").count();
    let draft =
        Draft::beside(&settings_folder.password_file(), b"secret12", SECRET, None, None).expect("written");
    assert_eq!((draft.name.as_deref(), left()), (None, 0));
    drop(draft);
    assert_eq!(left(), 0);
}

#[test]
fn a_file_system_without_unnamed_files_has_them_all_the_same() {
    let (folder, settings_folder) = in_folder(false);
    let named = |bytes: &[u8]| {
        let name = beside(&settings_folder.file(), "new");
        std::fs::write(&name, bytes).expect("written");
        Draft { file: File::open(&name).expect("open"), name: Some(name) }
    };
    named(b"one").name(&settings_folder.file()).expect("it is free");
    named(b"two").name(&settings_folder.file()).expect_err("it is taken");
    assert_eq!(read(&settings_folder.file().display().to_string()), "one");
    named(b"two").replace(&settings_folder.file()).expect("it may");
    assert_eq!(read(&settings_folder.file().display().to_string()), "two");
    assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1);
}

#[test]
fn the_packages_own_settings_are_overwritten_as_long_as_nobody_touched_them() {
    let (_folder, settings_folder) = in_folder(false);
    std::fs::write(settings_folder.file(), format!("{SAMPLE}\n")).expect("written");
    let fault = SettingsFolder::of(&settings_folder.directory, false).expect_err("somebody's").to_string();
    assert!(fault.contains("--force"), "{fault}");
    settings_folder.write("theirs", None).expect_err("somebody's");
    std::fs::write(settings_folder.file(), SAMPLE).expect("written");
    SettingsFolder::of(&settings_folder.directory, false)
        .expect("nobody's")
        .write("new", None)
        .expect("written");
    assert_eq!(std::fs::read_to_string(settings_folder.file()).expect("read"), "new");
    settings_folder.write("newer", None).expect_err("somebody's by now");
}

/// An editor that saves in the moment in which the sample is replaced: after it was looked at, and before the name changes its file.
#[test]
fn an_edit_that_is_saved_while_the_sample_is_replaced_is_not_lost() {
    let (folder, settings_folder) = in_folder(false);
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .expect("read")
            .map(|one| one.expect("one").file_name())
            .collect();
        names.sort();
        names
    };
    let file = settings_folder.file();
    std::fs::write(&file, SAMPLE).expect("written");
    let draft = || Draft::beside(&file, b"theirs", SETTINGS, None, None).expect("written");
    let replaced = |draft: Draft| draft.replace_if(&file, SAMPLE.as_bytes(), b"theirs");
    let begun = draft();
    assert!(settings_folder.has_the_sample());
    std::fs::write(&file, "mine").expect("written");
    assert_eq!(replaced(begun).expect_err("an edit").kind(), io::ErrorKind::AlreadyExists);
    assert_eq!((read(&file.display().to_string()).as_str(), names().len()), ("mine", 1));
    // Nobody edits: the sample goes.
    std::fs::write(&file, SAMPLE).expect("written");
    replaced(draft()).expect("nobody's");
    assert_eq!((read(&file.display().to_string()).as_str(), names().len()), ("theirs", 1));
    // A kill between the two exchanges leaves the edit beside: the next one says so, and removes it as little.
    let out = beside(&file, "old");
    std::fs::write(&file, SAMPLE).expect("written");
    std::fs::write(&out, "mine").expect("written");
    let told = replaced(draft()).expect_err("an edit lies there").to_string();
    assert!(told.contains(&out.display().to_string()), "{told}");
    assert_eq!((read(&out.display().to_string()).as_str(), settings_folder.has_the_sample()), ("mine", true));
}

#[test]
fn a_password_that_others_may_read_is_refused_with_the_command_that_mends_it() {
    let (_folder, settings_folder) = in_folder(false);
    let file = settings_folder.password_file();
    let told =
        |settings_folder: &SettingsFolder| settings_folder.secret(&file).expect_err("refused").to_string();
    assert!(told(&settings_folder).contains("-m 600 /dev/stdin"), "{}", told(&settings_folder));
    std::fs::write(&file, "secret12\r\n").expect("written");
    let set =
        |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    set(0o644);
    assert!(
        told(&settings_folder).contains(&format!("run chmod 600 {}", file.display())),
        "{}",
        told(&settings_folder)
    );
    set(0o600);
    assert_eq!(settings_folder.secret(&file).expect("read"), b"secret12");
    std::fs::write(&file, "\n").expect("written");
    assert!(told(&settings_folder).contains("it is empty"), "{}", told(&settings_folder));
}

/// The number of the running user stands for root's, and one that nobody has for the gateway's.
#[test]
fn a_password_that_the_gateway_may_not_read_is_refused() {
    let (_folder, mut settings_folder) = in_folder(false);
    let file = settings_folder.password_file();
    settings_folder.write("", Some((&file, b"secret12"))).expect("written");
    let about = file.metadata().expect("there");
    settings_folder.account = Some(Account { user: about.uid() + 4_321, group: about.gid() + 4_321 });
    let fault = settings_folder.secret(&file).expect_err("refused").to_string();
    assert!(fault.contains("run chown picket:picket"), "{fault}");
    settings_folder.account = Some(Account { user: about.uid(), group: about.gid() + 4_321 });
    assert!(settings_folder.secret(&file).is_ok());
}

#[test]
fn the_account_is_the_one_of_that_name() {
    let (passwd, group) =
        ("root:x:0:0::/:/bin/sh\npicket:x:990:989::/:/bin/sh\n", "picketers:x:1:\npicket:x:989:\n");
    assert_eq!(account(passwd, group), Some(Account { user: 990, group: 989 }));
    assert_eq!(account(passwd, ""), None);
    assert_eq!(account("", group), None);
}

#[test]
fn elsewhere_than_by_default_socket_and_store_stand_beside_the_settings() {
    let (folder, settings_folder) = in_folder(false);
    let table: toml::Table = settings_folder.settings().parse().expect("TOML");
    let at = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(table["store"]["path"].as_str(), Some(&*at("picket.redb")));
    assert_eq!(table["listen"]["unix"].as_str(), Some(&*at("picket.sock")));
    let (whom, config, endpoint) = settings_folder.commands();
    assert_eq!((whom, config), ("", format!(" --config {}", at("picket.toml"))));
    assert_eq!(endpoint, format!(" --endpoint unix:{}", at("picket.sock")));
    let default = SettingsFolder { directory: DEFAULT.into(), account: None, overwrites: false };
    assert_eq!((default.settings(), default.commands().0), (String::new(), "sudo -u picket "));
}
