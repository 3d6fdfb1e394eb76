//! IPMI messages as they stand in a packet (IPMI 2.0 §13.8): addresses, checksums, one command or its answer.

/// "Invalid command" (IPMI 2.0 table 5-2).
pub const INVALID_COMMAND: u8 = 0xC1;
/// "Request data length invalid".
pub const WRONG_LENGTH: u8 = 0xC7;
/// "Node busy".
pub const BUSY: u8 = 0xC0;
/// "Parameter out of range".
pub const OUT_OF_RANGE: u8 = 0xC9;
/// "Invalid data field in request".
pub const INVALID_DATA: u8 = 0xCC;
/// "Command response could not be provided".
pub const NO_RESPONSE: u8 = 0xCE;
/// "Insufficient privilege level".
pub const FORBIDDEN: u8 = 0xD4;
/// "Not supported in present state".
pub const NOT_IN_STATE: u8 = 0xD5;
/// "Unspecified error".
pub const UNSPECIFIED: u8 = 0xFF;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'b> {
    head: [u8; 6],
    /// The network function; a request's is even.
    pub netfn: u8,
    /// The command.
    pub cmd: u8,
    /// What follows it.
    pub data: &'b [u8],
}

/// What a command gives: data after completion code 0, or another code.
pub type Outcome = Result<Vec<u8>, u8>;

/// The two's complement of the sum.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg()
}

/// Makes both sums of a message wrong.
pub fn spoil_sums(message: &mut [u8]) {
    for at in [2, message.len() - 1] {
        message[at] ^= 0x55;
    }
}

impl<'b> Request<'b> {
    /// Reads one; `None`: it is none, or not whole, or not for the BMC.
    pub fn read(message: &'b [u8]) -> Option<Self> {
        let (head, rest) = message.split_at_checked(6)?;
        let (sum, data) = rest.split_last()?;
        let whole = checksum(&head[..2]) == head[2]
            && checksum(&message[3..message.len() - 1]) == *sum
            && head[0] == 0x20
            && head[1] >> 2 & 1 == 0;
        let head: [u8; 6] = head.try_into().ok()?;
        whole.then_some(Self { head, netfn: head[1] >> 2, cmd: head[5], data })
    }

    /// Writes the answer to it.
    pub fn answer(&self, outcome: &Outcome) -> Vec<u8> {
        let [bmc, netfn_lun, _, console, seq_lun, cmd] = self.head;
        // The other's address, the answer's network function with the other's unit; ours, and the request's number.
        let mut out = vec![console, (netfn_lun >> 2 | 1) << 2 | seq_lun & 3];
        out.push(checksum(&out));
        out.extend_from_slice(&[bmc, seq_lun & !3 | netfn_lun & 3, cmd]);
        match outcome {
            Ok(data) => {
                out.push(0);
                out.extend_from_slice(data);
            }
            Err(code) => out.push(*code),
        }
        out.push(checksum(&out[3..]));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_fits_its_request() {
        // Get Chassis Status, sequence 5, as ipmitool writes it.
        let bytes = [0x20, 0x00, 0xE0, 0x81, 0x14, 0x01, 0x6A];
        let request = Request::read(&bytes).expect("it is whole");
        assert_eq!((request.netfn, request.cmd, request.data), (0x00, 0x01, &[][..]));
        let answer = request.answer(&Ok(vec![0x21, 0, 0]));
        assert_eq!(answer, [0x81, 0x04, 0x7B, 0x20, 0x14, 0x01, 0x00, 0x21, 0, 0, 0xAA]);
        assert_eq!(request.answer(&Err(0xC1))[6], 0xC1);
    }

    #[test]
    fn what_is_not_whole_is_no_request() {
        let bytes = [0x20, 0x00, 0xE0, 0x81, 0x14, 0x01, 0x6A];
        for at in 0..bytes.len() {
            let mut broken = bytes;
            broken[at] ^= 0x40;
            assert_eq!(Request::read(&broken), None, "byte {at}");
            assert_eq!(Request::read(&bytes[..at]), None, "{at} bytes");
        }
    }
}
