//! The two names in a CurveCP address besides IP address, port and key: extensions and the server's domain name.

use crate::Error;

/// Sixteen bytes in addition to IP address and port, by which many endpoints share one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extension(pub [u8; 16]);

/// A server's domain name as the protocol carries it: DNS wire form, padded with zeros to 256 bytes.
///
/// Names are compared byte by byte, so case matters.
#[derive(Clone, PartialEq, Eq)]
pub struct DomainName([u8; 256]);

impl DomainName {
    /// Encodes a dotted name; dots in a row, at the start or at the end count once, as in the reference tools.
    ///
    /// # Errors
    /// [`Error::LongLabel`] for a label beyond 63 bytes, [`Error::LongName`] for a name beyond 255 bytes in wire form.
    pub fn new(dotted: &str) -> Result<Self, Error> {
        let mut wire = [0; 256];
        let mut end = 0;
        for label in dotted.as_bytes().split(|&byte| byte == b'.').filter(|label| !label.is_empty()) {
            let length = u8::try_from(label.len()).ok().filter(|&length| length <= 63);
            let length = length.ok_or_else(|| Error::LongLabel(dotted.to_owned()))?;
            // The final zero byte counts too.
            if end + 1 + label.len() + 1 > 255 {
                return Err(Error::LongName(dotted.to_owned()));
            }
            wire[end] = length;
            wire[end + 1..=end + label.len()].copy_from_slice(label);
            end += 1 + label.len();
        }
        Ok(Self(wire))
    }

    /// The 256 bytes of the Initiate packet.
    pub fn as_bytes(&self) -> &[u8; 256] {
        &self.0
    }
}

impl std::fmt::Debug for DomainName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        write!(f, "DomainName({})", self.0[..end].escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_dns_wire_form_and_dots_collapse() {
        let name = DomainName::new("this.machine.name").unwrap();
        assert_eq!(&name.as_bytes()[..19], b"\x04this\x07machine\x04name\0");
        assert!(name.as_bytes()[18..].iter().all(|&byte| byte == 0));
        assert_eq!(DomainName::new("..this..machine.name.").unwrap(), name);
        assert_ne!(DomainName::new("This.machine.name").unwrap(), name);
        assert_eq!(DomainName::new("").unwrap().as_bytes(), &[0; 256]);
    }

    #[test]
    fn a_name_has_labels_up_to_63_bytes_and_255_bytes_in_all() {
        let label = "a".repeat(63);
        assert!(DomainName::new(&label).is_ok());
        assert_eq!(DomainName::new(&format!("{label}a")), Err(Error::LongLabel(format!("{label}a"))));
        let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
        assert_eq!(DomainName::new(&longest).unwrap().as_bytes()[254..], [0, 0]);
        let beyond = format!("{longest}b");
        assert_eq!(DomainName::new(&beyond), Err(Error::LongName(beyond.clone())));
    }
}
