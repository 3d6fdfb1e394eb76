//! A person's word that other settings are the fleet's from now on.
//!
//! # Invariants
//!
//! - The word binds in one transaction, which compares that nobody leads and that no other settings came
//!   meanwhile: the settings by which a leader works never change under it. Shown by
//!   `a_word_of_a_person_makes_other_settings_the_fleets_once`.
//! - The word changes nothing else, and is used up at once. Shown by
//!   `a_word_of_a_person_makes_other_settings_the_fleets_once`.

use picket_core::store::StoreError;
use picket_etcd_api::{Compare, RequestOp, TxnRequest};

use super::LeaderValue;
use super::eligibility::short;
use crate::connection::Fault;
use crate::life::gets;
use crate::shared::Etcd;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedSettings {
    /// By these settings the fleet is led from now on; until now by those of this digest.
    Now(String),
    /// It was so already.
    Already,
    /// Nobody ever led: whoever does first, does by its own settings.
    NobodyLedYet,
}

impl Etcd {
    /// From now on gateways stand for election whose settings have this digest, and no others. Refused while somebody leads: a
    /// leader takes other settings by a reload.
    pub async fn accept_settings(&self, digest: &str) -> Result<AcceptedSettings, StoreError> {
        let (shared, names) = (&self.shared, &self.shared.keys);
        shared.look_only().await?;
        let own = [names.leader(), names.digest()];
        let reads = own.map(RequestOp::get);
        let answer =
            shared.read_txn(TxnRequest::default().and_then(reads)).await.map_err(Fault::of_a_read)?;
        let mut read = gets(&answer);
        let (leader, stored) = (read.next().flatten(), read.next().flatten());
        let Some(stored) = stored else { return Ok(AcceptedSettings::NobodyLedYet) };
        let before = String::from_utf8_lossy(&stored.value).into_owned();
        if before == digest {
            return Ok(AcceptedSettings::Already);
        }
        if let Some(leader) = leader {
            return Err(StoreError::Unavailable(format!(
                "{} leads by other settings ({}): give it these ({}) and reload it, then the others. Only where nobody leads \
                 they are accepted so",
                LeaderValue::read(&leader.value).gateway,
                short(&before),
                short(digest)
            )));
        }
        let same = [
            Compare::version(names.leader(), 0),
            Compare::mod_revision(names.digest(), stored.mod_revision),
            Compare::version(names.marked(), 0),
            Compare::version(names.filling(), 0),
        ];
        let put = RequestOp::put(names.digest(), digest);
        let txn = TxnRequest::default().when(same).and_then([put]);
        // Asked again after an answer that was lost, it is so already.
        let answer = shared.connection.commit(txn).await.map_err(Fault::of_a_write)?;
        if answer.succeeded {
            return Ok(AcceptedSettings::Now(before));
        }
        Err(StoreError::Unavailable(
            "somebody began to lead, or accepted settings, at the same moment: look (picket gateways), and ask again if need be"
                .to_owned(),
        ))
    }
}
