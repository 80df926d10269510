//! Every frame survives encoding and decoding; no bytes make decoding panic.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn window() -> impl Strategy<Value = Window> {
    any::<[u16; 4]>().prop_map(|[columns, rows, x_pixels, y_pixels]| Window {
        columns,
        rows,
        x_pixels,
        y_pixels,
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

/// Encodes a frame, checks its header and hands out kind and body.
fn parts(frame: impl FnOnce(&mut Vec<u8>)) -> (u8, Vec<u8>) {
    let mut out = vec![7];
    frame(&mut out);
    let (kind, length) = header(&out[1..]).unwrap().unwrap();
    assert_eq!(out.len(), 1 + HEADER + length);
    (kind, out[1 + HEADER..].to_vec())
}

fn check_client(frame: &ClientFrame<'_>) {
    let (kind, body) = parts(|out| frame.append(out));
    assert_eq!(ClientFrame::decode(kind, &body).as_ref(), Ok(frame));
    for end in 0..body.len() {
        // A prefix may be a shorter frame of the same kind, but never this one.
        assert_ne!(ClientFrame::decode(kind, &body[..end]).as_ref(), Ok(frame));
    }
}

fn check_server(frame: &ServerFrame<'_>) {
    let (kind, body) = parts(|out| frame.append(out));
    assert_eq!(ServerFrame::decode(kind, &body).as_ref(), Ok(frame));
}

proptest! {
    #[test]
    fn requests_survive(
        terminal in proptest::option::of((bytes(), window())),
        command in proptest::option::of(bytes()),
        environment in vec((bytes(), bytes()), 0..5),
        id in any::<u32>(), token in any::<[u8; 16]>(), received in any::<u64>(), window in window(), over in any::<bool>(),
    ) {
        let open = Open {
            terminal: terminal.as_ref().map(|(kind, window)| Terminal { kind, window: *window }),
            command: command.as_deref(),
            environment: environment.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect(),
        };
        let session = SessionId(id);
        let claim = if over { Claim::TakeOver } else { Claim::IfFree };
        check_client(&ClientFrame::Open(open));
        check_client(&ClientFrame::Attach { session, window, claim });
        check_client(&ClientFrame::Resume { session, token: Token(token), received });
        check_client(&ClientFrame::End(session));
        check_client(&ClientFrame::List);
    }

    #[test]
    fn frames_of_a_session_survive(bytes in bytes(), offset in any::<u64>(), window in window(), signal in 0..7_usize) {
        for frame in [
            ClientFrame::Input { offset, bytes: &bytes },
            ClientFrame::InputEnd(offset),
            ClientFrame::Acknowledge(offset),
            ClientFrame::Resize(window),
            ClientFrame::Signal(SIGNALS[signal]),
            ClientFrame::Detach,
            ClientFrame::Ping,
            ClientFrame::Pong,
            ClientFrame::Finished,
        ] {
            check_client(&frame);
        }
    }

    #[test]
    fn frames_of_the_server_survive(
        bytes in vec(any::<u8>(), 0..200), text in ".{0,80}", numbers in any::<[u64; 2]>(), id in any::<u32>(),
        token in any::<[u8; 16]>(), flags in any::<[bool; 2]>(), code in any::<u8>(),
    ) {
        let (session, [input, output], [attached, terminal]) = (SessionId(id), numbers, flags);
        let listed = Listed { session, attached, terminal, age_s: input, idle_s: output, command: &bytes };
        for frame in [
            ServerFrame::Attached { session, token: Token(token), terminal, input, output },
            ServerFrame::Refused(Refusal::Attached, &text),
            ServerFrame::Sessions(vec![listed.clone(), listed]),
            ServerFrame::Ending,
            ServerFrame::Output { source: Source::Errors, offset: input, bytes: &bytes },
            ServerFrame::Taken(input),
            ServerFrame::Exited { exit: Exit::Status(code), output },
            ServerFrame::Exited { exit: Exit::Signal(code), output },
            ServerFrame::Detached(DetachReason::TakenOver),
            ServerFrame::Ping,
            ServerFrame::Pong,
        ] {
            check_server(&frame);
        }
    }

    #[test]
    fn no_bytes_make_decoding_panic_and_what_decodes_is_encoded_the_same(kind in any::<u8>(), body in bytes()) {
        if let Ok(frame) = ClientFrame::decode(kind, &body) {
            check_client(&frame);
        }
        if let Ok(frame) = ServerFrame::decode(kind, &body) {
            let (again, encoded) = parts(|out| frame.append(out));
            prop_assert_eq!(again, kind);
            prop_assert!(ServerFrame::decode(again, &encoded).is_ok());
        }
    }
}

#[test]
fn bounds_are_kept() {
    let mut long = u32::try_from(MAX_BODY + 1).unwrap().to_le_bytes().to_vec();
    long.push(16);
    assert_eq!(header(&long), Err(FrameError::TooLong(65_537)));
    assert_eq!(header(&long[..4]), Ok(None));
    let data = vec![0; 8 + MAX_DATA + 1];
    assert_eq!(ClientFrame::decode(16, &data), Err(FrameError::Invalid("Input")));
    assert_eq!(ClientFrame::decode(4, &[VERSION + 1]), Err(FrameError::Version(VERSION + 1)));
    assert_eq!(ClientFrame::decode(20, &[19]), Err(FrameError::Invalid("Signal")));
    assert_eq!(ClientFrame::decode(99, &[]), Err(FrameError::UnknownKind(99)));
    // As many sessions as one key may ever have: the list is cut, not the frame.
    let listed = Listed {
        session: SessionId(1),
        attached: false,
        terminal: true,
        age_s: 1,
        idle_s: 1,
        command: &[b'x'; 500],
    };
    check_cut(&ServerFrame::Sessions(vec![listed; 1000]));
}

fn check_cut(frame: &ServerFrame<'_>) {
    let (kind, body) = parts(|out| frame.append(out));
    let Ok(ServerFrame::Sessions(sessions)) = ServerFrame::decode(kind, &body) else { panic!("no list") };
    assert!((200..400).contains(&sessions.len()), "{}", sessions.len());
}
