//! GetReceipt, ReturnReceipt, VerifyReceipt and ListReceiptKeys.

use picket_core::ids::ReceiptId;
use picket_core::receipt::Statement;
use picket_proto::v1::{self, ErrorReason, SignatureAlgorithm};
use picket_receipt::{ListedKey, PublicKeys, Signed};
use tonic::Status;

use super::FencingHandlers;
use crate::admission::AuthenticatedCaller;
use crate::convert::receipt;
use crate::errors::{self, Verb};
use crate::fault::{Fault, Fields};
use crate::select::NodeTarget;

impl FencingHandlers {
    /// A signed receipt that the node is dark.
    pub(crate) async fn get_receipt(
        &self,
        caller: &AuthenticatedCaller,
        request: v1::GetReceiptRequest,
    ) -> Result<v1::GetReceiptResponse, Status> {
        let mut fields = Fields::default();
        let wanted = NodeTarget::of(request.node.as_ref(), "node", &mut fields);
        let call = receipt::call(&request, &caller.name, &mut fields);
        self.heard(caller, "get_receipt", fields.done())?;
        let Some(wanted) = wanted else { return Err(errors::internal("a selector was lost").into()) };
        self.heard(caller, "get_receipt", self.leads())?;
        let node = self.heard(caller, "get_receipt", wanted.find(self))?;
        let told = |error| errors::engine(error, Verb::Receipt, &node, &self.engine);
        Ok(receipt::issued(self.engine.receipt(&node, call).await.map_err(told)?))
    }

    /// Hands a receipt back; only the caller who got it does.
    pub(crate) async fn return_receipt(
        &self,
        caller: &AuthenticatedCaller,
        request: v1::ReturnReceiptRequest,
    ) -> Result<v1::ReturnReceiptResponse, Status> {
        let mut fields = Fields::default();
        let id = receipt::id::<ReceiptId>("receipt_id", &request.receipt_id, &mut fields);
        if request.receipt_id.is_empty() {
            fields.wrong("receipt_id", "is missing: say which receipt");
        }
        self.heard(caller, "return_receipt", fields.done())?;
        let Some(id) = id else { return Err(errors::internal("an id was lost").into()) };
        self.heard(caller, "return_receipt", self.leads())?;
        let Some(node) = self.engine.node_of_receipt(id) else {
            let message =
                format!("there is no receipt {id}: it has expired, or its node is back, or it never was");
            let fault = Fault::new(ErrorReason::ReceiptNotFound, message);
            let fault = fault.resource("receipt", &request.receipt_id);
            return Ok(self.heard(caller, "return_receipt", Err(fault))?);
        };
        self.may(&node)?;
        let told = |error| errors::engine(error, Verb::Receipt, &node, &self.engine);
        self.engine.return_receipt(&node, id, caller.name.clone()).await.map_err(told)?;
        Ok(v1::ReturnReceiptResponse {})
    }

    /// What a receipt is worth: signature, key, life of the store, then the word of the leader. One that does not hold is an
    /// answer, and no error.
    pub(crate) async fn verify_receipt(
        &self,
        request: v1::VerifyReceiptRequest,
    ) -> Result<v1::VerifyReceiptResponse, Status> {
        self.leads()?;
        let Some(given) = request.receipt else {
            let mut fields = Fields::default();
            fields.wrong("receipt", "is missing: say which receipt");
            fields.done()?;
            return Err(errors::internal("a receipt was lost").into());
        };
        let said = match self.read(given).await? {
            Ok(said) => said,
            Err(why) => return Ok(receipt::not_ours(why)),
        };
        self.may(&said.node)?;
        let told = |error| errors::engine(error, Verb::Look, &said.node, &self.engine);
        let verified = match self.engine.verify_receipt(&said.node, said.id, request.fresh).await {
            // Its signature is ours, and the settings lack the node since.
            Err(picket_engine::EngineError::UnknownNode { name }) => {
                picket_engine::Verified::Void(format!("the settings have no node {name:?} any more"))
            }
            answered => answered.map_err(told)?,
        };
        Ok(receipt::verified(verified, said.expires_at, self.now().wall))
    }

    /// What a receipt says, if one of our keys signed it in this life of the store; else why it is none of ours.
    async fn read(&self, given: v1::Receipt) -> Result<Result<Statement, String>, Fault> {
        if given.algorithm != i32::from(SignatureAlgorithm::Ed25519) {
            return Ok(Err(
                "it is not said to be signed with Ed25519, and no other signature is ours".to_owned()
            ));
        }
        let signed = Signed { body: given.body, key_id: given.key_id, signature: given.signature };
        let (listed, _) = self.keys().await?;
        let keys = PublicKeys::of(&listed).map_err(|why| errors::internal(&why))?;
        let said = signed.verify(&keys).map_err(|forged| forged.to_string());
        let said = said.and_then(|body| body.statement().map_err(|fault| fault.to_string()));
        let (incarnation, _) = self.engine.revision().await.map_err(errors::asked)?;
        Ok(said.and_then(|said| {
            if said.incarnation == incarnation {
                return Ok(said);
            }
            let (other, now) = (said.incarnation, incarnation);
            Err(format!("it was issued in another life of the store ({other}, now {now}): what was promised then is void"))
        }))
    }

    /// The public keys by which receipts are verified.
    pub(crate) async fn list_receipt_keys(
        &self,
        _: v1::ListReceiptKeysRequest,
    ) -> Result<v1::ListReceiptKeysResponse, Status> {
        self.leads()?;
        let (listed, signs) = self.keys().await?;
        let keys = listed.iter().map(|key| receipt::key(key, signs.as_deref()));
        let keys = keys.collect::<Result<_, _>>().map_err(|why| errors::internal(&why))?;
        Ok(v1::ListReceiptKeysResponse { keys })
    }

    async fn keys(&self) -> Result<(Vec<ListedKey>, Option<String>), Fault> {
        self.engine.receipt_keys().await.map_err(errors::asked)
    }
}
