//! What the pages tell a reader to type. A block of `sh` is run, in the order of its page; one that says `needs: ...` of itself is
//! not, and each command of ours in it is held to what the program takes.

mod machines;

use std::path::{Path, PathBuf};

use picket_tests::{Fleet, Gateway, PASSWORD_VARIABLE, PeerError, Result, Said, program};
use tokio::process::Command;

use machines::{Boards, Machines};

/// A reader is root or may become it, has the settings where `picketd` looks by itself, says yes to what `picket` asks, and puts his node where a page
/// says NODE.
const READER: &str = r#"
sudo() { if [ "$1" = -u ]; then shift 2; fi; "$@"; }
picketd() { command picketd --config "$SETTINGS" "$@"; }
picket() {
    case "$1" in fence | unfence | resume | quickstart) command picket "$@" --yes ;; *) command picket "$@" ;; esac
}
"#;

/// A block of a page.
struct Block {
    page: String,
    /// Counted from one.
    line: usize,
    language: String,
    /// What the tests do not have.
    needs: Option<String>,
    text: String,
}

impl Block {
    /// What a reader types of it: all of `sh` and of a command in a sentence, what follows the prompts of `console`.
    fn typed(&self) -> String {
        match &*self.language {
            "sh" | "sentence" => self.text.replace("\\\n", " "),
            "console" => self
                .text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("$ "))
                .collect::<Vec<_>>()
                .join("\n"),
            _ => String::new(),
        }
    }
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Those of all pages, in order.
fn blocks() -> Vec<Block> {
    let docs =
        std::fs::read_dir(top().join("docs")).expect("docs").map(|found| found.expect("a file").path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.extend(
        ["README.md", "CONTRIBUTING.md", "deploy/three-machines/README.md"].map(|page| top().join(page)),
    );
    pages.sort();
    let mut found: Vec<Block> = Vec::new();
    for path in pages {
        let page = path.strip_prefix(top()).expect("of ours").display().to_string();
        let mut inside = false;
        for (at, line) in std::fs::read_to_string(&path).expect("read").lines().enumerate() {
            match line.trim_start().strip_prefix("```") {
                Some(_) if inside => inside = false,
                Some(info) => {
                    let (language, more) = info.split_once(' ').unwrap_or((info, ""));
                    let needs = more.strip_prefix("needs: ").map(str::to_owned);
                    assert!(
                        !language.is_empty(),
                        "{page}:{}: say what it is: sh, console, toml or text",
                        at + 1
                    );
                    assert_eq!(more.is_empty(), needs.is_none(), "{page}:{}: {more:?} is no mark", at + 1);
                    let (page, language) = (page.clone(), language.to_owned());
                    found.push(Block { page, line: at + 1, language, needs, text: String::new() });
                    inside = true;
                }
                None if inside => found.last_mut().expect("it is open").text += &format!("{line}\n"),
                None => {
                    // What a sentence names as a command, whole.
                    for named in
                        line.split('`').skip(1).step_by(2).filter(|named| !named.ends_with("picket ..."))
                    {
                        let (page, language, text) = (page.clone(), "sentence".to_owned(), named.to_owned());
                        found.push(Block { page, line: at + 1, language, needs: None, text });
                    }
                }
            }
        }
        assert!(!inside, "{page}: its last block has no end");
    }
    found
}

/// The commands of a line, each as its words, without what comes before a program of ours.
fn ours(line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(line).unwrap_or_default();
    let commands = words.split(|word| matches!(&**word, "|" | "&&" | ";" | "&"));
    let command = |words: &[String]| {
        let words = words.strip_prefix(&["sudo".to_owned()]).unwrap_or(words);
        let words = if words.first().is_some_and(|word| word == "-u") { words.get(2..)? } else { words };
        let known = ["picket", "picketd", "picket-controller"].contains(&&**words.first()?);
        // What a shell does with its output is none of the program's matter.
        let until = words.iter().position(|word| word.starts_with('>')).unwrap_or(words.len());
        known.then(|| words[..until].to_vec())
    };
    commands.filter_map(command).collect()
}

/// The program takes each of them, were it not for `--help` at their end, which it obeys once it has understood the rest.
#[tokio::test]
async fn the_programs_know_every_command_of_the_pages() -> Result<()> {
    let (mut seen, mut marks, mut faults) = (0, 0, Vec::new());
    for block in blocks() {
        marks += usize::from(block.needs.is_some());
        for words in block.typed().lines().flat_map(ours) {
            let mut command = Command::new(program(&words[0])?);
            // Where a page has a word for one of a few, a reader puts one of them.
            let typed = words[1..].iter().map(|word| match &**word {
                "SHELL" => "bash",
                "GRADE" => "observed",
                word => word,
            });
            let output = command.args(typed).arg("--help").kill_on_drop(true).output().await;
            let said = Said::of(output.map_err(PeerError::io("run a program of ours"))?);
            if said.code != 0 {
                faults.push(format!("{}:{}: {words:?}: {}", block.page, block.line, said.err));
            }
            seen += 1;
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    println!("{seen} commands; {marks} blocks need what the tests do not have");
    assert!(seen > 100, "the pages are not found: {seen}");
    Ok(())
}

/// A page, and what a reader types of it.
type Page = (String, String);

/// The pages whose blocks are run, and how many blocks these are.
fn pages() -> (Vec<Page>, usize) {
    let (mut pages, mut count): (Vec<Page>, _) = (Vec::new(), 0);
    for block in blocks().into_iter().filter(|block| block.language == "sh" && block.needs.is_none()) {
        count += 1;
        match pages.last_mut().filter(|(page, _)| *page == block.page) {
            Some((_, text)) => *text += &block.text,
            None => pages.push((block.page, block.text)),
        }
    }
    (pages, count)
}

/// Each page has a folder of its own, and none of its commands fails.
async fn runs((page, text): &Page, gateway: &Gateway, boards: &Boards) -> Result<()> {
    let home = tempfile::tempdir().map_err(PeerError::io("create a folder"))?;
    let rehearsal = top().join("deploy/examples/rehearse.toml");
    std::fs::copy(rehearsal, home.path().join("rehearse.toml")).map_err(PeerError::io("copy settings"))?;
    let redfish = boards.redfish().to_string();
    let text = text.replace("NODE", "r1n01");
    let text = ["r1n01-bmc.example.org:443", "127.6.1.1:10443"]
        .iter()
        .fold(text, |text, place| text.replace(*place, &redfish));
    let programs = program("picket")?.parent().map(Path::to_owned).unwrap_or_default();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    shell.args(["-euxc", &format!("{READER}{text}")]).current_dir(home.path()).env("HOME", home.path());
    shell.env("PATH", &path).env("PICKET_ENDPOINT", gateway.endpoint());
    shell.env("SETTINGS", gateway.settings_file()).env(PASSWORD_VARIABLE, Fleet::password());
    let output = shell.kill_on_drop(true).output().await.map_err(PeerError::io("run bash"))?;
    let said = Said::of(output);
    assert_eq!(said.code, 0, "{page}: {said:?}\n{}", gateway.log());
    Ok(())
}

/// A page of simulated machines has a gateway of its own, since it leaves them as it likes; those of boards share one.
#[tokio::test(flavor = "multi_thread")]
async fn the_pages_run_as_a_reader_types_them() -> Result<()> {
    let (pages, count) = pages();
    println!("{count} blocks of {} pages are run", pages.len());
    assert!(count > 40, "the pages are not found: {count}");
    let boards = Boards::start().await?;
    let of = |machines: Machines| pages.iter().filter(move |(page, _)| Machines::of(page) == machines);
    for page in of(Machines::Simulated) {
        let gateway = Gateway::start(&Machines::Simulated.before(&boards)).await?;
        runs(page, &gateway, &boards).await?;
    }
    for machines in [Machines::Redfish, Machines::Ipmi] {
        let gateway = Gateway::start(&machines.before(&boards)).await?;
        for page in of(machines) {
            runs(page, &gateway, &boards).await?;
        }
    }
    Ok(())
}
