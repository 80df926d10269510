use super::*;
use proptest::prelude::*;

fn rows() -> impl Strategy<Value = String> {
    prop::collection::vec("[^\n]{1,20}\n", 0..8).prop_map(|rows| rows.concat())
}

/// The result of a reader for an answer that comes in these pieces, and the number of bytes it consumed.
fn read(
    dialect: Dialect,
    answer: &[u8],
    pieces: impl IntoIterator<Item = usize>,
) -> (usize, Option<AnswerKind>) {
    let (mut reader, mut pieces) = (dialect.reader(), pieces.into_iter());
    let (mut taken, mut there) = (0, 0);
    while there < answer.len() {
        there = answer.len().min(there + pieces.next().unwrap_or(usize::MAX / 2).max(1));
        let AnswerProgress { used_bytes, ended } = reader.take(&answer[taken..there]);
        taken += used_bytes;
        if ended.is_some() {
            return (taken, ended);
        }
    }
    (taken, None)
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(request in "[^\r\n]{0,60}", surplus: Vec<u8>) {
        for dialect in Dialect::ALL {
            let mut bytes = dialect.encode_request(&request).unwrap();
            let length = bytes.len();
            for part in 0..length {
                prop_assert_eq!(dialect.decode_request(&bytes[..part]), None);
            }
            bytes.extend(&surplus);
            let framed = Framed { used_bytes: length, text: Ok(request.clone()) };
            prop_assert_eq!(dialect.decode_request(&bytes), Some(framed));
        }
    }

    #[test]
    fn any_bytes_are_a_request_or_the_beginning_of_one(bytes: Vec<u8>) {
        for dialect in Dialect::ALL {
            if let Some(framed) = dialect.decode_request(&bytes) {
                prop_assert!(framed.used_bytes <= bytes.len());
            }
        }
    }

    #[test]
    fn modified_utf8_is_read_as_it_was_written(text: String) {
        let bytes = utf::encode(&text).unwrap();
        prop_assert_eq!(utf::decode(utf::message(&bytes).unwrap()), Some(text));
        prop_assert!(!bytes[2..].contains(&0));
    }

    #[test]
    fn bytes_that_are_read_are_those_that_are_written(bytes in prop::collection::vec(any::<u8>(), 0..6)) {
        if let Some(text) = utf::decode(&bytes) {
            prop_assert_eq!(&utf::encode(&text).unwrap()[2..], &bytes[..]);
        }
    }

    #[test]
    fn an_answer_ends_where_it_ends_in_whatever_pieces_it_comes(
        rows in rows(),
        pieces in prop::collection::vec(1usize..40, 0..20),
        surplus in prop::collection::vec(any::<u8>(), 0..5),
    ) {
        prop_assume!(!rows.starts_with("error@@@"));
        for dialect in Dialect::ALL {
            let answer = dialect.encode_answer(&rows);
            let sent = [&answer[..], &surplus].concat();
            let (taken, ended) = read(dialect, &sent, pieces.iter().copied());
            prop_assert_eq!((taken, ended), (answer.len(), Some(AnswerKind::Rows)));
            let (_, ended) = read(dialect, &answer[..answer.len() - 1], pieces.iter().copied());
            prop_assert_eq!(ended, None);
        }
    }

    #[test]
    fn an_error_is_told_from_rows_whatever_its_words(words: String, pieces in prop::collection::vec(1usize..9, 0..20)) {
        for dialect in Dialect::ALL {
            let answer = dialect.encode_error(&words);
            let (taken, ended) = read(dialect, &answer, pieces.iter().copied());
            prop_assert_eq!((taken, ended), (answer.len(), Some(AnswerKind::Refused)));
        }
    }

    #[test]
    fn rows_are_never_empty_and_else_unchanged(rows in prop::collection::vec("[^\n]{0,3}", 0..12), before in "[a-z]{0,3}") {
        let mut bytes = before.clone().into_bytes();
        bytes.extend(rows.iter().flat_map(|row| format!("{row}\n").into_bytes()));
        fill_empty_rows(&mut bytes, before.len());
        let wanted = rows.iter().map(|row| if row.is_empty() { " \n".into() } else { format!("{row}\n") });
        prop_assert_eq!(String::from_utf8(bytes).unwrap(), before + &wanted.collect::<String>());
    }
}

