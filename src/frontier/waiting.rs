//! What waits, and whether it is worth waiting for.

use crate::base::clock::Timestamp;
use crate::store::{Batch, Error, View as _};
use crate::urls::PageUrl;

use super::lease::first_host;
use super::rows::Host;
use super::tables::{LATER, SCHEDULE};
use super::{Frontier, Reason};

impl Host {
    /// Its name cannot be resolved, and it has never answered: most likely there is no such host.
    /// A host that has answered may have lost its name for a while.
    #[must_use]
    pub fn is_nowhere(&self) -> bool {
        self.trouble == Some(Reason::Dns) && self.answered == 0
    }
}

impl Frontier {
    /// Returns when the next request may be sent; none if nothing waits.
    pub fn next_due(&self, batch: &Batch) -> Result<Option<Timestamp>, Error> {
        let host = first_host(batch)?.map(|(due, _)| due);
        Ok(self.next_of_others(batch)?.into_iter().chain(host).min())
    }

    /// Returns the same without hosts that are nowhere. A run that has nothing else to do ends: the
    /// next one asks for their names again.
    pub fn next_worth_waiting(&self, batch: &Batch) -> Result<Option<Timestamp>, Error> {
        let mut next = self.next_of_others(batch)?;
        for entry in batch.rows(SCHEDULE)? {
            let (due, host) = entry?.key()?;
            if next.is_some_and(|next| next <= due) {
                break;
            }
            if !self.hosts.row(batch, host)?.is_nowhere() {
                next = Some(due);
            }
        }
        Ok(next)
    }

    /// The same of what is not in the schedule of hosts.
    fn next_of_others(&self, batch: &Batch) -> Result<Option<Timestamp>, Error> {
        let later = batch.first(LATER)?.map(|entry| entry.key().map(|(due, _)| due)).transpose()?;
        let again = self.next_revisit(batch)?;
        let group = self.groups.next_due();
        Ok(later.into_iter().chain(group).chain(again).min())
    }

    /// Lets the name of a host be asked for at once if it could not be resolved. Whoever names a
    /// seed again may have mended it, and to ask costs the host nothing.
    pub(super) fn ask_name_again(
        &mut self,
        batch: &mut Batch,
        seed: &PageUrl,
    ) -> Result<(), Error> {
        let Some(host) = self.hosts.known(batch, &seed.host_key())? else { return Ok(()) };
        let live = self.hosts.get(batch, host)?;
        if live.row.trouble == Some(Reason::Dns) && live.row.blocked_until.0 != 0 {
            live.row.blocked_until = Timestamp(0);
            live.dirty = true;
            self.reschedule(batch, host)?;
        }
        Ok(())
    }
}
