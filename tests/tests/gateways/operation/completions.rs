//! The shells themselves complete a command line, and ask the running gateway for the names of its nodes.

use picket_tests::{Fleet, Gateway, Result, program};
use tokio::process::Command;

/// Three nodes, two of which begin alike.
const NODES: &str = r#"
[templates.rack.devices.bmc]
driver = "sim"
machine = "{node}"
[nodes.r1n01]
template = "rack"
[nodes.r1n02]
template = "rack"
[nodes.other]
template = "rack"
"#;

/// Each shell, how it is kept from its user's settings, and what is typed there: `picket fence r1n0`, then Tab.
const SHELLS: &[(&str, &[&str], &str)] = &[
    (
        "bash",
        &["--norc", "--noprofile", "-c"],
        "source <(picket completions bash)
         COMP_WORDS=(picket fence r1n0) COMP_CWORD=2 COMP_TYPE=9
         _clap_complete_picket picket r1n0 fence
         printf '%s\\n' \"${COMPREPLY[@]}\"",
    ),
    // Its own completion runs on a terminal alone: here it is what keeps the function, and what shows its words.
    (
        "zsh",
        &["-f", "-c"],
        "compdef() { complete=$1 }
         _describe() { print -rl -- ${(P)3} }
         source <(picket completions zsh)
         words=(picket fence r1n0) CURRENT=3
         $complete",
    ),
    (
        "fish",
        &["--no-config", "-c"],
        "picket completions fish | source
         complete --do-complete 'picket fence r1n0'",
    ),
];

#[tokio::test]
async fn each_shell_completes_the_name_of_a_node() -> Result<()> {
    let gateway = Gateway::start(&Fleet::new().with(NODES)).await?;
    let picket = program("picket")?;
    let folder = picket.parent().expect("a folder").display();
    let home = tempfile::tempdir().expect("a folder");
    let path = format!("{folder}:{}", std::env::var("PATH").expect("a PATH"));
    for (shell, options, typed) in SHELLS {
        let mut command = Command::new(shell);
        command.args(*options).arg(typed).env("PATH", &path).env("HOME", home.path());
        command.env("PICKET_ENDPOINT", gateway.endpoint()).stdin(std::process::Stdio::null());
        // Loaded as it is, a second may be over before the gateway has answered: then there is no word, and Tab is pressed again.
        let mut said =
            command.kill_on_drop(true).output().await.unwrap_or_else(|error| panic!("{shell}: {error}"));
        for _ in 0..10 {
            if !said.stdout.trim_ascii().is_empty() {
                break;
            }
            said = command.output().await.unwrap_or_else(|error| panic!("{shell}: {error}"));
        }
        let out = String::from_utf8_lossy(&said.stdout);
        // A shell may show beside a word what it is.
        let words: Vec<&str> =
            out.lines().map(|line| line.split(['\t', ':']).next().unwrap_or_default()).collect();
        assert_eq!(words, ["r1n01", "r1n02"], "{shell}: {said:?}");
    }
    Ok(())
}