#[test]
fn the_recorded_messages_are_read_and_written_to_the_byte() {
    let recorded = include_str!("../../testdata/utf.txt");
    let vectors = recorded.lines().skip(2).map(|line| line.split_once(':').unwrap());
    let mut count = 0;
    for (points, bytes) in vectors {
        let point = |word| char::from_u32(u32::from_str_radix(word, 16).unwrap()).unwrap();
        let text: String = points.split_whitespace().map(point).collect();
        let digits: String = bytes.split_whitespace().collect();
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        assert_eq!(utf::encode(&text).unwrap(), bytes, "{points}");
        assert_eq!(utf::decode(&bytes[2..]), Some(text), "{points}");
        count += 1;
    }
    assert_eq!(count, 14);
}

#[test]
fn bytes_that_are_not_text_are_reported() {
    for message in [
        &[0][..],
        &[0x80],
        &[0xC1, 0x81],
        &[0xED, 0xA0, 0x80],
        &[0xF0, 0x9F, 0x98, 0x80],
        &[0xE2, 0x82],
        &[0xC3, 0x29],
    ] {
        assert_eq!(utf::decode(message), None, "{message:x?}");
    }
    let framed = Dialect::Lines.decode_request(b";\xFF\nrest").unwrap();
    assert_eq!(framed.used_bytes, 3);
    assert!(framed.text.unwrap_err().to_string().contains("not UTF-8"));
}

#[test]
fn line_ends_of_other_systems_are_left_off() {
    let text = |dialect: Dialect, bytes: &[u8]| dialect.decode_request(bytes).unwrap().text.unwrap();
    assert_eq!(text(Dialect::Lines, b"1;a\r\n"), "1;a");
    assert_eq!(text(Dialect::Utf, b"\0\x04;ab\n"), ";ab");
}

#[test]
fn a_request_that_a_dialect_cannot_carry_is_an_error() {
    let long = "x".repeat(utf::MESSAGE_BYTES + 1);
    for dialect in Dialect::ALL {
        assert_eq!(dialect.encode_request("a\nb"), Err(CannotCarry::LineFeed));
        assert_eq!(dialect.encode_request(&long), Err(CannotCarry::TooLong));
        assert!(dialect.encode_request(&long[1..]).unwrap().len() <= REQUEST_BYTES);
    }
    // The longest answer is 65,535 bytes with its end.
    let rows = |bytes: usize| format!("{}\n", "x".repeat(bytes - 2));
    assert_eq!(Dialect::Utf.encode_answer(&rows(65_535)).len(), 65_537);
    assert_eq!(&Dialect::Utf.encode_answer(&rows(65_536))[2..], b"request may be too big \n\n");
    assert_eq!(Dialect::Lines.encode_answer(&rows(65_536)).len(), 65_536);
    let too_big = Dialect::Utf.encode_answer(&rows(65_536));
    assert_eq!(read(Dialect::Utf, &too_big, []).1, Some(AnswerKind::Refused));
    // A message without its end is not an answer.
    assert_eq!(read(Dialect::Utf, b"\0\x02a\n", []).1, Some(AnswerKind::Wrong));
    assert_eq!(read(Dialect::Utf, b"\0\0", []).1, Some(AnswerKind::Wrong));
}

#[test]
fn dialects_are_known_by_name() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.name().parse(), Ok(dialect));
    }
    assert!("java".parse::<Dialect>().unwrap_err().contains("lines or utf"));
}
