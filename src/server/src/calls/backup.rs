//! All that the store keeps, as a backup's file has it.

use futures::{Stream, stream};
use picket_proto::v1::{self, backup_response::Piece};
use picket_store::backup::Lines;
use tonic::Status;

use super::FencingHandlers;
use crate::admission::AuthenticatedCaller;
use crate::convert::time::timestamp;
use crate::errors;

/// Lines go together in pieces of about so many bytes.
const PIECE: usize = 256 << 10;

/// A backup on its way out.
struct BackupStream {
    lines: Lines,
    first: Option<v1::BackupAbout>,
    bytes: u64,
    is_over: bool,
}

impl FencingHandlers {
    /// Takes a backup, and sends it piece by piece. It is of one moment: what changes meanwhile is not in it.
    pub(crate) async fn backup(
        &self,
        caller: AuthenticatedCaller,
        _request: v1::BackupRequest,
    ) -> Result<impl Stream<Item = Result<v1::BackupResponse, Status>> + Send + use<>, Status> {
        self.may_everything()?;
        self.leads()?;
        tracing::info!(caller = caller.name, "a backup is taken");
        let content = self.engine.backup(&caller.name).await.map_err(errors::store)?;
        let lines = Lines::new(content, self.now().wall, concat!("picketd ", env!("CARGO_PKG_VERSION")));
        let header = lines.header();
        let about = v1::BackupAbout {
            taken_at: Some(timestamp(header.taken_at)),
            incarnation: header.incarnation.to_string(),
            nodes: header.nodes,
            fences: header.fences,
        };
        let going = BackupStream { lines, first: Some(about), bytes: 0, is_over: false };
        let slot = caller.slot;
        Ok(stream::unfold((going, slot), |(mut going, slot)| async move {
            let piece = going.next()?;
            let answer = piece.map(|piece| v1::BackupResponse { piece: Some(piece) });
            Some((answer.map_err(|error| errors::store(error).into()), (going, slot)))
        }))
    }
}

impl BackupStream {
    fn next(&mut self) -> Option<Result<Piece, picket_core::store::StoreError>> {
        if let Some(about) = self.first.take() {
            return Some(Ok(Piece::About(about)));
        }
        if self.is_over {
            return None;
        }
        let mut piece = Vec::new();
        while piece.len() < PIECE {
            match self.lines.next() {
                Some(Ok(line)) => piece.extend(line),
                // Without its end it is none: whoever keeps it sees that.
                Some(Err(error)) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
                None if piece.is_empty() => {
                    self.is_over = true;
                    return Some(Ok(Piece::End(v1::BackupEnd { bytes: self.bytes })));
                }
                None => break,
            }
        }
        self.bytes += piece.len() as u64;
        Some(Ok(Piece::Lines(piece)))
    }
}
