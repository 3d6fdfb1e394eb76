//! A body for fuzzing what stands in the audit's files (feature `fuzz`).

use crate::entry::{decode, sha256};

/// A line, and whether it is an entry: as it is; and with a seal that fits, as only whoever may write the files could make it.
pub fn line(data: &[u8]) -> bool {
    let mut taken = false;
    if let Ok(entry) = decode(data) {
        assert!(data.ends_with(format!("{}\"}}", entry.hash).as_bytes()));
        let mut changed = data.to_vec();
        changed[data.len() / 2] ^= 1;
        assert!(decode(&changed).is_err(), "a changed byte is seen");
        taken = true;
    }
    let sealed = |text: &[u8]| {
        let hash = sha256(text);
        [text, format!(",\"hash\":\"{hash}\"}}").as_bytes()].concat()
    };
    let Ok(entry) = decode(&sealed(data)) else { return taken };
    let mut text = serde_json::to_vec(&entry).expect("what was read can be written");
    text.pop();
    let mut again = decode(&sealed(&text)).expect("what was written can be read");
    again.hash.clone_from(&entry.hash);
    assert_eq!(again, entry);
    true
}
