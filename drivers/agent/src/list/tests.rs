use super::*;
use std::fmt::Write;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents-list.md");

#[test]
fn each_agent_stands_in_it_once_and_in_order() {
    assert_eq!(LIST.len(), 84, "Debian's agents, all of them");
    assert!(LIST.is_sorted_by(|a, b| a.name < b.name), "by name, each once");
    assert!(LIST.iter().all(|agent| agent.why.len() > 10));
}

#[test]
fn each_line_says_where_it_was_read() {
    let cited: Vec<String> = SOURCE.iter().map(|(name, _, _)| format!("fence_{name}")).collect();
    let listed: Vec<&str> = LIST.iter().map(|agent| agent.name).collect();
    assert_eq!(cited, listed, "the same agents in the same order");
    assert!(SOURCE.iter().all(|(_, function, text)| !function.is_empty() && text.len() > 5));
}

#[test]
fn what_reads_off_where_it_does_not_know_is_at_best_claimed() {
    for agent in LIST {
        let best = agent.grade();
        match (agent.proof, agent.switches) {
            (Proof::Power, SwitchTarget::Host | SwitchTarget::Outlet) => {
                assert_eq!(best, Grade::Observed, "{}", agent.name)
            }
            (Proof::Power, SwitchTarget::Machine) => assert_eq!(best, Grade::Hypervisor, "{}", agent.name),
            _ => assert_eq!(best, Grade::Claimed, "{}", agent.name),
        }
    }
}

#[test]
fn the_version_that_was_read_is_no_other() {
    for (version, read) in [
        ("4.12.1", true),
        ("4.12.1-1", true),
        ("4.12.10", false),
        ("4.12.1.7", false),
        ("4.12", false),
        ("", false),
    ] {
        assert_eq!(was_read(version), read, "{version}");
    }
}

#[test]
fn agents_that_are_one_program_are_read_alike() {
    let families: [&[&str]; 4] = [
        &["idrac", "ilo3", "ilo4", "ilo5", "imm", "ipmilan", "ipmilanplus"],
        &["ilo3_ssh", "ilo4_ssh", "ilo5_ssh", "ilo_ssh"],
        &["ilo", "ilo2"],
        &["apc_snmp", "tripplite_snmp"],
    ];
    for family in families {
        let read: Vec<_> = family
            .iter()
            .map(|name| find(&format!("fence_{name}")).expect("it is on the list"))
            .map(|agent| (agent.proof, agent.switches, agent.shows(), agent.why))
            .collect();
        assert!(read.windows(2).all(|two| two[0] == two[1]), "{family:?}");
    }
}

/// The table of the documentation, from the list.
fn table() -> String {
    let mut text = String::new();
    let groups = [
        (Proof::Power, "Power agents", "Their status says off only where the device said so."),
        (
            Proof::TowardsOff,
            "Agents that fail towards off",
            "Their status says off also where they do not know. A host device by one of them needs another host device beside it in \
             its level, which must read Off too; an outlet by one of them is refused, as no other outlet speaks of its own. Their \
             Off counts as claimed.",
        ),
        (Proof::Never, "Agents that never prove power", "They are refused as a device."),
    ];
    for (proof, title, what) in groups {
        let of = LIST.iter().filter(|agent| agent.proof == proof);
        let _ = write!(text, "\n## {title} ({})\n\n{what}\n\n", of.clone().count());
        match proof {
            Proof::Never => text.push_str("| agent | why not | read in its source |\n| --- | --- | --- |\n"),
            _ => text.push_str(
                "| agent | class | grade at best | its secrets are seen | off, and what reads as off | read in its source |\n\
                 | --- | --- | --- | --- | --- | --- |\n",
            ),
        }
        for agent in of {
            let class = match agent.class() {
                Some(DeviceClass::Supply) => "supply",
                Some(_) => "host",
                None => "as the settings say",
            };
            let grade = match agent.grade() {
                Grade::Observed => "observed",
                Grade::Hypervisor => "hypervisor",
                _ => "claimed",
            };
            let shows = match agent.shows() {
                SecretExposure::Nothing => "",
                SecretExposure::Arguments => "in arguments",
                SecretExposure::Environment => "in an environment",
            };
            let (function, line) = agent.source().expect("each line says where it was read");
            // In a table a bar ends a cell.
            let read = format!("{function}: `{}`", line.replace('|', "\\|"));
            let _ = match proof {
                Proof::Never => writeln!(text, "| `{}` | {} | {read} |", agent.name, agent.why),
                _ => {
                    writeln!(
                        text,
                        "| `{}` | {class} | {grade} | {shows} | {} | {read} |",
                        agent.name, agent.why
                    )
                }
            };
        }
    }
    text
}

#[test]
fn the_documentation_shows_the_list() {
    const BEGIN: &str = "<!-- what follows is made from drivers/agent/src/list.rs: PICKET_BLESS=1 cargo test -p picket-driver-agent -->\n";
    let docs = std::fs::read_to_string(DOCS).expect("docs/agents-list.md is there");
    let (head, shown) =
        docs.split_once(BEGIN).expect("docs/agents-list.md has the line after which the list begins");
    if std::env::var_os("PICKET_BLESS").is_some() {
        std::fs::write(DOCS, format!("{head}{BEGIN}{}", table())).expect("it can be written");
        return;
    }
    assert_eq!(shown, table(), "docs/agents-list.md does not show the list: PICKET_BLESS=1 writes it");
}
