//! The objects that tests share: made here, lent, aged, replaced and destroyed here. Nobody else owns one.
//!
//! Tests of a scenario share one object per kind, for as long as the host lives. A combiner has a pool of each kind:
//! `count` objects, each replaced by a new one after it was lent `life` times; both are drawn from distributions of
//! the configuration, with a generator of the pool's own. Which object of a pool an iteration gets is one draw from
//! that iteration's own stream, so that an iteration draws the same numbers whatever runs beside it.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

use waylay_abi::KindInfo;
use waylay_dist::{Dist, Seed, Spec, WorkerRng};
use waylay_page::ObjectNumber;

use crate::description::text;
use crate::plan::PoolPlan;

/// Kinds that the page can tell apart.
const MOST_KINDS: usize = 255;

/// What the loaded plugins can make, in the order of their numbers.
#[derive(Default)]
pub(crate) struct Kinds(Vec<(String, &'static KindInfo)>);

impl Kinds {
    /// Adds a kind; the first plugin that provides a name wins.
    pub(crate) fn provide(&mut self, info: &'static KindInfo) {
        let name = text(info.name);
        if self.0.len() < MOST_KINDS && !self.0.iter().any(|(known, _)| *known == name) {
            self.0.push((name, info));
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// One pool of every kind.
pub(crate) struct SharedObjects {
    pools: Vec<Pool>,
}

struct Pool {
    kind: u8,
    name: String,
    info: &'static KindInfo,
    /// Without settings there is one object, for ever.
    settings: Option<Settings>,
    state: Mutex<Members>,
}

/// How many objects there are, and how often each is lent before it is replaced.
struct Settings {
    count: Dist,
    life: Dist,
}

struct Members {
    rng: WorkerRng,
    /// Objects that are lent.
    lent: Vec<Member>,
    /// Objects that were replaced and are still held.
    replaced: Vec<Member>,
    made: u32,
}

struct Member {
    object: *mut c_void,
    number: u32,
    loans_left: u64,
    holders: u32,
}

// SAFETY: the object pointer is only handed out and compared; the kind's provider promises that its objects can be
// used by several tests at once, which is what a shared kind is.
unsafe impl Send for Members {}

/// A loan: the object, and its number in the page.
#[derive(Clone, Copy)]
pub(crate) struct Loan {
    pub(crate) object: *mut c_void,
    pub(crate) number: u32,
}

impl SharedObjects {
    /// The objects that the tests of a scenario share.
    pub(crate) fn single(kinds: &Kinds, seed: Seed) -> SharedObjects {
        Self::new(kinds, seed, "", |_| Ok(None)).expect("nothing was configured")
    }

    /// The pools of a combiner.
    pub(crate) fn pools(
        kinds: &Kinds,
        seed: Seed,
        combiner: &str,
        plans: &BTreeMap<String, PoolPlan>,
    ) -> Result<SharedObjects, String> {
        if let Some(unknown) = plans.keys().find(|kind| !kinds.0.iter().any(|(name, _)| name == *kind)) {
            return Err(format!("no plugin provides shared objects of kind `{unknown}`"));
        }
        Self::new(kinds, seed, combiner, |kind| {
            let plan = plans.get(kind).cloned().unwrap_or_default();
            let dist =
                |spec: &Spec| Dist::new(spec).map_err(|error| format!("objects of kind `{kind}`: {error}"));
            Ok(Some(Settings { count: dist(&plan.count)?, life: dist(&plan.life)? }))
        })
    }

    fn new(
        kinds: &Kinds,
        seed: Seed,
        owner: &str,
        settings: impl Fn(&str) -> Result<Option<Settings>, String>,
    ) -> Result<SharedObjects, String> {
        let pool = |(index, (name, info)): (usize, &(String, &'static KindInfo))| {
            let rng = seed.worker(&format!("pool {owner} {name}"), 0);
            Ok(Pool {
                kind: index as u8,
                name: name.clone(),
                info,
                settings: settings(name)?,
                state: Mutex::new(Members { rng, lent: Vec::new(), replaced: Vec::new(), made: 0 }),
            })
        };
        Ok(SharedObjects { pools: kinds.0.iter().enumerate().map(pool).collect::<Result<_, String>>()? })
    }

    /// Lends an object of that kind, or none when nobody provides it or its maker could not. `pick` draws a number.
    pub(crate) fn acquire(&self, name: &CStr, pick: impl FnOnce() -> u64) -> Option<Loan> {
        let pool = self.pools.iter().find(|pool| pool.name.as_bytes() == name.to_bytes())?;
        let mut members = pool.members();
        if members.lent.is_empty() {
            let count = match &pool.settings {
                Some(settings) => settings.count.sample_int(&mut members.rng).clamp(1, 1 << 16) as usize,
                None => 1,
            };
            for _ in 0..count {
                pool.make(&mut members)?;
            }
        }
        let size = members.lent.len();
        // The high half of the product is uniform enough: a pool is much smaller than 2^64.
        let chosen = if size == 1 && pool.settings.is_none() {
            0
        } else {
            ((u128::from(pick()) * size as u128) >> 64) as usize
        };
        let member = &mut members.lent[chosen];
        member.holders += 1;
        member.loans_left = member.loans_left.saturating_sub(1);
        let loan = Loan { object: member.object, number: pool.number(member.number) };
        if member.loans_left == 0 {
            let old = members.lent.swap_remove(chosen);
            members.replaced.push(old);
            // When no successor can be made the pool shrinks; when it is empty the next loan tries again.
            let _ = pool.make(&mut members);
        }
        Some(loan)
    }

    /// Takes an object back; destroys it when it was replaced and this was its last holder.
    pub(crate) fn release(&self, object: *mut c_void) {
        for pool in &self.pools {
            let mut members = pool.members();
            if let Some(member) = members.lent.iter_mut().find(|member| member.object == object) {
                member.holders -= 1;
                return;
            }
            let Some(place) = members.replaced.iter().position(|member| member.object == object) else {
                continue;
            };
            members.replaced[place].holders -= 1;
            if members.replaced[place].holders == 0 {
                let old = members.replaced.swap_remove(place);
                drop(members);
                pool.destroy(old);
            }
            return;
        }
    }

    /// Begins anew for a schedule, of which nothing is left: what is made depends on its number alone.
    pub(crate) fn renew(&self, run: u64) {
        for pool in &self.pools {
            let mut members = pool.members();
            members.rng.begin(run);
            members.made = 0;
        }
    }

    /// Destroys all objects; no test may hold one any more.
    pub(crate) fn destroy_all(&self) {
        for pool in &self.pools {
            let mut members = pool.members();
            let old: Vec<Member> = std::mem::take(&mut members.lent)
                .into_iter()
                .chain(std::mem::take(&mut members.replaced))
                .collect();
            drop(members);
            old.into_iter().for_each(|member| pool.destroy(member));
        }
    }
}

impl Pool {
    fn members(&self) -> std::sync::MutexGuard<'_, Members> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self, number: u32) -> u32 {
        ObjectNumber { kind: self.kind, number }.to_word()
    }

    fn make(&self, members: &mut Members) -> Option<()> {
        // SAFETY: the contract lets the host make objects at any time.
        let object = unsafe { self.info.create?() };
        if object.is_null() {
            return None;
        }
        let loans_left = match &self.settings {
            Some(settings) => settings.life.sample_int(&mut members.rng).max(1) as u64,
            None => u64::MAX,
        };
        members.made += 1;
        members.lent.push(Member { object, number: members.made, loans_left, holders: 0 });
        Some(())
    }

    fn destroy(&self, member: Member) {
        if let Some(destroy) = self.info.destroy {
            // SAFETY: the object came from this kind's `create` and nobody holds it any more.
            unsafe { destroy(member.object) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicI64, Ordering};

    static ALIVE: AtomicI64 = AtomicI64::new(0);

    unsafe extern "C" fn create() -> *mut c_void {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Box::into_raw(Box::new(0u64)).cast()
    }

    unsafe extern "C" fn destroy(object: *mut c_void) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: made by `create`.
        drop(unsafe { Box::from_raw(object.cast::<u64>()) });
    }

    fn kinds() -> Kinds {
        let info = KindInfo {
            size: size_of::<KindInfo>() as u32,
            flags: 0,
            name: c"box".as_ptr(),
            about: std::ptr::null(),
            create: Some(create),
            destroy: Some(destroy),
        };
        let mut kinds = Kinds::default();
        kinds.provide(Box::leak(Box::new(info)));
        kinds
    }

    fn plans(count: &str, life: &str) -> BTreeMap<String, PoolPlan> {
        let plan = PoolPlan { count: count.parse().unwrap(), life: life.parse().unwrap() };
        BTreeMap::from([("box".to_owned(), plan)])
    }

    /// One test, because all count the same objects.
    #[test]
    fn objects_are_lent_aged_replaced_and_destroyed_when_nobody_holds_them() {
        let seed = Seed::new(1);
        let single = SharedObjects::single(&kinds(), seed);
        let first = single.acquire(c"box", || 0).unwrap();
        let second = single.acquire(c"box", || 7).unwrap();
        assert_eq!((first.object, first.number), (second.object, second.number), "one object for all");
        assert!(single.acquire(c"bag", || 0).is_none(), "nobody provides it");
        single.release(first.object);
        single.release(second.object);
        assert_eq!(ALIVE.load(Ordering::SeqCst), 1);
        single.destroy_all();
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0);

        let fixed = plans("{ uniform = { min = 3, max = 3 } }", "{ uniform = { min = 2, max = 2 } }");
        let pool = SharedObjects::pools(&kinds(), seed, "pot", &fixed).unwrap();
        let held: Vec<Loan> = (0..2).map(|_| pool.acquire(c"box", || 0).unwrap()).collect();
        assert_eq!(held[0].number, held[1].number);
        assert_eq!(ALIVE.load(Ordering::SeqCst), 4, "three, and the one that was replaced but is still held");
        let third = pool.acquire(c"box", || 0).unwrap();
        assert_ne!(third.object, held[0].object, "what was replaced is lent to nobody");
        pool.release(held[0].object);
        assert_eq!(ALIVE.load(Ordering::SeqCst), 4);
        pool.release(held[1].object);
        assert_eq!(ALIVE.load(Ordering::SeqCst), 3, "the last holder gave it back");
        let numbers: HashSet<u32> = (0..300)
            .map(|step| {
                let loan = pool.acquire(c"box", || step * (u64::MAX / 300)).unwrap();
                pool.release(loan.object);
                loan.number
            })
            .collect();
        assert_eq!(numbers.len(), 150 + 1, "two loans each; one had a loan before");
        pool.release(third.object);
        pool.destroy_all();
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0);

        let unknown = BTreeMap::from([("bag".to_owned(), PoolPlan::default())]);
        let error = SharedObjects::pools(&kinds(), seed, "pot", &unknown).err().unwrap();
        assert!(error.contains("`bag`"), "{error}");
    }
}
