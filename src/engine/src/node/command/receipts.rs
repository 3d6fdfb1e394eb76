//! Receipts (S19): stored, then signed; handed back; and what one is worth.

use std::time::Duration;

use picket_core::event::Event;
use picket_core::ground::{LOOK_LIFE, Look, LookFault, ReleaseGround};
use picket_core::ids::{EffectId, ReceiptId};
use picket_core::ledger::EffectKind;
use picket_core::order::Opened;
use picket_core::power::Power;
use picket_core::receipt::{MOST, MOST_EACH, ReceiptRequest, SeenOff};
use picket_core::record::{Ended, Issued, Phase, Standing};
use picket_core::roles::counts_as;
use picket_core::store::StoreError;

use super::{DOUBTED, refusal, store_failure};
use crate::error::EngineError;
use crate::node::{Failure, Fatal, NodeTask};
use crate::receipts::{ReceiptCall, Receipted, Verified};

/// What comes next where a reading ended the proof.
const PROVEN_ANEW: &str = "it is proven anew by itself: a receipt can be had then";
/// What to do where the proof is gone although the node is fenced.
const PROVE: &str = "fence it again: it is proven anew, and a receipt can be had then";

impl NodeTask {
    pub(super) async fn issue(&mut self, call: ReceiptCall) -> Result<Result<Receipted, EngineError>, Fatal> {
        if let Err(why) = self.expect_proven(&call) {
            return Ok(Err(EngineError::NotProven(why)));
        }
        let key = match self.parts.receipts.signing() {
            Ok(key) => key,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(failure) = self.close_expired_receipts().await {
            return refusal(failure);
        }
        if let Err(error) = self.expect_room(&call) {
            return Ok(Err(error));
        }
        let looks = self.look().await?;
        if self.found_on(&looks).await? {
            return Ok(Err(EngineError::NotProven("it reads On; this is a breach".to_owned())));
        }
        if let Some(why) = self.gives_up_what_restarted().await? {
            return Ok(Err(EngineError::NotProven(format!("{why}; {PROVE}"))));
        }
        let Some(ground) = self.ground.clone() else {
            return Ok(Err(EngineError::NotProven(PROVE.to_owned())));
        };
        let asked = self.now();
        let fresh_until = ground.ground.fresh_until(&looks, asked);
        let seen = match SeenOff::of(&ground.ground, &looks, asked, self.wall()) {
            Ok(seen) => seen,
            Err(fault) => {
                // A supply that reads On is no breach, and ends the proof.
                let again = if self.proof_is_gone(&looks).await? { PROVEN_ANEW } else { PROVE };
                return Ok(Err(EngineError::NotProven(format!("{fault}; {again}"))));
            }
        };
        // The look may have waited for each device.
        if let Err(taken) = self.may_still_act(None, None) {
            return Ok(Err(EngineError::RoleLost(taken)));
        }
        let (id, life) = (self.mint_receipt(), self.parts.rules.receipt_life);
        let request = ReceiptRequest {
            id,
            seen,
            by: call.by.clone(),
            audience: call.audience.clone(),
            system_uuid: self.system_uuid(),
            renews: call.renews,
            life,
            margin: self.parts.rules.receipt_margin,
        };
        let opened = match self.apply(Event::ReceiptIntent(Box::new(request))).await {
            Ok(opened) => opened,
            Err(failure) => return refusal(failure),
        };
        if self.doubt.is_some() && Box::pin(self.store_doubt()).await? {
            let why = format!("its proof did not hold while that was stored; {PROVEN_ANEW}");
            return Ok(Err(EngineError::NotProven(why)));
        }
        // A store that hung: it is read once more.
        if self.now() > fresh_until && self.ground.is_some() {
            let looks = self.look().await?;
            if let Err(fault) = ground.ground.examine(&looks, self.now()) {
                let is_gone = self.found_on(&looks).await? || self.proof_is_gone(&looks).await?;
                if is_gone {
                    return Ok(Err(EngineError::NotProven(format!("{fault}; {PROVEN_ANEW}"))));
                }
                let next = self.keep_untold(id, &call).await?;
                return Ok(Err(EngineError::NotProven(format!("{fault}; {next}"))));
            }
            let restarted = self.gives_up_what_restarted().await?;
            if let Some(why) = restarted {
                self.keep_untold(id, &call).await?;
                return Ok(Err(EngineError::NotProven(format!("{why}; {PROVE}"))));
            }
        }
        if let Err(why) = self.expect_proven(&call) {
            return Ok(Err(EngineError::NotProven(why)));
        }
        // Its life was counted from before it was stored; a store that took longer leaves nothing of it.
        let lasts = life.saturating_sub(self.now().since(asked));
        let order = opened
            .into_iter()
            .find_map(|one| if let Opened::Receipt(order) = one { Some(order) } else { None });
        Ok(match order.filter(|_| !lasts.is_zero()) {
            Some(order) => {
                let expires_at = order.statement().expires_at;
                Ok(Receipted { id, signed: key.sign(&order), lasts, expires_at })
            }
            None => Err(StoreError::Unavailable(format!(
                "storing the receipt took longer than its life of {life:?}"
            ))
            .into()),
        })
    }

    /// What becomes of a receipt that is stored and that nobody has, and what its caller does next.
    async fn keep_untold(&mut self, id: ReceiptId, call: &ReceiptCall) -> Result<String, Fatal> {
        // The caller has the old one still, and it holds offline until it expires: the new one bars the on in its place.
        if let Some(old) = call.renews {
            return Ok(format!("ask for a new one: {old} was renewed, and bars the on until it has expired"));
        }
        match self.apply(Event::ReceiptReturned { id, by: call.by.clone() }).await {
            Err(Failure::Fatal(error)) => Err(Fatal(error)),
            _ => Ok("ask again".to_owned()),
        }
    }

    pub(super) async fn hand_back(
        &mut self,
        id: ReceiptId,
        by: String,
    ) -> Result<Result<(), EngineError>, Fatal> {
        if let Err(lost) = self.may_still_act(None, None) {
            return Ok(Err(EngineError::RoleLost(lost)));
        }
        match self.apply(Event::ReceiptReturned { id, by }).await {
            Ok(_) => Ok(Ok(())),
            Err(failure) => refusal(failure),
        }
    }

    pub(super) async fn verify(
        &mut self,
        id: ReceiptId,
        fresh: bool,
    ) -> Result<Result<Verified, EngineError>, Fatal> {
        let mut unsure =
            self.orphan.as_ref().filter(|_| fresh).map(|why| format!("its devices cannot be asked: {why}"));
        let mut fresh_until = None;
        if fresh && unsure.is_none() && self.holds_receipt(id) {
            let mut until = self.now();
            let mut looks = self.look().await?;
            match &self.ground {
                Some(held) => until = held.ground.fresh_until(&looks, until),
                // Proven by another leadership: what it went by is asked besides.
                None => {
                    let beside = self.proving_beside();
                    looks.extend(self.look_at(&beside).await?);
                    until = until + LOOK_LIFE;
                }
            }
            fresh_until = Some(until);
            // Either makes it void, before it is told of.
            if !self.found_on(&looks).await? && !self.proof_is_gone(&looks).await? {
                let silent = |look: &&picket_core::ground::Look| {
                    look.reading.as_ref().is_none_or(|reading| reading.power != Power::Off)
                };
                let words: Vec<String> =
                    looks.iter().filter(silent).map(|look| look.device.to_string()).collect();
                let silent =
                    (!words.is_empty()).then(|| format!("{} did not say Off just now", words.join(", ")));
                unsure = self.restarted_since().or_else(|| self.began_anew(&looks)).or(silent);
            }
        }
        if let Err(error) = self.ask_store().await {
            return refusal(store_failure(error));
        }
        if unsure.is_none() && fresh_until.is_some_and(|until| self.now() > until) {
            unsure = Some(format!(
                "what its devices said was older than {LOOK_LIFE:?} when the store had answered"
            ));
        }
        if self.doubt.is_some() && self.holds_receipt(id) {
            return Ok(Ok(Verified::Void(DOUBTED.to_owned())));
        }
        Ok(Ok(match self.issued(id) {
            None => Verified::Gone,
            Some(issued) => match issued.standing(self.record()) {
                Standing::Ended(Ended::Returned) => Verified::Returned(None),
                Standing::Ended(Ended::Renewed(by)) => Verified::Returned(Some(by)),
                Standing::Void(why) => Verified::Void(why.to_owned()),
                Standing::Stands => match self.left_of(issued) {
                    Duration::ZERO => Verified::Expired,
                    lasts => Verified::Holds { lasts, unsure },
                },
            },
        }))
    }

    /// Which device of the proof is in another life than then, in words.
    fn began_anew(&self, looks: &[Look]) -> Option<String> {
        let examined = self.ground.as_ref()?.ground.examine(looks, self.now());
        examined.err().filter(|fault| matches!(fault, LookFault::NewEpoch(_))).map(|fault| fault.to_string())
    }

    /// One round trip: this leadership still leads, and the record is the newest (S19).
    pub(in crate::node) async fn ask_store(&mut self) -> Result<(), StoreError> {
        let (store, leadership) = (self.parts.store.clone(), self.hands.leadership().clone());
        let (node, version) = (self.record().node.clone(), self.stored.version);
        self.of_store(store.check(leadership.guard(), &node, version)).await?;
        leadership.check().map_err(|ended| StoreError::Deposed(ended.to_string()))
    }

    /// Whether that receipt is known, and was neither handed back nor voided. Of any other one no device is asked.
    pub(in crate::node) fn holds_receipt(&self, id: ReceiptId) -> bool {
        self.issued(id).is_some_and(|issued| issued.standing(self.record()) == Standing::Stands)
    }

    fn issued(&self, id: ReceiptId) -> Option<&Issued> {
        self.record().receipts.iter().find(|issued| issued.id == id)
    }

    /// How long a receipt still holds: by our own count, and no longer than its own words say.
    fn left_of(&self, issued: &Issued) -> Duration {
        let counted = match self.counted_from.get(&issued.effect) {
            Some(from) => (*from + issued.life()).since(self.now()),
            None => Duration::ZERO,
        };
        let said = issued.expires_at.millis().saturating_sub(self.wall().millis());
        counted.min(Duration::from_millis(said))
    }

    /// Whether this leadership has proven the node off by its devices, in the fence that is meant; else what would help.
    fn expect_proven(&self, call: &ReceiptCall) -> Result<(), String> {
        let record = self.record();
        let open = record.fence.as_ref().filter(|fence| fence.generation == record.generation);
        let Some(fence) = open.filter(|_| matches!(record.phase, Phase::Fenced | Phase::Released)) else {
            return Err(format!("it is {}: fence it first", record.phase.label().replace('_', " ")));
        };
        if let Some(wanted) = call.fence.filter(|wanted| *wanted != fence.id) {
            return Err(format!("fence {wanted} is not its present one, which is {}", fence.id));
        }
        match self.ground.as_ref().map(|held| &held.ground) {
            Some(ReleaseGround::Confirmed(_)) => Ok(()),
            Some(ReleaseGround::Attested(_)) => {
                Err("a person vouches for it, and no device was read".to_owned())
            }
            None => Err(format!(
                "the proof was given up when a person was asked, or was another leadership's: {PROVE}"
            )),
        }
    }

    fn expect_room(&self, call: &ReceiptCall) -> Result<(), EngineError> {
        let record = self.record();
        // What is renewed makes room for what takes its place.
        let open =
            |issued: &&Issued| record.ledger.get(issued.effect).is_some() && Some(issued.id) != call.renews;
        let full = |own: bool, most: usize| {
            let counts =
                |issued: &&Issued| open(issued) && (!own || counts_as(&issued.by) == counts_as(&call.by));
            let lives: Vec<Duration> = record
                .receipts
                .iter()
                .filter(counts)
                .filter_map(|issued| self.expires_at(record.ledger.get(issued.effect)?))
                .map(|at| at.since(self.now()))
                .collect();
            let room_in = lives.iter().min().copied().unwrap_or_default();
            if lives.len() < most {
                return Ok(());
            }
            Err(EngineError::ReceiptsFull { open: lives.len(), own, room_in })
        };
        full(true, MOST_EACH).and_then(|()| full(false, MOST))
    }

    async fn close_expired_receipts(&mut self) -> Result<(), Failure> {
        let now = self.now();
        let over = self.record().ledger.open().iter().filter(|open| {
            EffectKind::is_receipt(&open.kind) && self.expires_at(open).is_some_and(|at| at <= now)
        });
        let effects: Vec<EffectId> = over.map(|open| open.id).collect();
        if effects.is_empty() {
            return Ok(());
        }
        self.apply(Event::Closed { effects, why: "its longest life has passed" }).await.map(drop)
    }

    /// The machine's UUID, as the settings have it or a check learned it.
    fn system_uuid(&self) -> String {
        let uuids = self.hosts().into_iter().find_map(|device| self.expected_identity(&device).identity.uuid);
        uuids.unwrap_or_default()
    }

    fn mint_receipt(&self) -> ReceiptId {
        let mut random = [0; 10];
        (self.parts.random)(&mut random);
        ReceiptId::mint(self.wall(), random)
    }
}
