//! Frames from the client as bytes.

use super::{
    Claim, ClientFrame, Fields, FrameError, MAX_VARIABLES, Open, SIGNALS, Terminal, Token, VERSION, frame,
    put_bytes, put_optional, put_window,
};

impl<'a> ClientFrame<'a> {
    /// Appends the frame.
    pub fn append(&self, out: &mut Vec<u8>) {
        match self {
            Self::Open(open) => frame(out, 1, |out| {
                out.push(VERSION);
                put_optional(out, open.terminal.map(|terminal| terminal.kind));
                put_window(out, open.terminal.map(|terminal| terminal.window).unwrap_or_default());
                put_optional(out, open.command);
                let variables = &open.environment[..open.environment.len().min(MAX_VARIABLES)];
                out.extend_from_slice(&u16::try_from(variables.len()).unwrap_or(0).to_le_bytes());
                for (name, value) in variables {
                    put_bytes(out, name);
                    put_bytes(out, value);
                }
            }),
            Self::Attach { session, window, claim } => frame(out, 2, |out| {
                out.push(VERSION);
                out.extend_from_slice(&session.0.to_le_bytes());
                put_window(out, *window);
                out.push((*claim == Claim::TakeOver).into());
            }),
            Self::Resume { session, token, received } => frame(out, 3, |out| {
                out.push(VERSION);
                out.extend_from_slice(&session.0.to_le_bytes());
                out.extend_from_slice(&token.0);
                out.extend_from_slice(&received.to_le_bytes());
            }),
            Self::List => frame(out, 4, |out| out.push(VERSION)),
            Self::End(session) => frame(out, 5, |out| {
                out.push(VERSION);
                out.extend_from_slice(&session.0.to_le_bytes());
            }),
            Self::Input { offset, bytes } => frame(out, 16, |out| {
                out.extend_from_slice(&offset.to_le_bytes());
                out.extend_from_slice(bytes);
            }),
            Self::InputEnd(offset) => frame(out, 17, |out| out.extend_from_slice(&offset.to_le_bytes())),
            Self::Acknowledge(offset) => frame(out, 18, |out| out.extend_from_slice(&offset.to_le_bytes())),
            Self::Resize(window) => frame(out, 19, |out| put_window(out, *window)),
            Self::Signal(signal) => frame(out, 20, |out| out.push(*signal)),
            Self::Detach => frame(out, 21, |_| {}),
            Self::Ping => frame(out, 22, |_| {}),
            Self::Pong => frame(out, 23, |_| {}),
            Self::Finished => frame(out, 24, |_| {}),
        }
    }

    /// Decodes the body of a frame of this kind.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(kind: u8, body: &'a [u8]) -> Result<Self, FrameError> {
        let fields = |frame| Fields { rest: body, frame };
        match kind {
            1 => {
                let mut fields = fields("Open");
                fields.version()?;
                let kind = fields.optional()?;
                let window = fields.window()?;
                let command = fields.optional()?;
                let count = fields.u16()?;
                if usize::from(count) > MAX_VARIABLES {
                    return Err(FrameError::Invalid("Open"));
                }
                let pair = |_| Ok((fields.bytes()?, fields.bytes()?));
                let environment = (0..count).map(pair).collect::<Result<_, FrameError>>()?;
                let terminal = kind.map(|kind| Terminal { kind, window });
                fields.end(Self::Open(Open { terminal, command, environment }))
            }
            2 => {
                let mut fields = fields("Attach");
                fields.version()?;
                let (session, window) = (fields.session()?, fields.window()?);
                let claim = fields.one_of(&[Claim::IfFree, Claim::TakeOver])?;
                fields.end(Self::Attach { session, window, claim })
            }
            3 => {
                let mut fields = fields("Resume");
                fields.version()?;
                let (session, token, received) = (fields.session()?, Token(fields.array()?), fields.u64()?);
                fields.end(Self::Resume { session, token, received })
            }
            4 => {
                let mut fields = fields("List");
                fields.version()?;
                fields.end(Self::List)
            }
            5 => {
                let mut fields = fields("End");
                fields.version()?;
                let session = fields.session()?;
                fields.end(Self::End(session))
            }
            _ => Self::decode_of_session(kind, body),
        }
    }

    /// Decodes a frame of a session that is open.
    fn decode_of_session(kind: u8, body: &'a [u8]) -> Result<Self, FrameError> {
        let fields = |frame| Fields { rest: body, frame };
        match kind {
            16 => {
                let mut fields = fields("Input");
                let (offset, bytes) = (fields.u64()?, fields.data()?);
                fields.end(Self::Input { offset, bytes })
            }
            17 => {
                let mut fields = fields("InputEnd");
                let offset = fields.u64()?;
                fields.end(Self::InputEnd(offset))
            }
            18 => {
                let mut fields = fields("Acknowledge");
                let offset = fields.u64()?;
                fields.end(Self::Acknowledge(offset))
            }
            19 => {
                let mut fields = fields("Resize");
                let window = fields.window()?;
                fields.end(Self::Resize(window))
            }
            20 => {
                let mut fields = fields("Signal");
                let signal = fields.u8()?;
                if !SIGNALS.contains(&signal) {
                    return Err(FrameError::Invalid("Signal"));
                }
                fields.end(Self::Signal(signal))
            }
            21 => fields("Detach").end(Self::Detach),
            22 => fields("Ping").end(Self::Ping),
            23 => fields("Pong").end(Self::Pong),
            24 => fields("Finished").end(Self::Finished),
            kind => Err(FrameError::UnknownKind(kind)),
        }
    }
}
