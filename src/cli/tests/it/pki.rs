//! What `picket pki init` says to paste. A test of the settings takes the same lines, as they stand in the golden.

use crate::common::{golden, picket, run};

#[tokio::test]
async fn what_it_says_to_paste_stands_in_the_golden() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("tls").display().to_string();
    let mut command = picket("pki init");
    command.args([&directory, "--server", "gw1.example.org", "--client", "alice@example.org"]);
    let ran = run(command).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    golden("pki.txt", &ran.out.replace(&directory, "/etc/picket/tls"));
}
