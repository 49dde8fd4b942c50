//! Names: a DNS question comes in over UDP, `127.0.0.1` goes out while a cassette is on, and `SERVFAIL` while none is,
//! which is what a program sees that has no network.
//!
//! Answers questions for one address of the internet class; other types of the same name exist and are empty. What is no
//! question is not answered.

const HEADER: usize = 12;
const RESPONSE: u8 = 0x80;
const AUTHORITATIVE: u8 = 0x04;
const RECURSION_DESIRED: u8 = 0x01;
const RECURSION_AVAILABLE: u8 = 0x80;
const SERVFAIL: u8 = 2;
const A: [u8; 2] = [0, 1];
const INTERNET: [u8; 2] = [0, 1];

/// A question: its name in lower case, and where the bytes of it end.
pub(crate) struct Question {
    pub(crate) name: String,
    kind: [u8; 2],
    end: usize,
}

/// `None` where the packet is none that a resolver sends.
pub(crate) fn question(packet: &[u8]) -> Option<Question> {
    let header = packet.get(..HEADER)?;
    let flags = *header.get(2)?;
    // A standard query with exactly one question.
    if flags & 0xf8 != 0 || header.get(4..6)? != [0, 1] {
        return None;
    }
    let mut labels: Vec<String> = Vec::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        if length > 63 || labels.len() > 127 {
            return None;
        }
        let label = packet.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_lowercase());
        at += length;
    }
    let kind = packet.get(at..at + 2)?.try_into().ok()?;
    (packet.get(at + 2..at + 4)? == INTERNET).then_some(Question {
        name: labels.join("."),
        kind,
        end: at + 4,
    })
}

impl Question {
    /// Whether an address is asked for, and not something about a name.
    pub(crate) fn for_address(&self) -> bool {
        self.kind == A
    }
}

/// The packet that goes back.
pub(crate) fn answer(packet: &[u8], question: &Question, resolves: bool) -> Option<Vec<u8>> {
    let mut reply = packet.get(..question.end)?.to_vec();
    let asked = *reply.get(2)?;
    let answers = u8::from(resolves && question.for_address());
    let code = if resolves { 0 } else { SERVFAIL };
    let counts = [0, 1, 0, answers, 0, 0, 0, 0];
    let flags = [
        RESPONSE | AUTHORITATIVE | (asked & RECURSION_DESIRED),
        RECURSION_AVAILABLE | code,
    ];
    reply.get_mut(2..4)?.copy_from_slice(&flags);
    reply.get_mut(4..HEADER)?.copy_from_slice(&counts);
    if answers == 1 {
        // The name by pointer, one address, no life time.
        reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::*;

    fn packet(name: &str, kind: u8) -> Vec<u8> {
        let mut packet = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        for label in name.split('.') {
            packet.push(u8::try_from(label.len()).unwrap());
            packet.extend_from_slice(label.as_bytes());
        }
        packet.extend_from_slice(&[0, 0, kind, 0, 1]);
        // What a resolver adds for larger answers; it is not given back.
        packet.extend_from_slice(&[0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
        packet
    }

    #[test]
    fn an_address_is_loopback_and_everything_else_is_empty() {
        for (kind, answers) in [(1, 1), (28, 0), (65, 0)] {
            let asked = packet("API.Example.org", kind);
            let question = question(&asked).unwrap();
            assert_eq!(question.name, "api.example.org");
            let reply = answer(&asked, &question, true).unwrap();
            assert_eq!(reply[..2], asked[..2]);
            assert_eq!(reply[2], 0x85);
            assert_eq!(
                (reply[3], reply[7], reply[11]),
                (0x80, answers, 0),
                "{kind}"
            );
            assert_eq!(reply.ends_with(&[127, 0, 0, 1]), answers == 1);
        }
    }

    #[test]
    fn while_nothing_is_on_the_server_fails() {
        let asked = packet("api.example.org", 1);
        let reply = answer(&asked, &question(&asked).unwrap(), false).unwrap();
        assert_eq!((reply[3] & 15, reply[7]), (SERVFAIL, 0));
    }

    #[test]
    fn what_is_no_question_gets_no_answer() {
        let good = packet("a.b", 1);
        for cut in 0..good.len() - 11 {
            assert!(question(&good[..cut]).is_none(), "{cut}");
        }
        let mut pointer = good.clone();
        pointer[12] = 0xc0;
        assert!(question(&pointer).is_none());
        let mut reply = good.clone();
        reply[2] = 0x81;
        assert!(question(&reply).is_none());
        let mut two = good;
        two[5] = 2;
        assert!(question(&two).is_none());
    }
}
