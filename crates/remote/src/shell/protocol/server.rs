//! Frames from the server as bytes.

use super::{
    DetachReason, Exit, Fields, FrameError, Listed, MAX_BODY, Refusal, ServerFrame, Source, Token, frame,
    put_bytes,
};

const SOURCES: [Source; 2] = [Source::Output, Source::Errors];
const REASONS: [DetachReason; 3] =
    [DetachReason::Requested, DetachReason::TakenOver, DetachReason::ServerStops];
const REFUSALS: [Refusal; 5] =
    [Refusal::Limit, Refusal::NoSession, Refusal::Attached, Refusal::NotStarted, Refusal::BadRequest];

/// The most bytes of a command that a list shows.
const SHOWN_COMMAND: usize = 200;

fn index<T: PartialEq>(choices: &[T], choice: &T) -> u8 {
    let index = choices.iter().position(|other| other == choice);
    u8::try_from(index.unwrap_or_default()).unwrap_or_default()
}

impl<'a> ServerFrame<'a> {
    /// Appends the frame. A list of sessions is cut where it would be longer than a frame.
    pub fn append(&self, out: &mut Vec<u8>) {
        match self {
            Self::Attached { session, token, terminal, input, output } => frame(out, 129, |out| {
                out.extend_from_slice(&session.0.to_le_bytes());
                out.extend_from_slice(&token.0);
                out.push((*terminal).into());
                out.extend_from_slice(&input.to_le_bytes());
                out.extend_from_slice(&output.to_le_bytes());
            }),
            Self::Refused(refusal, text) => frame(out, 130, |out| {
                out.push(index(&REFUSALS, refusal));
                put_bytes(out, text.as_bytes());
            }),
            Self::Sessions(sessions) => frame(out, 131, |out| {
                let start = out.len();
                for listed in sessions {
                    if out.len() - start > MAX_BODY - SHOWN_COMMAND - 64 {
                        return;
                    }
                    append_listed(out, listed);
                }
            }),
            Self::Ending => frame(out, 132, |_| {}),
            Self::Output { source, offset, bytes } => frame(out, 144, |out| {
                out.push(index(&SOURCES, source));
                out.extend_from_slice(&offset.to_le_bytes());
                out.extend_from_slice(bytes);
            }),
            Self::Taken(offset) => frame(out, 145, |out| out.extend_from_slice(&offset.to_le_bytes())),
            Self::Exited { exit, output } => frame(out, 146, |out| {
                out.extend_from_slice(&match exit {
                    Exit::Status(status) => [0, *status],
                    Exit::Signal(signal) => [1, *signal],
                });
                out.extend_from_slice(&output.to_le_bytes());
            }),
            Self::Detached(reason) => frame(out, 147, |out| out.push(index(&REASONS, reason))),
            Self::Ping => frame(out, 148, |_| {}),
            Self::Pong => frame(out, 149, |_| {}),
        }
    }

    /// Decodes the body of a frame of this kind.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(kind: u8, body: &'a [u8]) -> Result<Self, FrameError> {
        let fields = |frame| Fields { rest: body, frame };
        match kind {
            129 => {
                let mut fields = fields("Attached");
                let (session, token) = (fields.session()?, Token(fields.array()?));
                let terminal = fields.one_of(&[false, true])?;
                let (input, output) = (fields.u64()?, fields.u64()?);
                fields.end(Self::Attached { session, token, terminal, input, output })
            }
            130 => {
                let mut fields = fields("Refused");
                let (refusal, text) = (fields.one_of(&REFUSALS)?, fields.bytes()?);
                let text = std::str::from_utf8(text).map_err(|_| FrameError::Invalid("Refused"))?;
                fields.end(Self::Refused(refusal, text))
            }
            131 => {
                let (mut fields, mut sessions) = (fields("Sessions"), Vec::new());
                while !fields.rest.is_empty() {
                    sessions.push(listed(&mut fields)?);
                }
                fields.end(Self::Sessions(sessions))
            }
            132 => fields("Ending").end(Self::Ending),
            144 => {
                let mut fields = fields("Output");
                let (source, offset, bytes) = (fields.one_of(&SOURCES)?, fields.u64()?, fields.data()?);
                fields.end(Self::Output { source, offset, bytes })
            }
            145 => {
                let mut fields = fields("Taken");
                let offset = fields.u64()?;
                fields.end(Self::Taken(offset))
            }
            146 => {
                let mut fields = fields("Exited");
                let exit = fields.one_of(&[Exit::Status as fn(u8) -> Exit, Exit::Signal])?(fields.u8()?);
                let output = fields.u64()?;
                fields.end(Self::Exited { exit, output })
            }
            147 => {
                let mut fields = fields("Detached");
                let reason = fields.one_of(&REASONS)?;
                fields.end(Self::Detached(reason))
            }
            148 => fields("Ping").end(Self::Ping),
            149 => fields("Pong").end(Self::Pong),
            kind => Err(FrameError::UnknownKind(kind)),
        }
    }
}

fn append_listed(out: &mut Vec<u8>, listed: &Listed<'_>) {
    out.extend_from_slice(&listed.session.0.to_le_bytes());
    out.extend_from_slice(&[listed.attached.into(), listed.terminal.into()]);
    out.extend_from_slice(&listed.age_s.to_le_bytes());
    out.extend_from_slice(&listed.idle_s.to_le_bytes());
    put_bytes(out, &listed.command[..listed.command.len().min(SHOWN_COMMAND)]);
}

fn listed<'a>(fields: &mut Fields<'a>) -> Result<Listed<'a>, FrameError> {
    Ok(Listed {
        session: fields.session()?,
        attached: fields.one_of(&[false, true])?,
        terminal: fields.one_of(&[false, true])?,
        age_s: fields.u64()?,
        idle_s: fields.u64()?,
        command: fields.bytes()?,
    })
}
