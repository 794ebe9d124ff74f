//! The protobuf wire format: field numbers and raw values without their
//! meaning.

use super::DecodeError;

/// A raw value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// Reads the fields of a message one by one.
pub(super) struct Reader<'a> {
    message: &'a str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader; the name of the message is used in errors.
    pub(super) fn new(message: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            message,
            rest: bytes,
        }
    }

    /// The number and value of the next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint().ok_or_else(|| self.damaged(0))?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| self.damaged(0))?;
        let value = match key & 7 {
            0 => self.varint().map(Wire::Varint),
            1 => self
                .array()
                .map(|bytes| Wire::Fixed64(u64::from_le_bytes(bytes))),
            2 => self
                .varint()
                .and_then(|length| self.take(usize::try_from(length).ok()?))
                .map(Wire::Bytes),
            5 => self
                .array()
                .map(|bytes| Wire::Fixed32(u32::from_le_bytes(bytes))),
            // Groups are deprecated in protobuf and unused in Kubernetes.
            _ => None,
        };
        value
            .map(|value| Some((number, value)))
            .ok_or_else(|| self.damaged(number))
    }

    /// The next number of a packed field.
    pub(super) fn packed(&mut self) -> Result<Option<u64>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.varint().map(Some).ok_or_else(|| self.damaged(0))
    }

    fn damaged(&self, field: u32) -> DecodeError {
        DecodeError::Damaged {
            message: self.message.to_owned(),
            field,
        }
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for (index, byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn fields_are_read_in_turn() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 0, 0, 0];
        let mut reader = Reader::new("Test", &bytes);
        assert_eq!(reader.next().unwrap(), Some((1, Wire::Varint(150))));
        assert_eq!(reader.next().unwrap(), Some((2, Wire::Bytes(b"hi"))));
        assert_eq!(reader.next().unwrap(), Some((3, Wire::Fixed32(1))));
        assert_eq!(reader.next().unwrap(), None);
    }

    #[test]
    fn damaged_messages_are_errors() {
        let damaged: [&[u8]; 6] = [
            &[0x08],                                                      // no value
            &[0x12, 0x05, b'h'],                                          // longer than the rest
            &[0x0b],                                                      // a group
            &[0x00, 0x01],                                                // field 0
            &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], // endless number
            &[0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],      // enormous length
        ];
        for bytes in damaged {
            assert!(Reader::new("Test", bytes).next().is_err(), "{bytes:?}");
        }
    }
}
