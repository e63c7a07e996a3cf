//! The thread that asks for turns at IP addresses: those of many requests at a time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::cluster::{Engine, Error, Settings, TurnAnswer, TurnOf};

use super::Common;
use super::shard::lock;

/// Wishes that are sent together.
const TOGETHER: usize = 512;

/// Wait of a request whose turn cannot be asked for.
pub(super) const UNKNOWN: Duration = Duration::from_secs(1);

/// What a request wants.
#[derive(Debug)]
pub(super) enum Wish {
    /// A turn, or the time after which to ask again.
    Take(TurnOf, oneshot::Sender<Result<Held, Duration>>),
    /// To give it back.
    End(TurnOf),
}

/// A turn that was got. It is given back wherever this ends: also on its way to a request that does
/// not wait any more.
#[derive(Debug)]
pub(super) struct Held {
    turn: TurnOf,
    wishes: Sender<Wish>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Nobody hears it after the end of the worker: then it ends by itself.
        let _ = self.wishes.send(Wish::End(self.turn));
    }
}

/// Asks until the worker is over.
pub(super) fn run(settings: &Settings, wishes: &Receiver<Wish>, common: &Common) {
    let mut engine = None;
    loop {
        let first = match wishes.recv_timeout(Duration::from_millis(200)) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) if common.is_over() => return,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let all: Vec<Wish> =
            std::iter::once(first).chain(wishes.try_iter().take(TOGETHER - 1)).collect();
        if let Err(error) = ask(&mut engine, settings, all, common) {
            tracing::warn!(%error, "turns at IP addresses cannot be asked for");
            engine = None;
        }
    }
}

/// Asks for all. Who gets no answer waits; a turn that is not given back ends by itself.
fn ask(
    engine: &mut Option<Engine>,
    settings: &Settings,
    wishes: Vec<Wish>,
    common: &Common,
) -> Result<(), Error> {
    let (mut takes, mut waiting, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for wish in wishes {
        match wish {
            Wish::Take(turn, got) => {
                takes.push(turn);
                waiting.push(got);
            }
            Wish::End(turn) => ends.push(turn),
        }
    }
    let asked = match engine {
        Some(engine) => Ok(engine),
        none => Engine::connect(settings).map(|new| none.insert(new)),
    };
    // Also if it cannot be told: then it ends by itself.
    for turn in &ends {
        lock(&common.turns).remove(&turn.token);
    }
    let asked = asked.and_then(|engine| {
        engine.end_turns(&ends, common.limits)?;
        engine.take_turns(&takes, common.limits)
    });
    let answers = match asked {
        Ok(asked) => asked,
        Err(error) => {
            for got in waiting {
                // A request that does not wait any more needs no answer.
                let _ = got.send(Err(UNKNOWN));
            }
            return Err(error);
        }
    };
    for ((turn, got), answer) in takes.into_iter().zip(waiting).zip(answers) {
        let _ = got.send(match answer {
            TurnAnswer::Got => {
                lock(&common.turns).insert(turn.token, turn);
                Ok(Held { turn, wishes: common.wishes.clone() })
            }
            TurnAnswer::After(wait) => Err(wait),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_turn_that_nobody_waits_for_any_more_is_given_back() {
        let (wishes, asked) = channel();
        let turn = TurnOf { address: 1, token: 2, shard: 3 };
        let held = || Ok(Held { turn, wishes: wishes.clone() });
        // The request ends before the answer comes, or when it has come and was not looked at.
        let (got, answer) = oneshot::channel::<Result<Held, Duration>>();
        drop(answer);
        drop(got.send(held()));
        let (got, answer) = oneshot::channel();
        assert!(got.send(held()).is_ok());
        drop(answer);
        for _ in 0..2 {
            assert!(matches!(asked.try_recv(), Ok(Wish::End(ended)) if ended == turn));
        }
        assert!(asked.try_recv().is_err());
    }
}
