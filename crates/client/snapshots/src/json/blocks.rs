//! Finds the end of a JSON object or array in blocks of 64 bytes. Only counts brackets
//! outside strings; values inside are checked when they are read.

/// The positions of quotes, backslashes and brackets in a block. Bit `i` stands for byte `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Masks {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
}

/// The bit in which `[` differs from `{`, and `]` from `}`. It is set before the comparison.
const BRACE_BIT: u8 = 0x20;

#[inline]
fn masks(block: &[u8; 64]) -> Masks {
    use wide::{CmpEq, i8x16};
    let equal = |bytes: i8x16, byte: u8| {
        let found = bytes.cmp_eq(i8x16::splat(byte.cast_signed())).move_mask();
        u64::from(found.cast_unsigned())
    };
    let mut masks = Masks::default();
    for (i, part) in block.as_chunks::<16>().0.iter().enumerate() {
        let bytes = i8x16::new(part.map(u8::cast_signed));
        let folded = bytes | i8x16::splat(BRACE_BIT.cast_signed());
        let shift = 16 * i;
        masks.quotes |= equal(bytes, b'"') << shift;
        masks.backslashes |= equal(bytes, b'\\') << shift;
        masks.opens |= equal(folded, b'{') << shift;
        masks.closes |= equal(folded, b'}') << shift;
    }
    masks
}

#[cfg(test)]
fn simple_masks(block: &[u8; 64]) -> Masks {
    let mut masks = Masks::default();
    for (i, byte) in block.iter().enumerate() {
        masks.quotes |= u64::from(*byte == b'"') << i;
        masks.backslashes |= u64::from(*byte == b'\\') << i;
        masks.opens |= u64::from(*byte | BRACE_BIT == b'{') << i;
        masks.closes |= u64::from(*byte | BRACE_BIT == b'}') << i;
    }
    masks
}

/// Returns the prefix parity: bit `i` of the result is the parity of the bits 0 to `i`.
#[inline]
fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// Returns which bytes of a block are escaped by a backslash. `first` is whether the first
/// byte of this block is escaped; it is set to whether the first byte of the next block is.
fn escaped(backslashes: u64, first: &mut bool) -> u64 {
    let mut escaped = u64::from(*first);
    let mut rest = backslashes & !escaped;
    *first = false;
    while rest != 0 {
        let at = rest.trailing_zeros();
        if at == 63 {
            *first = true;
            break;
        }
        escaped |= 1 << (at + 1);
        // An escaped backslash does not escape the next byte.
        rest &= !(0b11 << at);
    }
    escaped
}

/// Returns the length of the object or array at the start of `text`, `None` if it has no
/// end. Does not distinguish brackets from braces.
#[inline]
pub(super) fn length(text: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escape) = (0_u32, 0_u64, false);
    let mut start = 0;
    loop {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let mut padded = [b' '; 64];
        let block = match rest.first_chunk::<64>() {
            Some(block) => block,
            None => {
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            }
        };
        let mut masks = masks(block);
        if masks.backslashes != 0 || escape {
            masks.quotes &= !escaped(masks.backslashes, &mut escape);
        }
        let strings = parity(masks.quotes) ^ in_string;
        // All ones if the block ends inside a string.
        in_string = 0_u64.wrapping_sub(strings >> 63);
        let (opens, closes) = (masks.opens & !strings, masks.closes & !strings);
        // The value cannot end in a block with fewer closing brackets than its depth.
        if depth > closes.count_ones() {
            depth = depth + opens.count_ones() - closes.count_ones();
        } else {
            let mut brackets = opens | closes;
            while brackets != 0 {
                let at = brackets.trailing_zeros();
                if opens >> at & 1 == 1 {
                    depth += 1;
                } else {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(start + at as usize + 1);
                    }
                }
                brackets &= brackets - 1;
            }
        }
        start += 64;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::super::{Scanner, tests::any_json};
    use super::*;

    #[test]
    fn finds_the_end() {
        assert_eq!(length(b"{}"), Some(2));
        assert_eq!(length(b"[]]"), Some(2));
        assert_eq!(length(br#"{"a":"}"}, "#), Some(9));
        assert_eq!(length(br#"{"a":"\"}"}"#), Some(11));
        assert_eq!(length(br#"{"a":"\\"}}"#), Some(10));
        assert_eq!(length(b""), None);
        assert_eq!(length(b"{"), None);
        assert_eq!(length(br#"{"}"#), None);
        assert_eq!(length(b"}"), None);
    }

    #[test]
    fn escapes_cross_blocks() {
        for pad in 0..140 {
            let text = format!(r#"{{"{}\\\"}}":["\\",[]]}}  "#, "x".repeat(pad));
            assert_eq!(length(text.as_bytes()), Some(text.len() - 2), "{pad}");
        }
    }

    proptest! {
        #[test]
        fn masks_agree_with_the_simple_implementation(block in prop::collection::vec(any::<u8>(), 64)) {
            let block: [u8; 64] = block.try_into().unwrap();
            prop_assert_eq!(masks(&block), simple_masks(&block));
        }

        #[test]
        fn agrees_with_the_scanner(value in any_json(), pad in 0_usize..70, pretty: bool) {
            let value = serde_json::json!([{ "x".repeat(pad): value }, "]}"]);
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap() + ", {";
            let end = Scanner::new(text.as_bytes()).value().unwrap().end;
            prop_assert_eq!(length(text.as_bytes()), Some(end));
        }

        #[test]
        fn random_text_never_panics(text in prop::collection::vec(prop::sample::select(b"{}[]\"\\a ".to_vec()), 0..300)) {
            let _ = length(&text);
        }
    }
}
