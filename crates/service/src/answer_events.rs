//! The reports of the station to the connection of a request: at most that its answer has begun, and how the work
//! ended.

use std::mem::replace;

use tokio::sync::oneshot;

use crate::shared::AnswerTo;
use crate::station::Recipient;

/// A report of the station to a request.
#[derive(Debug)]
pub(crate) enum AnswerEvent<A> {
    /// The answer begins; another event reports when the work is over.
    Begun(A),
    /// The work is over. If the answer has begun, it is complete.
    Answered(A),
    Refused,
}

/// An event in transit, and the receiver of the next one, if there is one.
#[derive(Debug)]
struct Transmission<A> {
    event: AnswerEvent<A>,
    next: Option<oneshot::Receiver<Self>>,
}

/// The station's end.
#[derive(Debug)]
pub struct AnswerEventSender<A> {
    port: u16,
    sender: oneshot::Sender<Transmission<A>>,
}

/// The connection's end.
#[derive(Debug)]
pub(crate) struct AnswerEvents<A>(oneshot::Receiver<Transmission<A>>);

/// Both ends of the channel to the client at this port.
pub(crate) fn answer_events<A>(port: u16) -> (AnswerEventSender<A>, AnswerEvents<A>) {
    let (sender, receiver) = oneshot::channel();
    (AnswerEventSender { port, sender }, AnswerEvents(receiver))
}

impl<A: Clone + Send + 'static> Recipient<A> for AnswerEventSender<A> {
    fn begun(&mut self, answer: &A) {
        let (sender, receiver) = oneshot::channel();
        let transmission = Transmission { event: AnswerEvent::Begun(answer.clone()), next: Some(receiver) };
        // A client that disconnected in this very instant no longer waits.
        let _ = replace(&mut self.sender, sender).send(transmission);
    }
}

impl<A: Clone + Send + 'static> AnswerTo<A> for AnswerEventSender<A> {
    fn port(&self) -> u16 {
        self.port
    }

    fn answered(self, answer: A) {
        let _ = self.sender.send(Transmission { event: AnswerEvent::Answered(answer), next: None });
    }

    fn refused(self) {
        let _ = self.sender.send(Transmission { event: AnswerEvent::Refused, next: None });
    }
}

impl<A> AnswerEvents<A> {
    /// Waits for the next event; after [`AnswerEvent::Begun`], there is another.
    pub(crate) async fn next(&mut self) -> AnswerEvent<A> {
        // A worker always reports an end: it catches the handler's panics.
        let Ok(Transmission { event, next }) = (&mut self.0).await else { return AnswerEvent::Refused };
        if let Some(next) = next {
            self.0 = next;
        }
        event
    }
}
