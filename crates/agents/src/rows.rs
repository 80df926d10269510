//! Rows as bytes: a number, then rows of a fixed length, all little-endian.
//!
//! The number counts an agent's messages of rows, so that a lost message is noticed. Stamps of the server are not among
//! the fields: an agent has none.

use kendall_record::{Outcome, RequestRow};

/// The bytes of a row.
const ROW_BYTES: usize = 8 + 4 + 2 + 1 + 8 * 6;
/// The most rows of a message.
const MOST_ROWS: usize = 4096;
/// An instant that did not occur.
const NEVER: i64 = i64::MIN;

pub(crate) fn encode(number: u64, rows: &[RequestRow]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + rows.len() * ROW_BYTES);
    bytes.extend(number.to_le_bytes());
    for row in rows {
        let instant = |at: Option<i64>| at.unwrap_or(NEVER).to_le_bytes();
        bytes.extend(row.index.to_le_bytes());
        bytes.extend(row.class.to_le_bytes());
        bytes.extend(row.port.to_le_bytes());
        bytes.push(row.outcome as u8);
        bytes.extend(row.scheduled.to_le_bytes());
        bytes.extend(instant(row.sent));
        bytes.extend(instant(row.first_byte));
        bytes.extend(instant(row.completed));
        bytes.extend(row.bytes_out.to_le_bytes());
        bytes.extend(row.bytes_in.to_le_bytes());
    }
    bytes
}

/// The number of the message and its rows; `None` where the bytes are not rows.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, Vec<RequestRow>)> {
    let (number, rows) = bytes.split_first_chunk::<8>()?;
    let chunks = rows.chunks_exact(ROW_BYTES);
    if !chunks.remainder().is_empty() || chunks.len() > MOST_ROWS {
        return None;
    }
    Some((u64::from_le_bytes(*number), chunks.map(row).collect::<Option<_>>()?))
}

fn row(mut bytes: &[u8]) -> Option<RequestRow> {
    let field = |bytes: &mut &[u8]| -> Option<[u8; 8]> {
        let (field, rest) = bytes.split_first_chunk::<8>()?;
        *bytes = rest;
        Some(*field)
    };
    let index = u64::from_le_bytes(field(&mut bytes)?);
    let (class, rest) = bytes.split_first_chunk::<4>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let (&outcome, mut rest) = rest.split_first()?;
    let scheduled = i64::from_le_bytes(field(&mut rest)?);
    let mut instant = || {
        let at_ns = i64::from_le_bytes(field(&mut rest)?);
        // Far from the ends of the range, so that differences do not overflow.
        let is_possible = at_ns == NEVER || at_ns.unsigned_abs() < 1 << 62;
        is_possible.then_some((at_ns != NEVER).then_some(at_ns))
    };
    let (sent, first_byte, completed) = (instant()?, instant()?, instant()?);
    let (bytes_out, bytes_in) =
        (u64::from_le_bytes(field(&mut rest)?), u64::from_le_bytes(field(&mut rest)?));
    if scheduled.unsigned_abs() >= 1 << 62 {
        return None;
    }
    Some(RequestRow {
        class: u32::from_le_bytes(*class),
        port: u16::from_le_bytes(*port),
        outcome: *Outcome::ALL.get(usize::from(outcome))?,
        sent,
        first_byte,
        completed,
        bytes_out,
        bytes_in,
        ..RequestRow::due(index, scheduled)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn rows()(
            index: u64, class: u32, port: u16, outcome in 0usize..5,
            scheduled in -1i64 << 61..1i64 << 61,
            stamps in prop::array::uniform3(prop::option::of(-1i64 << 61..1i64 << 61)),
            bytes_out: u64, bytes_in: u64,
        ) -> RequestRow {
            let [sent, first_byte, completed] = stamps;
            let outcome = Outcome::ALL[outcome];
            RequestRow { class, port, outcome, sent, first_byte, completed, bytes_out, bytes_in,
                ..RequestRow::due(index, scheduled) }
        }
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(number: u64, rows in prop::collection::vec(rows(), 0..20)) {
            prop_assert_eq!(decode(&encode(number, &rows)), Some((number, rows)));
        }

        #[test]
        fn any_bytes_are_rows_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some((number, rows)) = decode(&bytes) {
                prop_assert_eq!(encode(number, &rows), bytes);
            }
        }
    }
}
