//! The files of a conversation, without disks: what either side has offered, and which bytes are due.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use crate::event::{Event, FileId, MOST_FILES, SendError, Violation};
use crate::protocol::{FileFrame, MOST_NAME, MOST_PIECE, Outcome};

/// Bytes that may be on their way to a receiver's disk.
pub(crate) const WINDOW: u64 = 4 << 20;

/// A receiver allows more once it is so much, so that not each piece costs a frame.
const LEAST_GRANT: u64 = 64 << 10;

/// What of a file is to be sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A piece of a file.
    Piece { file: u64, offset: u64, length: usize },
    /// The digest of all pieces.
    Sum { file: u64 },
}

/// The files of a conversation. Like it, they outlive connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    own: BTreeMap<u64, Own>,
    /// How many this side has offered.
    offered: u64,
    theirs: BTreeMap<u64, Theirs>,
    /// How many the peer has offered.
    heard: u64,
    /// What became of the peer's last files. It may ask for that again on another connection.
    settled: VecDeque<(u64, Outcome)>,
    /// What became of files and is yet to be said.
    due: VecDeque<(u64, Outcome)>,
    /// The talk ends, and with it all files.
    is_closed: bool,
}

#[derive(Clone, Debug)]
struct Own {
    name: String,
    size: u64,
    is_withdrawn: bool,
    /// The notices sent on this connection.
    said: SentNotices,
    /// The next byte to send, once the peer has said on this connection where to begin.
    next: Option<u64>,
    /// Bytes that were sent, on this connection or before.
    sent: u64,
    /// Up to where the peer allows it.
    through: u64,
}

/// Which notices of a file this side has sent on the current connection.
#[derive(Clone, Copy, Debug, Default)]
struct SentNotices {
    offer: bool,
    withdrawal: bool,
    sum: bool,
}

#[derive(Clone, Debug)]
struct Theirs {
    size: u64,
    is_taken: bool,
    /// Bytes that have come.
    received: u64,
    /// Bytes that are on the disk.
    written: u64,
    /// Up to where the peer may send on this connection.
    granted: Option<u64>,
    is_summed: bool,
}

impl Theirs {
    /// The bytes that are missing and up to where the peer may send, where it is time to say so.
    fn want(&self) -> Option<(u64, u64)> {
        let through = self.written.saturating_add(WINDOW).min(self.size);
        let is_due = match self.granted {
            None => true,
            Some(granted) => through - granted >= LEAST_GRANT || (through == self.size && granted < through),
        };
        (self.is_taken && !self.is_summed && is_due).then_some((self.received, through))
    }
}

impl Files {
    /// Offers a file; its number.
    pub(crate) fn offer(&mut self, name: String, size: u64) -> Result<u64, SendError> {
        if self.is_closed {
            return Err(SendError::Over);
        }
        if self.own.len() >= MOST_FILES {
            return Err(SendError::TooManyFiles);
        }
        debug_assert!(name.len() <= MOST_NAME, "names are cut before");
        self.offered += 1;
        let said = SentNotices::default();
        self.own.insert(
            self.offered,
            Own { name, size, is_withdrawn: false, said, next: None, sent: 0, through: 0 },
        );
        Ok(self.offered)
    }

    /// Takes a file of the peer's; its size. `None` where it is not offered, or not any more.
    pub(crate) fn take(&mut self, file: u64) -> Option<u64> {
        let theirs = self.theirs.get_mut(&file).filter(|it| !it.is_taken)?;
        theirs.is_taken = true;
        Some(theirs.size)
    }

    /// This many more bytes of a file are on the disk; how many are in all.
    pub(crate) fn written(&mut self, file: u64, bytes: u64) -> Option<u64> {
        let theirs = self.theirs.get_mut(&file)?;
        theirs.written += bytes;
        Some(theirs.written)
    }

    /// Is done with a file of the peer's; whether it was not before.
    pub(crate) fn settle(&mut self, file: u64, outcome: Outcome) -> bool {
        let was_open = self.theirs.remove(&file).is_some();
        if was_open {
            self.settled.push_back((file, outcome));
            if self.settled.len() > MOST_FILES {
                self.settled.pop_front();
            }
            self.due.push_back((file, outcome));
            // The peer has heard of earlier files, because it has few files open at once.
            self.due.retain(|due| self.settled.contains(due));
        }
        was_open
    }

    /// Takes back the offer of a file; whether it was open.
    pub(crate) fn withdraw(&mut self, file: u64) -> bool {
        let own = self.own.get_mut(&file).filter(|own| !own.is_withdrawn);
        own.map(|own| own.is_withdrawn = true).is_some()
    }

    /// Ends all files with the talk; which were open.
    pub(crate) fn close(&mut self) -> Vec<FileId> {
        self.is_closed = true;
        self.due.clear();
        let own = std::mem::take(&mut self.own).into_iter().filter(|(_, own)| !own.is_withdrawn);
        let theirs = std::mem::take(&mut self.theirs).into_keys().map(FileId::Peer);
        own.map(|(file, _)| FileId::Own(file)).chain(theirs).collect()
    }

    /// A new connection exists.
    pub(crate) fn connected(&mut self) {
        for own in self.own.values_mut() {
            (own.said, own.next, own.through) = (SentNotices::default(), None, 0);
        }
        self.theirs.values_mut().for_each(|theirs| theirs.granted = None);
        // The peer offers again what it does not know to be settled.
        self.due.clear();
    }

