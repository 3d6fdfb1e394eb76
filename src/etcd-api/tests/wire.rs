//! The messages against bytes that the table of etcd's fields makes, apart from the proto: a field that moved would read as absent, and nothing
//! else would show it.

use std::fmt::Debug;

use picket_etcd_api::wire::{
    AuthenticateRequest, AuthenticateResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseRevokeRequest, MemberListRequest, WatchProgressRequest, WatchRequest, watch_request,
};
use picket_etcd_api::{
    Event, EventType, KeyValue, LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeResponse, Member,
    MemberListResponse, PutResponse, RangeRequest, RangeResponse, ResponseHeader, SortOrder, SortTarget,
    StatusResponse, TxnResponse, WatchCreateRequest, WatchResponse,
};
use prost::Message;

/// A number, a truth or an enum's value, below 128, in a field below 16.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// Bytes, text or a message.
fn bytes(field: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    let length = u8::try_from(value.len()).expect("short");
    [&[field << 3 | 2, length], value].concat()
}

/// Both ways: what etcd sends is read as this, and this is sent as what etcd reads.
fn is<M: Message + Default + PartialEq + Debug>(made: M, fields: &[Vec<u8>]) {
    let wire = fields.concat();
    assert_eq!(M::decode(&wire[..]).as_ref(), Ok(&made));
    assert_eq!(made.encode_to_vec(), wire, "{made:?}");
}

#[test]
fn what_etcd_answers_is_read_from_its_own_fields() {
    let header = || Some(ResponseHeader { cluster_id: 5, member_id: 6, revision: 7 });
    let head = || [number(1, 5), number(2, 6), number(3, 7)].concat();
    is(header().expect("one"), &[head()]);
    let kv = || KeyValue {
        key: "k".into(),
        create_revision: 3,
        mod_revision: 4,
        version: 2,
        value: "v".into(),
        lease: 9,
    };
    let entry =
        || [bytes(1, "k"), number(2, 3), number(3, 4), number(4, 2), bytes(5, "v"), number(6, 9)].concat();
    is(kv(), &[entry()]);
    let range = RangeResponse { header: header(), kvs: vec![kv()], more: true };
    is(range, &[bytes(1, head()), bytes(2, entry()), number(3, 1)]);
    is(PutResponse { header: header() }, &[bytes(1, head())]);
    let txn = TxnResponse { header: header(), succeeded: true, responses: Vec::new() };
    is(txn, &[bytes(1, head()), number(2, 1)]);
    // PUT is 0, which is left out, and DELETE 1.
    is(Event { r#type: EventType::Put.into(), kv: Some(kv()) }, &[bytes(2, entry())]);
    let gone = || Event { r#type: EventType::Delete.into(), kv: None };
    is(gone(), &[number(1, 1)]);
    let watch = WatchResponse {
        header: header(),
        canceled: true,
        compact_revision: 8,
        cancel_reason: "c".into(),
        events: vec![gone()],
    };
    is(watch, &[bytes(1, head()), number(4, 1), number(5, 8), bytes(6, "c"), bytes(11, number(1, 1))]);
    is(LeaseGrantResponse { header: header(), ttl: 5 }, &[bytes(1, head()), number(3, 5)]);
    is(LeaseRevokeResponse { header: header() }, &[bytes(1, head())]);
    is(LeaseKeepAliveResponse { ttl: 5 }, &[number(3, 5)]);
    let member = || Member { id: 6, name: "e1".into(), is_learner: true };
    let listed = || [number(1, 6), bytes(2, "e1"), number(5, 1)].concat();
    is(member(), &[listed()]);
    let members = MemberListResponse { header: header(), members: vec![member()] };
    is(members, &[bytes(1, head()), bytes(2, listed())]);
    let status = StatusResponse { header: header(), version: "3.6.16".into() };
    is(status, &[bytes(1, head()), bytes(2, "3.6.16")]);
    // It has no Debug, since a token is a secret.
    let token = AuthenticateResponse::decode(&bytes(2, "t")[..]).expect("a token");
    assert_eq!(token.token, "t");
}

#[test]
fn what_is_asked_is_written_into_etcds_fields() {
    let range = RangeRequest {
        key: "k".into(),
        range_end: "l".into(),
        limit: 3,
        revision: 4,
        // NONE is 0, ASCEND 1, DESCEND 2; KEY is 0, VERSION 1, CREATE 2, MOD 3, VALUE 4.
        sort_order: SortOrder::Descend.into(),
        sort_target: SortTarget::Mod.into(),
        keys_only: true,
        min_mod_revision: 6,
    };
    is(
        range,
        &[
            bytes(1, "k"),
            bytes(2, "l"),
            number(3, 3),
            number(4, 4),
            number(5, 2),
            number(6, 3),
            number(8, 1),
            number(10, 6),
        ],
    );
    let watch = || WatchCreateRequest { key: "k".into(), range_end: "l".into(), start_revision: 4 };
    let watched = || [bytes(1, "k"), bytes(2, "l"), number(3, 4)].concat();
    is(watch(), &[watched()]);
    let asks = |what| WatchRequest { request_union: Some(what) };
    is(asks(watch_request::RequestUnion::CreateRequest(watch())), &[bytes(1, watched())]);
    is(asks(watch_request::RequestUnion::ProgressRequest(WatchProgressRequest {})), &[bytes(3, "")]);
    is(LeaseGrantRequest { ttl: 5, id: 9 }, &[number(1, 5), number(2, 9)]);
    is(LeaseRevokeRequest { id: 9 }, &[number(1, 9)]);
    is(LeaseKeepAliveRequest { id: 9 }, &[number(1, 9)]);
    is(MemberListRequest { linearizable: true }, &[number(1, 1)]);
    let who = AuthenticateRequest { name: "n".into(), password: "p".into() };
    assert_eq!(who.encode_to_vec(), [bytes(1, "n"), bytes(2, "p")].concat());
}
