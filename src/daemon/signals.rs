//! Signals as a stream: SIGTERM and SIGINT ask to stop, SIGHUP to read the configuration again.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// What somebody outside asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Stop; asked twice: now.
    Stop,
    /// Read the configuration again.
    Reload,
}

/// The signals of this process; from the first moment on none of them ends it by itself.
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes over the signals; needs a runtime.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one. May be dropped and called again without losing any.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal as Sent, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn the_three_signals_arrive() {
        let mut signals = Signals::new().unwrap();
        for (sent, heard) in
            [(Sent::HUP, Signal::Reload), (Sent::TERM, Signal::Stop), (Sent::INT, Signal::Stop)]
        {
            kill_process(getpid(), sent).unwrap();
            assert_eq!(signals.next().await, heard);
        }
    }
}
