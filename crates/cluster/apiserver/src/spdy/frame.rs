//! Encodes and decodes frames of SPDY/3.1. Flow-control frames are ignored, as in the library that
//! Kubernetes' clients and servers use.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::{
    Headers, ProtocolError,
    headers::{Compressor, Decompressor},
};

/// Size of a frame header in bytes.
pub(super) const HEADER_LENGTH: usize = 8;
/// Maximum size of a control frame's body in bytes.
pub(super) const MAX_CONTROL_FRAME: usize = 64 << 10;

const VERSION: u16 = 3;
const FIN: u8 = 1;

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    Data {
        stream: u32,
        length: usize,
        last: bool,
    },
    Control {
        kind: u16,
        flags: u8,
        length: usize,
    },
}

impl Head {
    pub(super) fn read(bytes: [u8; HEADER_LENGTH]) -> Result<Self, ProtocolError> {
        let [a, b, c, d, flags, x, y, z] = bytes;
        let length = u32::from_be_bytes([0, x, y, z]) as usize;
        if a & 0x80 == 0 {
            return Ok(Self::Data {
                stream: u32::from_be_bytes([a, b, c, d]),
                length,
                last: flags & FIN != 0,
            });
        }
        if u16::from_be_bytes([a & 0x7f, b]) != VERSION {
            return Err(ProtocolError("another version than SPDY/3"));
        }
        if length > MAX_CONTROL_FRAME {
            return Err(ProtocolError("a control frame that is too large"));
        }
        Ok(Self::Control {
            kind: u16::from_be_bytes([c, d]),
            flags,
            length,
        })
    }
}

/// A supported control frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Control {
    Open {
        stream: u32,
        headers: Headers,
        last: bool,
    },
    Reset {
        stream: u32,
    },
    Ping {
        id: u32,
    },
    GoAway,
    /// Settings, window updates, additional headers, and unknown frames.
    Other,
}

impl Control {
    /// Reads the body of a control frame.
    pub(super) fn read(
        kind: u16,
        flags: u8,
        body: &[u8],
        decompressor: &mut Decompressor,
    ) -> Result<Self, ProtocolError> {
        let short = || ProtocolError("a control frame that breaks off");
        let number = |at: usize| {
            let bytes = body.get(at..at + 4).ok_or_else(short)?;
            let bytes = <[u8; 4]>::try_from(bytes).map_err(|_| short())?;
            Ok(u32::from_be_bytes(bytes) & 0x7fff_ffff)
        };
        Ok(match kind {
            1 => Self::Open {
                stream: number(0)?,
                headers: decompressor.decompress(body.get(10..).ok_or_else(short)?)?,
                last: flags & FIN != 0,
            },
            // Headers must always be decompressed, because blocks share one
            // compression context.
            2 | 8 => {
                decompressor.decompress(body.get(4..).ok_or_else(short)?)?;
                Self::Other
            }
            3 => Self::Reset { stream: number(0)? },
            6 => {
                number(0)?;
                let id = body.first_chunk::<4>().ok_or_else(short)?;
                Self::Ping {
                    id: u32::from_be_bytes(*id),
                }
            }
            7 => Self::GoAway,
            _ => Self::Other,
        })
    }
}

/// A frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Reply {
        stream: u32,
    },
    Data {
        stream: u32,
        bytes: Bytes,
        last: bool,
    },
    Reset {
        stream: u32,
        code: u32,
    },
    Ping {
        id: u32,
    },
    GoAway {
        last_stream: u32,
        status: u32,
    },
    #[cfg(test)]
    Open {
        stream: u32,
        headers: Headers,
    },
}

/// The connection ends normally.
pub(super) const GO_AWAY_OK: u32 = 0;
/// The connection ends because the client violated the protocol.
pub(super) const GO_AWAY_PROTOCOL_ERROR: u32 = 1;
/// The stream was refused before any work was done.
pub(super) const REFUSED: u32 = 3;
/// The frame violates the protocol.
pub(super) const PROTOCOL_ERROR: u32 = 1;

impl Frame {
    /// Writes the frame without the payload of a data frame, which follows
    /// separately.
    pub(super) fn write(&self, out: &mut BytesMut, compressor: &mut Compressor) {
        match self {
            Self::Data {
                stream,
                bytes,
                last,
            } => {
                out.put_u32(*stream);
                put_flags_and_length(out, u8::from(*last), bytes.len());
            }
            Self::Reply { stream } => {
                let block = compressor.compress(&[]);
                control(out, 2, 4 + block.len());
                out.put_u32(*stream);
                out.put_slice(&block);
            }
            Self::Reset { stream, code } => {
                control(out, 3, 8);
                out.put_u32(*stream);
                out.put_u32(*code);
            }
            Self::Ping { id } => {
                control(out, 6, 4);
                out.put_u32(*id);
            }
            Self::GoAway {
                last_stream,
                status,
            } => {
                control(out, 7, 8);
                out.put_u32(*last_stream);
                out.put_u32(*status);
            }
            #[cfg(test)]
            Self::Open { stream, headers } => {
                let block = compressor.compress(headers);
                control(out, 1, 10 + block.len());
                out.put_u32(*stream);
                out.put_slice(&[0; 6]);
                out.put_slice(&block);
            }
        }
    }
}

fn control(out: &mut BytesMut, kind: u16, length: usize) {
    out.put_u16(0x8000 | VERSION);
    out.put_u16(kind);
    put_flags_and_length(out, 0, length);
}

fn put_flags_and_length(out: &mut BytesMut, flags: u8, length: usize) {
    let length = u32::try_from(length).unwrap_or(u32::MAX) & 0x00ff_ffff;
    out.put_u32(u32::from(flags) << 24 | length);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn control_of(frame: &Frame) -> Control {
        let mut out = BytesMut::new();
        frame.write(&mut out, &mut Compressor::new());
        let head = Head::read(*out.first_chunk().unwrap()).unwrap();
        let Head::Control {
            kind,
            flags,
            length,
        } = head
        else {
            panic!("{head:?}");
        };
        assert_eq!(length, out.len() - HEADER_LENGTH);
        Control::read(kind, flags, &out[HEADER_LENGTH..], &mut Decompressor::new()).unwrap()
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(
            stream in 1..0x7fff_ffff_u32,
            headers in prop::collection::vec(("[a-z]{1,9}", ".{0,20}"), 0..5),
            length in 0..0x00ff_ffff_usize,
            last: bool)
        {
            let open = Frame::Open { stream, headers: headers.clone() };
            let read = Control::Open { stream, headers, last: false };
            prop_assert_eq!(control_of(&open), read);
            let reset = Frame::Reset { stream, code: PROTOCOL_ERROR };
            prop_assert_eq!(control_of(&reset), Control::Reset { stream });
            prop_assert_eq!(control_of(&Frame::Ping { id: stream }), Control::Ping { id: stream });
            let mut out = BytesMut::new();
            out.put_u32(stream);
            put_flags_and_length(&mut out, u8::from(last), length);
            let head = Head::read(*out.first_chunk().unwrap()).unwrap();
            prop_assert_eq!(head, Head::Data { stream, length, last });
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(
            head: [u8; HEADER_LENGTH], kind in 0..12_u16, body in prop::collection::vec(any::<u8>(), 0..64))
        {
            let _ = Head::read(head);
            let _ = Control::read(kind, 0, &body, &mut Decompressor::new());
        }
    }
}
