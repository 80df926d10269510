//! What must hold for any bytes that a peer of the shell sends: decoding never panics, and what is decoded survives encoding.

use crate::shell::protocol::{
    Claim, ClientFrame, Exit, HEADER, Open, ServerFrame, SessionId, Source, Terminal, Token, Window, header,
};

/// Reads an input as a stream of frames, each as one of a client and as one of a server.
pub(super) fn run(mut input: &[u8]) {
    while let Ok(Some((kind, length))) = header(input) {
        let body = &input[HEADER..];
        let body = &body[..length.min(body.len())];
        let mut out = Vec::new();
        if let Ok(frame) = ClientFrame::decode(kind, body) {
            frame.append(&mut out);
            let again = ClientFrame::decode(out[HEADER - 1], &out[HEADER..]);
            assert_eq!(again.as_ref(), Ok(&frame));
        }
        out.clear();
        if let Ok(frame) = ServerFrame::decode(kind, body) {
            frame.append(&mut out);
            // A list shortens its commands.
            assert!(ServerFrame::decode(out[HEADER - 1], &out[HEADER..]).is_ok());
        }
        input = &input[HEADER + body.len()..];
    }
}

/// Streams to begin with.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let session = SessionId(7);
    let terminal = Some(Terminal { kind: b"xterm", window: Window::default() });
    let open = Open { terminal, command: Some(b"ls"), environment: vec![(b"LANG", b"C")] };
    let mut client = Vec::new();
    for frame in [
        ClientFrame::Open(open),
        ClientFrame::Attach { session, window: Window::default(), claim: Claim::TakeOver },
        ClientFrame::Resume { session, token: Token([3; 16]), received: 9 },
        ClientFrame::Input { offset: 0, bytes: b"typed" },
        ClientFrame::Resize(Window::default()),
        ClientFrame::Signal(15),
        ClientFrame::Finished,
    ] {
        frame.append(&mut client);
    }
    let mut server = Vec::new();
    for frame in [
        ServerFrame::Attached { session, token: Token([3; 16]), terminal: true, input: 0, output: 0 },
        ServerFrame::Output { source: Source::Output, offset: 0, bytes: b"shown" },
        ServerFrame::Exited { exit: Exit::Signal(9), output: 5 },
    ] {
        frame.append(&mut server);
    }
    vec![client, server]
}
