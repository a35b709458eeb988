//! Lists with several conditions. Each condition has an index in the order of the list; what all of them hold is found by
//! going from one index to the next, each time straight to where the last one stands. So a list costs as many steps as
//! the conditions disagree, and never a walk over the table, whichever of them is the rare one.

use portcullis_base::Timestamp;
use portcullis_store::{ListOrder, TimeBounds};
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params_from_iter};

use crate::codec::id_at;

/// Where an item stands in its list: a time in microseconds, and an id.
pub(crate) type ListPlace = (i64, u128);

/// One condition: an index whose columns are the tenant, the condition's column if it has one, and the order of the list.
pub(crate) struct Strand {
    pub(crate) table: &'static str,
    pub(crate) index: &'static str,
    pub(crate) condition: Option<(&'static str, Value)>,
    /// The columns that the list is ordered by: the time and the id.
    pub(crate) order_by: (&'static str, &'static str),
}

impl Strand {
    /// The first place at or behind one.
    pub(crate) fn sql(&self, order: ListOrder) -> String {
        let Self { table, index, condition, order_by: (time, id) } = self;
        let condition = condition.as_ref().map_or(String::new(), |(column, _)| format!(" AND {column} = ?4"));
        let (behind, direction) = match order {
            ListOrder::NewestFirst => ("<=", " DESC"),
            ListOrder::OldestFirst => (">=", ""),
        };
        // The table of tags is its own index.
        let by = if index.is_empty() { String::new() } else { format!(" INDEXED BY {index}") };
        format!(
            "SELECT {time}, {id} FROM {table}{by} WHERE tenant = ?1{condition} AND ({time}, {id}) {behind} (?2, ?3) \
             ORDER BY {time}{direction}, {id}{direction} LIMIT 1"
        )
    }
}

/// The stretch of a list that is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) order: ListOrder,
    /// The first place that may be taken.
    first: ListPlace,
    /// The last one.
    last: ListPlace,
}

impl Stretch {
    /// What lies in `bounds` and behind `after`; `None` if that can be nothing.
    pub(crate) fn of(order: ListOrder, bounds: TimeBounds, after: Option<(Timestamp, u128)>) -> Option<Self> {
        let oldest = (bounds.since.map_or(i64::MIN, Timestamp::as_micros), u128::MIN);
        let newest = match bounds.before {
            Some(before) => (before.as_micros().checked_sub(1)?, u128::MAX),
            None => (i64::MAX, u128::MAX),
        };
        let (first, last) = match order {
            ListOrder::NewestFirst => (newest, oldest),
            ListOrder::OldestFirst => (oldest, newest),
        };
        let stretch = Self { order, first, last };
        let first = match after {
            Some((at, id)) => stretch.furthest(first, stretch.behind((at.as_micros(), id))?),
            None => first,
        };
        Some(Self { first, ..stretch }).filter(|stretch| !stretch.is_past(first))
    }

    /// Whether a place lies in it.
    pub(crate) fn holds(&self, place: ListPlace) -> bool {
        self.furthest(self.first, place) == place && !self.is_past(place)
    }

    /// The next place of the list, whether anything stands there or not.
    fn behind(&self, (at, id): ListPlace) -> Option<ListPlace> {
        match self.order {
            ListOrder::NewestFirst => {
                id.checked_sub(1).map(|id| (at, id)).or_else(|| Some((at.checked_sub(1)?, u128::MAX)))
            }
            ListOrder::OldestFirst => {
                id.checked_add(1).map(|id| (at, id)).or_else(|| Some((at.checked_add(1)?, u128::MIN)))
            }
        }
    }

    fn furthest(&self, a: ListPlace, b: ListPlace) -> ListPlace {
        match self.order {
            ListOrder::NewestFirst => a.min(b),
            ListOrder::OldestFirst => a.max(b),
        }
    }

    fn is_past(&self, place: ListPlace) -> bool {
        match self.order {
            ListOrder::NewestFirst => place < self.last,
            ListOrder::OldestFirst => place > self.last,
        }
    }
}

struct Seek<'c> {
    statement: CachedStatement<'c>,
    condition: Option<Value>,
}

impl Seek<'_> {
    fn at(&mut self, tenant: &[u8; 16], (at, id): ListPlace) -> rusqlite::Result<Option<ListPlace>> {
        let place = [Value::Blob(tenant.to_vec()), Value::Integer(at), Value::Blob(id.to_be_bytes().to_vec())];
        let values = place.into_iter().chain(self.condition.clone());
        self.statement.query_row(params_from_iter(values), |row| Ok((row.get(0)?, id_at(row, 1)?))).optional()
    }
}

/// Calls `take` with every place of the stretch that all strands hold, in order, until it says that it has enough.
pub(crate) fn places(
    conn: &Connection,
    tenant: &[u8; 16],
    strands: Vec<Strand>,
    stretch: Stretch,
    mut take: impl FnMut(ListPlace) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let mut seeks = Vec::with_capacity(strands.len());
    for strand in strands {
        let statement = conn.prepare_cached(&strand.sql(stretch.order))?;
        seeks.push(Seek { statement, condition: strand.condition.map(|(_, value)| value) });
    }
    let mut place = stretch.first;
    loop {
        // How many strands in a row hold `place`.
        let (mut agreed, mut next) = (0, 0);
        while agreed < seeks.len() {
            let Some(found) = seeks[next].at(tenant, place)? else { return Ok(()) };
            if stretch.is_past(found) {
                return Ok(());
            }
            agreed = if found == place { agreed + 1 } else { 1 };
            place = found;
            next = (next + 1) % seeks.len();
        }
        if seeks.is_empty() || !take(place)? {
            return Ok(());
        }
        match stretch.behind(place) {
            Some(behind) if !stretch.is_past(behind) => place = behind,
            _ => return Ok(()),
        }
    }
}