    /// The next frame that needs no bytes of a file.
    pub(crate) fn outgoing(&mut self) -> Option<(u64, FileFrame)> {
        if let Some((file, outcome)) = self.due.pop_front() {
            return Some((file, FileFrame::Settle(outcome)));
        }
        for (file, theirs) in &mut self.theirs {
            if let Some((from, through)) = theirs.want() {
                theirs.granted = Some(through);
                return Some((*file, FileFrame::Want { from, through }));
            }
        }
        for (file, own) in &mut self.own {
            if !std::mem::replace(&mut own.said.offer, true) {
                return Some((*file, FileFrame::Offer { size: own.size, name: own.name.clone() }));
            }
            if own.is_withdrawn && !std::mem::replace(&mut own.said.withdrawal, true) {
                return Some((*file, FileFrame::Withdraw));
            }
        }
        None
    }

    /// What of a file is to be sent next.
    pub(crate) fn need(&self) -> Option<Need> {
        self.own.iter().filter(|(_, own)| !own.is_withdrawn).find_map(|(file, own)| {
            let (file, offset) = (*file, own.next?);
            let length = own.through.saturating_sub(offset).min(MOST_PIECE as u64) as usize;
            match length {
                0 if offset == own.size && !own.said.sum => Some(Need::Sum { file }),
                0 => None,
                _ => Some(Need::Piece { file, offset, length }),
            }
        })
    }

    /// The frame of the bytes that were needed, if they still are.
    pub(crate) fn piece(&mut self, needed: Need, bytes: Vec<u8>) -> Option<(u64, FileFrame)> {
        let Need::Piece { file, offset, length } = needed else { return None };
        let own = self.own.get_mut(&file).filter(|own| !own.is_withdrawn && own.next == Some(offset))?;
        debug_assert_eq!(bytes.len(), length, "what was needed was read");
        let next = offset + length as u64;
        (own.next, own.sent) = (Some(next), own.sent.max(next));
        Some((file, FileFrame::Piece { offset, bytes }))
    }

    /// The digest of a file is said on this connection.
    pub(crate) fn summed(&mut self, file: u64) {
        if let Some(own) = self.own.get_mut(&file) {
            own.said.sum = true;
        }
    }

    /// Takes what the peer says of a file.
    pub(crate) fn handle(&mut self, file: u64, frame: FileFrame) -> Result<Option<Event>, Violation> {
        if self.is_closed {
            return Ok(None);
        }
        match frame {
            FileFrame::Offer { size, name } => return self.offered(file, size, name),
            FileFrame::Want { .. } | FileFrame::Settle(_) if !(1..=self.offered).contains(&file) => {
                return Err(Violation::NoFile(file));
            }
            FileFrame::Want { from, through } => return self.wanted(file, from, through),
            FileFrame::Settle(outcome) => {
                let open = self.own.remove(&file).filter(|own| !own.is_withdrawn);
                return Ok(open.map(|_| Event::Settled { file: FileId::Own(file), outcome }));
            }
            _ if !(1..=self.heard).contains(&file) => return Err(Violation::NoFile(file)),
            _ => {}
        }
        let Some(theirs) = self.theirs.get_mut(&file) else {
            // It was settled meanwhile; on another connection the peer may not have heard so.
            if frame == FileFrame::Withdraw {
                self.say_again(file);
            }
            return Ok(None);
        };
        match frame {
            FileFrame::Piece { offset, bytes } => {
                let end = offset.saturating_add(bytes.len() as u64);
                if offset != theirs.received || theirs.granted.is_none_or(|granted| end > granted) {
                    return Err(Violation::Piece { file, offset });
                }
                theirs.received = end;
                Ok(Some(Event::Piece { file, bytes }))
            }
            FileFrame::Sum(digest) if theirs.granted.is_some() && theirs.received == theirs.size => {
                let is_first = !std::mem::replace(&mut theirs.is_summed, true);
                Ok(is_first.then_some(Event::Sum { file, digest }))
            }
            FileFrame::Sum(_) => Err(Violation::Piece { file, offset: theirs.received }),
            _ => {
                self.settle(file, Outcome::Withdrawn);
                Ok(Some(Event::Settled { file: FileId::Peer(file), outcome: Outcome::Withdrawn }))
            }
        }
    }

    fn offered(&mut self, file: u64, size: u64, name: String) -> Result<Option<Event>, Violation> {
        if file != self.heard + 1 {
            if !(1..=self.heard).contains(&file) {
                return Err(Violation::NoFile(file));
            }
            if !self.theirs.contains_key(&file) {
                self.say_again(file);
            }
            return Ok(None);
        }
        if self.theirs.len() >= MOST_FILES {
            return Err(Violation::TooManyFiles);
        }
        self.heard = file;
        let theirs =
            Theirs { size, is_taken: false, received: 0, written: 0, granted: None, is_summed: false };
        self.theirs.insert(file, theirs);
        Ok(Some(Event::Offered { file, name, size }))
    }

    fn say_again(&mut self, file: u64) {
        let known = self.settled.iter().find(|(settled, _)| *settled == file).copied();
        // What is no longer known, the peer has heard: it has few files open at once.
        self.due.extend(known.filter(|known| !self.due.contains(known)));
    }

    fn wanted(&mut self, file: u64, from: u64, through: u64) -> Result<Option<Event>, Violation> {
        let Some(own) = self.own.get_mut(&file) else { return Ok(None) };
        if from > own.sent || from > through || through > own.size || through < own.through {
            return Err(Violation::Piece { file, offset: from });
        }
        own.next.get_or_insert(from);
        own.through = through;
        Ok((!own.is_withdrawn).then_some(Event::Progress { file: FileId::Own(file), bytes: from }))
    }
}
