//! Messages as they are usually made.

use crate::wire::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::wire::request_op::Request;
use crate::wire::{Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest};

impl Compare {
    fn equal(key: impl Into<Vec<u8>>, target: CompareTarget, with: TargetUnion) -> Self {
        Self {
            result: CompareResult::Equal.into(),
            target: target.into(),
            key: key.into(),
            target_union: Some(with),
            range_end: Vec::new(),
        }
    }

    /// The key was written so often since it came to be; 0: it is not there.
    pub fn version(key: impl Into<Vec<u8>>, version: i64) -> Self {
        Self::equal(key, CompareTarget::Version, TargetUnion::Version(version))
    }

    /// The key came to be at this revision; 0: it is not there.
    pub fn create_revision(key: impl Into<Vec<u8>>, revision: i64) -> Self {
        Self::equal(key, CompareTarget::Create, TargetUnion::CreateRevision(revision))
    }

    /// The key was last written at this revision; 0: it is not there.
    pub fn mod_revision(key: impl Into<Vec<u8>>, revision: i64) -> Self {
        Self::equal(key, CompareTarget::Mod, TargetUnion::ModRevision(revision))
    }

    /// This stands under the key. Where it is not there, that is not so, whatever is compared.
    pub fn value(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self::equal(key, CompareTarget::Value, TargetUnion::Value(value.into()))
    }

    /// The key is there.
    pub fn is_there(key: impl Into<Vec<u8>>) -> Self {
        Self { result: CompareResult::Greater.into(), ..Self::version(key, 0) }
    }

    /// The same of every key from this one on, up to `end`, which is the first that is not looked at.
    pub fn up_to(self, end: impl Into<Vec<u8>>) -> Self {
        Self { range_end: end.into(), ..self }
    }
}

impl RangeRequest {
    /// One key, as it is now.
    pub fn one(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }
}

impl From<RangeRequest> for RequestOp {
    fn from(what: RangeRequest) -> Self {
        Self { request: Some(Request::RequestRange(what)) }
    }
}

impl From<PutRequest> for RequestOp {
    fn from(what: PutRequest) -> Self {
        Self { request: Some(Request::RequestPut(what)) }
    }
}

impl RequestOp {
    /// Reads one key.
    pub fn get(key: impl Into<Vec<u8>>) -> Self {
        RangeRequest::one(key).into()
    }

    /// Writes a key, under no lease.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        PutRequest { key: key.into(), value: value.into(), lease: 0 }.into()
    }

    /// Removes a key.
    pub fn delete(key: impl Into<Vec<u8>>) -> Self {
        Self { request: Some(Request::RequestDeleteRange(DeleteRangeRequest { key: key.into() })) }
    }
}

impl TxnRequest {
    /// What must be so, all of it.
    pub fn when(self, compare: impl Into<Vec<Compare>>) -> Self {
        Self { compare: compare.into(), ..self }
    }

    /// What is done where it is.
    pub fn and_then(self, success: impl Into<Vec<RequestOp>>) -> Self {
        Self { success: success.into(), ..self }
    }

    /// What is done where it is not.
    pub fn or_else(self, failure: impl Into<Vec<RequestOp>>) -> Self {
        Self { failure: failure.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    /// A field's number and kind, and what stands in it: the wire as protobuf's encoding tells it, apart from the proto.
    fn varint(field: u8, value: u8) -> Vec<u8> {
        vec![field << 3, value]
    }

    fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(value.len()).expect("short");
        [&[field << 3 | 2, length], value].concat()
    }

    /// By what each write is guarded (S6): a comparison of the wrong thing would hold where it must not.
    #[test]
    fn comparisons_are_etcds() {
        for (made, target, with) in [
            // etcd's targets: VERSION 0, CREATE 1, MOD 2, VALUE 3; what is 0 is left out, but for what is compared with.
            (Compare::version("k", 7), vec![], varint(4, 7)),
            (Compare::version("k", 0), vec![], varint(4, 0)),
            (Compare::create_revision("k", 7), varint(2, 1), varint(5, 7)),
            (Compare::mod_revision("k", 7), varint(2, 2), varint(6, 7)),
            (Compare::value("k", "v"), varint(2, 3), bytes(7, b"v")),
            (Compare::value("k", ""), varint(2, 3), bytes(7, b"")),
        ] {
            assert_eq!(made.encode_to_vec(), [target, bytes(3, b"k"), with].concat(), "{made:?}");
        }
        let there = [varint(1, 1), bytes(3, b"k"), varint(4, 0)].concat();
        assert_eq!(Compare::is_there("k").encode_to_vec(), there);
        // Field 64 is the first whose number takes two bytes.
        let range = [bytes(3, b"k"), varint(4, 0), vec![0x82, 0x04, 1, b'l']].concat();
        assert_eq!(Compare::version("k", 0).up_to("l").encode_to_vec(), range);
    }

    #[test]
    fn transactions_are_etcds() {
        let made = TxnRequest::default()
            .when([Compare::version("k", 1)])
            .and_then([RequestOp::put("k", "v"), RequestOp::delete("d")])
            .or_else([RequestOp::get("k")]);
        let compare = [bytes(3, b"k"), varint(4, 1)].concat();
        let put = bytes(2, &[bytes(1, b"k"), bytes(2, b"v")].concat());
        let delete = bytes(3, &bytes(1, b"d"));
        let get = bytes(1, &bytes(1, b"k"));
        let wanted = [bytes(1, &compare), bytes(2, &put), bytes(2, &delete), bytes(3, &get)].concat();
        assert_eq!(made.encode_to_vec(), wanted);
        let under = PutRequest { key: b"k".to_vec(), value: b"v".to_vec(), lease: 5 };
        assert_eq!(under.encode_to_vec(), [bytes(1, b"k"), bytes(2, b"v"), varint(3, 5)].concat());
    }
}
