//! Bytes. Base64 of the input is decoded when it is used.

use std::rc::Rc;

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{error::EvalError, meter::Meter};

/// Bytes from the input, encoded as base64, or computed bytes.
#[derive(Debug, Clone)]
pub(crate) enum Bytes<'a> {
    Encoded(&'a str),
    Own(Rc<[u8]>),
}

impl Bytes<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Encoded(text) => text.trim_end_matches('=').len() * 3 / 4,
            Self::Own(bytes) => bytes.len(),
        }
    }

    pub(crate) fn decode(&self, meter: &mut Meter) -> Result<Rc<[u8]>, EvalError> {
        meter.work(self.len())?;
        match self {
            Self::Encoded(text) => match STANDARD.decode(text) {
                Ok(bytes) => Ok(bytes.into()),
                Err(_) => Err(EvalError::new("invalid data, expected base64")),
            },
            Self::Own(bytes) => Ok(bytes.clone()),
        }
    }
}
