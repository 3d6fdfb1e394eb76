//! Lines to content. Nothing is believed before the last line was.

use std::io::BufRead;

use picket_core::ids::{FenceId, NodeId};
use picket_core::store::{BoundEntry, Content, StoreError};
use sha2::{Digest, Sha256};

use super::write::hexadecimal;
use super::{Backup, BackupError, FORMAT, Header, Last, Line};
use crate::format;

/// The longest line: a fence with all its moments is far below.
const LONGEST: u64 = 64 << 20;

/// Reads a backup to its end and checks it: its format, its digest, its counts, each line, and that records and fences
/// belong together. An error says what to do; nothing of the file is used then.
pub fn read(mut from: impl BufRead) -> Result<Backup, BackupError> {
    let (mut digest, mut number) = (Sha256::new(), 0);
    let first = next_line(&mut from)?.ok_or_else(|| BackupError::Foreign("it is empty".to_owned()))?;
    let header = header(&first)?;
    digest.update(&first);
    let mut content = Content {
        incarnation: header.incarnation,
        term: header.term,
        records: Vec::new(),
        fences: Vec::new(),
        keys: Vec::new(),
        notes: Vec::new(),
    };
    loop {
        number += 1;
        let Some(line) = next_line(&mut from)?.filter(|line| line.ends_with(b"\n")) else {
            return Err(BackupError::CutOff(number));
        };
        if let Ok(last) = serde_json::from_slice::<Last>(&line) {
            check_end(&last, number, &hexadecimal(&digest.finalize()))?;
            break;
        }
        digest.update(&line);
        take(&mut content, &line).map_err(|what| BackupError::Line { line: number + 1, what })?;
    }
    if next_line(&mut from)?.is_some() {
        return Err(BackupError::Changed(format!("something follows its last line, {}", number + 1)));
    }
    check_counts(&header, &content)?;
    check_whole(&content)?;
    Ok(Backup { header, content })
}

fn next_line(from: &mut impl BufRead) -> Result<Option<Vec<u8>>, BackupError> {
    let mut line = Vec::new();
    let read = std::io::Read::take(from, LONGEST).read_until(b'\n', &mut line)?;
    Ok((read > 0).then_some(line))
}

fn header(line: &[u8]) -> Result<Header, BackupError> {
    let foreign = |what: &str| BackupError::Foreign(what.to_owned());
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|_| foreign("its first line is no JSON"))?;
    let format = value.get("picket_backup").and_then(serde_json::Value::as_u64);
    match format.ok_or_else(|| foreign("its first line does not say \"picket_backup\" and a number"))? {
        FORMAT => serde_json::from_value(value)
            .map_err(|error| BackupError::Line { line: 1, what: error.to_string() }),
        found => Err(BackupError::Newer { found, known: FORMAT }),
    }
}

fn check_end(last: &Last, lines: u64, digest: &str) -> Result<(), BackupError> {
    if last.end != lines {
        let what = format!("its last line counts {} lines before it, and there are {lines}", last.end);
        return Err(BackupError::Changed(what));
    }
    if last.sha256 != digest {
        let what = format!("its SHA-256 is {digest}, and its last line says {}", last.sha256);
        return Err(BackupError::Changed(what));
    }
    Ok(())
}

fn take(content: &mut Content, line: &[u8]) -> Result<(), String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let words = |error: StoreError| error.to_string();
    match line {
        Line::Node { name, stored } => {
            content.records.push(format::decode_record(&name, stored.to_string().as_bytes()).map_err(words)?);
        }
        Line::Fence { id, stored } => {
            let id: FenceId = id.parse().map_err(|_| format!("{id:?} is no fence's id"))?;
            let fence = format::decode_fence(id, stored.to_string().as_bytes()).map_err(words)?;
            if fence.id != id {
                return Err(format!("fence {id} says that it is {}", fence.id));
            }
            content.fences.push(fence);
        }
        Line::Key { node, key, stored } => {
            let node = NodeId::new(&node).map_err(|error| error.to_string())?;
            let entry = format::decode_key(&key, stored.to_string().as_bytes()).map_err(words)?;
            content.keys.push(BoundEntry { node, key, entry });
        }
        Line::Note { name, stored } => {
            let note = format::decode_note(&name, stored.to_string().as_bytes()).map_err(words)?;
            content.notes.push((name, note));
        }
    }
    Ok(())
}

fn check_counts(header: &Header, content: &Content) -> Result<(), BackupError> {
    let counts = [
        ("nodes", header.nodes, content.records.len()),
        ("fences", header.fences, content.fences.len()),
        ("keys", header.keys, content.keys.len()),
        ("notes", header.notes, content.notes.len()),
    ];
    for (what, said, found) in counts {
        if said != found as u64 {
            return Err(BackupError::Changed(format!(
                "its first line counts {said} {what}, and there are {found}"
            )));
        }
    }
    Ok(())
}

/// Each thing once, and the fence of every record in the history.
fn check_whole(content: &Content) -> Result<(), BackupError> {
    let twice = |what: String| Err(BackupError::Changed(format!("{what} is in it twice")));
    let mut nodes = std::collections::BTreeSet::new();
    for stored in &content.records {
        if !nodes.insert(&stored.record.node) {
            return twice(format!("the record of {}", stored.record.node));
        }
    }
    let mut fences = std::collections::BTreeSet::new();
    for fence in &content.fences {
        if !fences.insert(fence.id) {
            return twice(format!("fence {}", fence.id));
        }
    }
    for stored in &content.records {
        if let Some(open) = stored.record.fence.as_ref().filter(|open| !fences.contains(&open.id)) {
            let what = format!("fence {} of {} is not in its history", open.id, stored.record.node);
            return Err(BackupError::Changed(what));
        }
    }
    Ok(())
}
