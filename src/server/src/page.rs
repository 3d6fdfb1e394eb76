//! Where the next page begins. A token names the request that it belongs to, so that it cannot be used with another.

use prost::Message;

use crate::digest::Digest;
use crate::fault::Fields;

/// A page's place in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    list: String,
    /// What the list's pages share (the revision of the first); empty: nothing.
    pub(crate) shared: String,
    /// The last entry of the page before; `None`: this is the first page.
    pub(crate) after: Option<String>,
}

impl Page {
    /// What a caller gave back. `list` is the request without what differs from page to page.
    pub(crate) fn of(token: &str, list: &impl Message, fields: &mut Fields) -> Self {
        let digest = Digest::of("list").with("request", &hex(&list.encode_to_vec())).hex();
        let first = Self { list: digest[..16].to_owned(), shared: String::new(), after: None };
        if token.is_empty() {
            return first;
        }
        match token.splitn(3, '~').collect::<Vec<_>>()[..] {
            [list, shared, after] if list == first.list => {
                Self { shared: shared.to_owned(), after: Some(after.to_owned()), ..first }
            }
            [_, _, _] => {
                fields.wrong(
                    "page_token",
                    "belongs to another list: give it with the same other fields, or begin anew",
                );
                first
            }
            _ => {
                fields.wrong(
                    "page_token",
                    "is no token of this gateway's: give next_page_token back as it came",
                );
                first
            }
        }
    }

    /// The token of the page that follows an entry.
    pub(crate) fn next(&self, shared: &str, after: &str) -> String {
        format!("{}~{shared}~{after}", self.list)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::ListNodesRequest;

    use super::*;

    #[test]
    fn a_token_leads_to_the_next_page_of_its_own_list_alone() {
        let list = ListNodesRequest { fresh: true, ..Default::default() };
        let mut fields = Fields::default();
        let token = Page::of("", &list, &mut fields).next("rev", "n7");
        let page = Page::of(&token, &list, &mut fields);
        assert_eq!((page.shared.as_str(), page.after.as_deref()), ("rev", Some("n7")));
        assert!(fields.done().is_ok());
        for (token, list) in [(token.as_str(), ListNodesRequest::default()), ("nonsense", list)] {
            let mut fields = Fields::default();
            Page::of(token, &list, &mut fields);
            assert!(fields.done().is_err(), "{token}");
        }
    }
}
