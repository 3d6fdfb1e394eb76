//! Content to lines.

use picket_core::store::{Content, StoreError};
use picket_core::time::WallTime;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{FORMAT, Header, Last, Line};
use crate::format;

/// The lines of a backup, each with its end of line, one after the other: a store's content in memory is as large as the
/// file, and nothing of it is there twice.
pub struct Lines {
    content: Content,
    header: Header,
    next: Next,
    written: u64,
    digest: Sha256,
}

#[derive(Clone, Copy)]
enum Next {
    Header,
    Node(usize),
    Fence(usize),
    Key(usize),
    Note(usize),
    Last,
    Over,
}

impl Lines {
    /// A backup of this content, taken at `taken_at` by `by` (`picketd 0.1.0`).
    pub fn new(content: Content, taken_at: WallTime, by: impl Into<String>) -> Self {
        let header = Header {
            picket_backup: FORMAT,
            taken_at,
            by: by.into(),
            incarnation: content.incarnation,
            term: content.term,
            nodes: content.records.len() as u64,
            fences: content.fences.len() as u64,
            keys: content.keys.len() as u64,
            notes: content.notes.len() as u64,
        };
        Self { content, header, next: Next::Header, written: 0, digest: Sha256::new() }
    }

    /// Its first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        loop {
            let content = &self.content;
            let (line, next) = match self.next {
                Next::Header => (Some(json(&self.header)?), Next::Node(0)),
                Next::Node(at) => match content.records.get(at) {
                    Some(stored) => {
                        let name = stored.record.node.to_string();
                        (
                            Some(line(Line::Node { name, stored: raw(format::encode_record(stored)?)? })?),
                            Next::Node(at + 1),
                        )
                    }
                    None => (None, Next::Fence(0)),
                },
                Next::Fence(at) => match content.fences.get(at) {
                    Some(fence) => {
                        let id = fence.id.to_string();
                        (
                            Some(line(Line::Fence { id, stored: raw(format::encode_fence(fence)?)? })?),
                            Next::Fence(at + 1),
                        )
                    }
                    None => (None, Next::Key(0)),
                },
                Next::Key(at) => match content.keys.get(at) {
                    Some(bound) => {
                        let (node, key) = (bound.node.to_string(), bound.key.clone());
                        let stored = raw(format::encode_key(&bound.key, &bound.entry)?)?;
                        (Some(line(Line::Key { node, key, stored })?), Next::Key(at + 1))
                    }
                    None => (None, Next::Note(0)),
                },
                Next::Note(at) => match content.notes.get(at) {
                    Some((name, note)) => {
                        let stored = raw(format::encode_note(name, note)?)?;
                        (Some(line(Line::Note { name: name.clone(), stored })?), Next::Note(at + 1))
                    }
                    None => (None, Next::Last),
                },
                Next::Last => {
                    let sha256 = hexadecimal(&self.digest.clone().finalize());
                    (Some(json(&Last { end: self.written, sha256 })?), Next::Over)
                }
                Next::Over => return Ok(None),
            };
            self.next = next;
            if let Some(line) = line {
                self.digest.update(&line);
                self.written += 1;
                return Ok(Some(line));
            }
        }
    }
}

impl Iterator for Lines {
    type Item = Result<Vec<u8>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.line();
        if line.is_err() {
            self.next = Next::Over;
        }
        line.transpose()
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn line(line: Line) -> Result<Vec<u8>, StoreError> {
    json(&line)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut line = serde_json::to_vec(value).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// The stored form as it stands in a line.
fn raw(bytes: Vec<u8>) -> Result<Value, StoreError> {
    serde_json::from_slice(&bytes).map_err(|error| StoreError::Damaged(error.to_string()))
}
