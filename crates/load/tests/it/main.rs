//! The generator through its public interface: whole runs over real sockets. Laws of its bookkeeping are tested in virtual
//! time, beside the ledger.

mod echo;
mod overload;
mod run;
mod sessions;
mod threads;
mod timing;
mod wire;
