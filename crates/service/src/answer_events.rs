//! What the station reports to the connection of a request: at most that its answer has begun, and how the work ended.

use std::mem::replace;

use tokio::sync::oneshot;

use crate::floor::Recipient;
use crate::shared::AnswerTo;

/// What the station reports to a request.
#[derive(Debug)]
pub(crate) enum Verdict<A> {
    /// The answer begins; another verdict says when the work is over.
    Begun(A),
    /// The work is over. Of an answer that has begun, all is there.
    Answered(A),
    Refused,
}

/// A verdict on its way, and where the next one will come, if there is to be one.
#[derive(Debug)]
struct Word<A> {
    verdict: Verdict<A>,
    next: Option<oneshot::Receiver<Self>>,
}

/// The station's end.
#[derive(Debug)]
pub struct VerdictSender<A> {
    port: u16,
    sender: oneshot::Sender<Word<A>>,
}

/// The connection's end.
#[derive(Debug)]
pub(crate) struct Verdicts<A>(oneshot::Receiver<Word<A>>);

/// Both ends of the way to the client at this port.
pub(crate) fn verdicts<A>(port: u16) -> (VerdictSender<A>, Verdicts<A>) {
    let (sender, receiver) = oneshot::channel();
    (VerdictSender { port, sender }, Verdicts(receiver))
}

impl<A: Clone + Send + 'static> Recipient<A> for VerdictSender<A> {
    fn begun(&mut self, answer: &A) {
        let (sender, receiver) = oneshot::channel();
        let word = Word { verdict: Verdict::Begun(answer.clone()), next: Some(receiver) };
        // A client that went away in this very instant no longer waits.
        let _ = replace(&mut self.sender, sender).send(word);
    }
}

impl<A: Clone + Send + 'static> AnswerTo<A> for VerdictSender<A> {
    fn port(&self) -> u16 {
        self.port
    }

    fn answered(self, answer: A) {
        let _ = self.sender.send(Word { verdict: Verdict::Answered(answer), next: None });
    }

    fn refused(self) {
        let _ = self.sender.send(Word { verdict: Verdict::Refused, next: None });
    }
}

impl<A> Verdicts<A> {
    /// Waits for the verdict; after [`Verdict::Begun`], for the next.
    pub(crate) async fn next(&mut self) -> Verdict<A> {
        // A worker that ends without a word cannot be: it catches the handler's panics.
        let Ok(Word { verdict, next }) = (&mut self.0).await else { return Verdict::Refused };
        if let Some(next) = next {
            self.0 = next;
        }
        verdict
    }
}
