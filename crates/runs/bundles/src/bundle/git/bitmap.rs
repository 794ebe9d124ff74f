//! Compressed bitmaps (EWAH), with which a split index refers to entries of the shared index.

/// The positions of the bits that are set, in order, and the data after the bitmap. `None` if
/// the bitmap is not valid or has a bit from `limit` on.
pub(super) fn positions(data: &[u8], limit: usize) -> Option<(Vec<usize>, &[u8])> {
    let (_, data) = number(data)?;
    let (count, data) = number(data)?;
    let (words, data) = data.split_at_checked(usize::try_from(count).ok()?.checked_mul(8)?)?;
    // The position of the last run, which only writers need.
    let (_, rest) = number(data)?;
    let mut words = words.chunks_exact(8).map(|word| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        u64::from_be_bytes(bytes)
    });
    let mut set = Vec::new();
    let mut at = 0_usize;
    while let Some(run) = words.next() {
        // 1 bit: the value of the run; 32 bits: its words; 31 bits: the words that follow it.
        let length = usize::try_from(run >> 1 & 0xffff_ffff)
            .ok()?
            .checked_mul(64)?;
        let end = at.checked_add(length)?;
        if run & 1 == 1 {
            if end > limit.checked_add(64)? {
                return None;
            }
            set.extend((at..end).filter(|bit| *bit < limit));
        }
        at = end;
        for _ in 0..run >> 33 {
            let word = words.next()?;
            let bits = (0..64).filter(|bit| word >> bit & 1 == 1);
            set.extend(bits.map(|bit| at.saturating_add(bit)));
            at = at.checked_add(64)?;
        }
    }
    set.last()
        .is_none_or(|last| *last < limit)
        .then_some((set, rest))
}

fn number(data: &[u8]) -> Option<(u32, &[u8])> {
    let (bytes, rest) = data.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*bytes), rest))
}
