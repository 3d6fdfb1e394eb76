//! Lines to content. Nothing is believed before the last line was.

use std::collections::BTreeMap;
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
/// belong together. An error says where, and what to do; nothing of the file is used then.
pub fn read(mut from: impl BufRead) -> Result<Backup, BackupError> {
    let mut digest = Sha256::new();
    let first = next_line(&mut from, 1)?.ok_or_else(|| BackupError::Foreign("it is empty".to_owned()))?;
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
    let mut seen = BTreeMap::new();
    // The line that is read, from 1.
    let mut number = 1;
    loop {
        let before = number;
        number += 1;
        let Some(line) = next_line(&mut from, number)?.filter(|line| line.ends_with(b"\n")) else {
            return Err(BackupError::CutOff(before));
        };
        if let Ok(last) = serde_json::from_slice::<Last>(&line) {
            check_end(&last, before, &hexadecimal(&digest.finalize()))?;
            break;
        }
        digest.update(&line);
        let wrong = |what| BackupError::Line { line: number, what };
        let name = take(&mut content, &line).map_err(wrong)?;
        if let Some(earlier) = seen.get(&name) {
            return Err(wrong(format!("{name} stands in line {earlier} already")));
        }
        seen.insert(name, number);
    }
    if next_line(&mut from, number + 1)?.is_some() {
        return Err(BackupError::Changed(format!("something follows its last line, {number}")));
    }
    check_counts(&header, &content)?;
    check_whole(&content, &seen)?;
    Ok(Backup { header, content })
}

fn next_line(from: &mut impl BufRead, number: u64) -> Result<Option<Vec<u8>>, BackupError> {
    let mut line = Vec::new();
    let read = std::io::Read::take(&mut *from, LONGEST).read_until(b'\n', &mut line);
    let read = read.map_err(|error| BackupError::Io { line: number, source: error })? as u64;
    if read == LONGEST && !line.ends_with(b"\n") {
        let what = format!("it is longer than {} MiB, as no line of a backup is", LONGEST >> 20);
        return Err(if number == 1 {
            BackupError::Foreign("its first line has no end".to_owned())
        } else {
            BackupError::Line { line: number, what }
        });
    }
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

/// Takes a line in, and says of what it is.
fn take(content: &mut Content, line: &[u8]) -> Result<String, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let words = |error: StoreError| error.to_string();
    Ok(match line {
        Line::Node { name, stored } => {
            content.records.push(format::decode_record(&name, stored.to_string().as_bytes()).map_err(words)?);
            record_of(&name)
        }
        Line::Fence { id, stored } => {
            let id: FenceId = id.parse().map_err(|_| format!("{id:?} is no fence's id"))?;
            let fence = format::decode_fence(id, stored.to_string().as_bytes()).map_err(words)?;
            if fence.id != id {
                return Err(format!("fence {id} says that it is {}", fence.id));
            }
            content.fences.push(fence);
            fence_of(id)
        }
        Line::Key { node, key, stored } => {
            let node = NodeId::new(&node).map_err(|error| error.to_string())?;
            let entry = format::decode_key(&key, stored.to_string().as_bytes()).map_err(words)?;
            let name = format!("the key {key:?} of {node}");
            content.keys.push(BoundEntry { node, key, entry });
            name
        }
        Line::Note { name, stored } => {
            let note = format::decode_note(&name, stored.to_string().as_bytes()).map_err(words)?;
            let named = format!("the note {name:?}");
            content.notes.push((name, note));
            named
        }
    })
}

fn record_of(node: &str) -> String {
    format!("the record of {node}")
}

fn fence_of(id: FenceId) -> String {
    format!("fence {id}")
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

/// The fence of every record stands in the history.
fn check_whole(content: &Content, lines: &BTreeMap<String, u64>) -> Result<(), BackupError> {
    for stored in &content.records {
        let Some(open) = &stored.record.fence else { continue };
        if !lines.contains_key(&fence_of(open.id)) {
            let node = stored.record.node.as_str();
            let line = lines.get(&record_of(node)).copied().unwrap_or(1);
            let what = format!("fence {} of {node} is not in its history", open.id);
            return Err(BackupError::Line { line, what });
        }
    }
    Ok(())
}
