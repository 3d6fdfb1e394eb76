//! What `picket pki init` says to paste is taken as it stands: the socket stays, and root has a role.

use std::path::Path;

use picket_core::roles::Role;

use crate::common::*;

/// A test of `picket` holds it to what that prints.
const SAID: &str = include_str!("../../../cli/tests/golden/pki.txt");

#[test]
fn what_pki_init_says_to_paste_is_taken() {
    let (_, rest) = SAID.split_once("(/etc/picket/conf.d/tls.toml):\n").unwrap();
    let (pasted, _) = rest.split_once("Into a caller's file").unwrap();
    for main in [GOOD.to_owned(), format!("{GOOD}[listen]\nunix = \"/run/picket/picket.sock\"\n")] {
        let home = Home::with(&main);
        home.file("conf.d/tls.toml", pasted);
        let settings = home.load().unwrap_or_else(|faults| panic!("{faults}\n{pasted}"));
        assert_eq!(settings.listen.unix.as_deref(), Some(Path::new("/run/picket/picket.sock")));
        assert!(settings.listen.tls.is_some() && settings.listen.tcp.is_some());
        let grants = format!("{:?}", settings.roles);
        assert!(grants.contains("Admin") && grants.contains("uids: [0]"), "{grants}");
        assert!(grants.contains("Operator") && Role::Operator.does(Role::Controller), "{grants}");
        // The same lines at the end of a file without these tables.
        let one = Home::with(&format!("{GOOD}{pasted}")).load();
        assert!(one.is_ok(), "{one:?}");
    }
}
