//! The data types of SSH and SFTP: integers in network order, and strings with their length.

/// A message that does not follow the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message is malformed or incomplete")]
pub struct Malformed;

/// Reads the fields of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, Malformed> {
        self.byte().map(|byte| byte != 0)
    }

    pub(crate) fn number(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.take(count).map(drop)
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.string()?).map_err(|_| Malformed)
    }

    pub(crate) fn names(&mut self) -> Result<Vec<&'a str>, Malformed> {
        let text = self.text()?;
        Ok(text.split(',').filter(|name| !name.is_empty()).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends the fields of a message.
pub(crate) trait Put {
    fn put_byte(&mut self, byte: u8);
    fn put_slice(&mut self, bytes: &[u8]);

    fn put_boolean(&mut self, value: bool) {
        self.put_byte(u8::from(value));
    }

    fn put_number(&mut self, number: u32) {
        self.put_slice(&number.to_be_bytes());
    }

    fn put_long(&mut self, number: u64) {
        self.put_slice(&number.to_be_bytes());
    }

    /// Appends a string. All strings of this crate are far below 4 GiB; a longer one is cut off.
    fn put_string(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.put_number(length);
        self.put_slice(&bytes[..bytes.len().min(length as usize)]);
    }

    /// A positive integer of any length, from its bytes in network order.
    fn put_integer(&mut self, bytes: &[u8]) {
        let first = bytes.iter().position(|byte| *byte != 0);
        let bytes = &bytes[first.unwrap_or(bytes.len())..];
        let is_high = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
        let length = bytes.len().saturating_add(usize::from(is_high));
        self.put_number(u32::try_from(length).unwrap_or(u32::MAX));
        if is_high {
            self.put_byte(0);
        }
        self.put_slice(bytes);
    }
}

impl Put for Vec<u8> {
    fn put_byte(&mut self, byte: u8) {
        self.push(byte);
    }

    fn put_slice(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn fields_are_read_as_written() {
        let mut message = Vec::new();
        message.put_byte(7);
        message.put_boolean(true);
        message.put_number(1 << 31);
        message.put_long(1 << 63);
        message.put_string(b"\xff\0");
        message.put_string("a,b");
        let mut fields = Fields::new(&message);
        assert_eq!(fields.byte(), Ok(7));
        assert_eq!(fields.boolean(), Ok(true));
        assert_eq!(fields.number(), Ok(1 << 31));
        assert_eq!(fields.long(), Ok(1 << 63));
        assert_eq!(fields.string(), Ok(&b"\xff\0"[..]));
        assert_eq!(fields.names(), Ok(vec!["a", "b"]));
        assert!(fields.is_empty());
        assert_eq!(fields.byte(), Err(Malformed));
    }

    #[test]
    fn a_string_that_is_longer_than_the_message_is_malformed() {
        assert_eq!(Fields::new(&[0xff; 6]).string(), Err(Malformed));
        assert_eq!(Fields::new(&[0, 0, 0]).string(), Err(Malformed));
        assert_eq!(Fields::new(&[0, 0, 0, 1, 0xff]).text(), Err(Malformed));
    }

    #[test]
    fn integers_have_no_leading_zeros_and_no_sign() {
        let put = |bytes: &[u8]| {
            let mut message = Vec::new();
            message.put_integer(bytes);
            message
        };
        // The examples of RFC 4251.
        assert_eq!(put(&[0, 0]), [0, 0, 0, 0]);
        assert_eq!(put(&[0, 0x80]), [0, 0, 0, 2, 0, 0x80]);
        assert_eq!(put(&[0, 9, 0xa3]), [0, 0, 0, 2, 9, 0xa3]);
    }
}
