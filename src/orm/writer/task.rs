//! What a caller has the writer do, and how he learns what came of it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::orm::{Database, DbError, Kind};

/// How long a caller waits.
const WAIT: Duration = Duration::from_secs(15);

/// Something to do in the writer's transaction.
pub(super) trait Work: Send {
    /// Does it, as a part that can fail alone.
    fn work(&mut self, database: &Database);

    /// The transaction is committed, or failed as a whole.
    fn committed(self: Box<Self>, failed: Option<&DbError>);
}

/// A caller's work and the way back to him.
pub(super) struct Task<T> {
    work: Option<Job<T>>,
    result: Option<Result<T, DbError>>,
    back: SyncSender<Result<T, DbError>>,
}

type Job<T> = Box<dyn FnOnce(&Database) -> Result<T, DbError> + Send>;

/// Where the caller waits.
pub(super) struct Waiting<T>(Receiver<Result<T, DbError>>);

impl<T: Send + 'static> Task<T> {
    pub(super) fn pair(
        work: impl FnOnce(&Database) -> Result<T, DbError> + Send + 'static,
    ) -> (Box<dyn Work>, Waiting<T>) {
        let (back, result) = sync_channel(1);
        let task: Self = Self { work: Some(Box::new(work)), result: None, back };
        (Box::new(task), Waiting(result))
    }

    /// The error of a writer that has ended.
    pub(super) fn nobody() -> DbError {
        DbError::Shared {
            kind: Kind::Busy,
            text: "nothing is written any more: larder is stopping".to_owned(),
        }
    }
}

impl<T: Send + 'static> Work for Task<T> {
    fn work(&mut self, database: &Database) {
        if let Some(work) = self.work.take() {
            self.result = Some(database.part(work));
        }
    }

    fn committed(self: Box<Self>, failed: Option<&DbError>) {
        let result = match (failed, self.result) {
            (Some(error), _) => Err(error.shared()),
            (None, Some(result)) => result,
            (None, None) => return,
        };
        if self.back.try_send(result).is_err() {
            tracing::debug!("who asked for a write did not wait for it");
        }
    }
}

impl<T: Send + 'static> Waiting<T> {
    pub(super) fn wait(self) -> Result<T, DbError> {
        match self.0.recv_timeout(WAIT) {
            Ok(result) => result,
            Err(RecvTimeoutError::Disconnected) => Err(Task::<T>::nobody()),
            Err(RecvTimeoutError::Timeout) => {
                let text = "the database did not answer in time; what was begun may still be done".to_owned();
                Err(DbError::Shared { kind: Kind::Slow, text })
            }
        }
    }
}
