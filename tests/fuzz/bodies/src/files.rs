//! What is read from files: settings, and the audit's chain.

use std::collections::BTreeMap;

use picket_config::{Settings, Sources};

/// A file of settings: it holds, or every fault says where it is and what is wrong.
pub(crate) fn settings(data: &[u8]) -> bool {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("picket.toml");
    std::fs::write(&file, data).expect("written");
    let sources =
        Sources { file: file.clone(), directory: home.path().join("conf.d"), environment: BTreeMap::new() };
    let faults = match Settings::read(&sources) {
        Ok((settings, faults)) => {
            // Each group has its nodes among the nodes, and each role its nodes.
            let known = |node| settings.nodes.contains_key(node);
            assert!(settings.groups.members().iter().all(|(_, nodes)| nodes.iter().all(known)));
            if faults.is_empty() {
                assert!(!settings.nodes.is_empty(), "without nodes nothing could be fenced");
            }
            faults
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "refused without a reason");
            faults
        }
    };
    for fault in faults.all() {
        assert!(!fault.message.trim().is_empty(), "{fault:?}");
        assert!(fault.place.file.ends_with("picket.toml"), "{fault:?}");
    }
    faults.is_empty()
}

/// A file of an audit: verified and exported without an end that is neither an answer nor an error, and nothing is changed.
pub(crate) fn audit(data: &[u8]) -> bool {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("audit-00000000000000000001.jsonl");
    std::fs::write(&file, data).expect("written");
    let report = picket_audit::verify(home.path(), &[]);
    let again = picket_audit::verify(home.path(), &[]);
    let is_whole = report.as_ref().is_ok_and(|report| report.fault.is_none());
    match (report, again) {
        (Ok(report), Ok(again)) => assert_eq!(format!("{report:?}"), format!("{again:?}")),
        (Err(error), Err(again)) => assert_eq!(error.to_string(), again.to_string()),
        (one, other) => panic!("{one:?}, and then {other:?}"),
    }
    assert!(std::fs::read(&file).expect("there") == data, "a reader changed it");
    is_whole
}
