//! LMDB (C): writers move money between accounts in transactions while readers sum all accounts in snapshots of their own.
//! Every sum is the same, whatever is being written.

use lmdb_master_sys as lmdb;
use std::ffi::{CStr, CString};
use std::ptr;
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure, ensure_eq};

/// Accounts in the database.
const ACCOUNTS: u64 = 64;
/// What each begins with.
const BALANCE: i64 = 1_000;
/// Most bytes of the database: it holds little, but old pages live as long as a reader may need them.
const MAP_SIZE: usize = 64 << 20;

/// One database for the whole test.
pub struct Database {
    open: Option<Open>,
    writes: Distribution<f64>,
    transfers: Distribution<u64>,
    account: Distribution<u64>,
    amount: Distribution<i64>,
    aborts: Distribution<f64>,
}

struct Open {
    env: *mut lmdb::MDB_env,
    accounts: lmdb::MDB_dbi,
    /// Removed with everything inside when the test ends.
    _folder: tempfile::TempDir,
}

// SAFETY: an LMDB environment serves any thread; transactions are begun and ended on one thread each.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

fn well(code: i32, what: &str) -> Outcome {
    if code == lmdb::MDB_SUCCESS {
        return Ok(());
    }
    // SAFETY: LMDB returns a static text for every code.
    let text = unsafe { CStr::from_ptr(lmdb::mdb_strerror(code)) }.to_string_lossy();
    Err(Failed::new(format_args!("{what}: {text}")))
}

/// A transaction; aborted unless it is committed.
struct Transaction<'o> {
    raw: *mut lmdb::MDB_txn,
    open: &'o Open,
}

impl Open {
    fn create() -> Result<Open, Failed> {
        let folder = tempfile::tempdir()?;
        let path = CString::new(folder.path().as_os_str().as_encoded_bytes())?;
        let mut open = Open { env: ptr::null_mut(), accounts: 0, _folder: folder };
        // SAFETY: the handle is made first, set up, and then opened; a failure closes it through `drop`.
        unsafe {
            well(lmdb::mdb_env_create(&mut open.env), "mdb_env_create")?;
            well(lmdb::mdb_env_set_mapsize(open.env, MAP_SIZE), "mdb_env_set_mapsize")?;
            // What is tested is what threads see, not what a disk keeps.
            let flags = lmdb::MDB_NOTLS | lmdb::MDB_NOSYNC;
            well(lmdb::mdb_env_open(open.env, path.as_ptr(), flags, 0o600), "mdb_env_open")?;
        }
        let begun = open.begin(0)?;
        let mut accounts = 0;
        // SAFETY: the transaction is alive; no name means the main database.
        well(unsafe { lmdb::mdb_dbi_open(begun.raw, ptr::null(), 0, &mut accounts) }, "mdb_dbi_open")?;
        begun.commit()?;
        open.accounts = accounts;
        let fill = open.begin(0)?;
        (0..ACCOUNTS).try_for_each(|account| fill.put(account, BALANCE))?;
        fill.commit()?;
        Ok(open)
    }

    fn begin(&self, flags: u32) -> Result<Transaction<'_>, Failed> {
        let mut raw = ptr::null_mut();
        // SAFETY: the environment is open.
        well(unsafe { lmdb::mdb_txn_begin(self.env, ptr::null_mut(), flags, &mut raw) }, "mdb_txn_begin")?;
        Ok(Transaction { raw, open: self })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.env.is_null() {
            // SAFETY: no transaction is left: they borrow `self`.
            unsafe { lmdb::mdb_env_close(self.env) };
        }
    }
}

impl Transaction<'_> {
    fn get(&self, account: u64) -> Result<i64, Failed> {
        let mut bytes = account.to_be_bytes();
        let mut key = lmdb::MDB_val { mv_size: 8, mv_data: bytes.as_mut_ptr().cast() };
        let mut value = lmdb::MDB_val { mv_size: 0, mv_data: ptr::null_mut() };
        // SAFETY: the transaction is alive and the key outlives the call.
        well(unsafe { lmdb::mdb_get(self.raw, self.open.accounts, &mut key, &mut value) }, "mdb_get")?;
        ensure_eq!(value.mv_size, 8, "bytes of account {account}");
        // SAFETY: the value has 8 bytes, at any alignment, and stays until the transaction ends or writes.
        Ok(unsafe { value.mv_data.cast::<i64>().read_unaligned() })
    }

    fn put(&self, account: u64, balance: i64) -> Outcome {
        let (mut bytes, mut balance) = (account.to_be_bytes(), balance.to_ne_bytes());
        let mut key = lmdb::MDB_val { mv_size: 8, mv_data: bytes.as_mut_ptr().cast() };
        let mut value = lmdb::MDB_val { mv_size: 8, mv_data: balance.as_mut_ptr().cast() };
        // SAFETY: the transaction is alive and may write; key and value outlive the call.
        well(unsafe { lmdb::mdb_put(self.raw, self.open.accounts, &mut key, &mut value, 0) }, "mdb_put")
    }

    fn commit(mut self) -> Outcome {
        let raw = std::mem::replace(&mut self.raw, ptr::null_mut());
        // SAFETY: the transaction is alive and given up.
        well(unsafe { lmdb::mdb_txn_commit(raw) }, "mdb_txn_commit")
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the transaction is alive and given up.
            unsafe { lmdb::mdb_txn_abort(self.raw) };
        }
    }
}

impl Test for Database {
    const NAME: &'static str = "database";
    const ABOUT: &'static str =
        "a reader that sees half of a transaction, or a transfer that is lost or kept after an abort";
    const PARAMS: &'static [Param] = &[
        Param::new("writes", "{ uniform = { min = 0.1, max = 0.6 } }")
            .about("part of the iterations that write"),
        Param::new("transfers", "{ exponential = { min = 1, max = 40 } }")
            .about("transfers of one transaction"),
        Param::new("account", "{ gaussian = { mean = 32, sigma = 12, min = 0, max = 63 } }")
            .about("which account"),
        Param::new("amount", "{ uniform = { min = -50, max = 50 } }").about("what is moved"),
        Param::new("aborts", "{ uniform = { min = 0.0, max = 0.3 } }")
            .about("part of the transactions that are aborted"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            open: None,
            writes: context.distribution("writes")?,
            transfers: context.distribution("transfers")?,
            account: context.distribution("account")?,
            amount: context.distribution("amount")?,
            aborts: context.distribution("aborts")?,
        })
    }

    fn on_start(&mut self, _: &Context<'_>) -> Outcome {
        self.open = Some(Open::create()?);
        Ok(())
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let Some(open) = &self.open else { return Err(Failed::new("no database")) };
        let (mut generator, writes) = (worker.generator(0), worker.draw(self.writes));
        if !generator.chance(writes) {
            return total(open);
        }
        let writing = open.begin(0)?;
        for _ in 0..worker.draw(self.transfers) {
            let (from, to) = (worker.draw(self.account) % ACCOUNTS, worker.draw(self.account) % ACCOUNTS);
            let amount = worker.draw(self.amount);
            writing.put(from, writing.get(from)? - amount)?;
            writing.put(to, writing.get(to)? + amount)?;
        }
        if !generator.chance(worker.draw(self.aborts)) {
            writing.commit()?;
        }
        Ok(())
    }

    fn on_end(&mut self, _: &Context<'_>) -> Outcome {
        self.open.take().map_or(Ok(()), |open| total(&open))
    }
}

/// A snapshot adds up.
fn total(open: &Open) -> Outcome {
    let reading = open.begin(lmdb::MDB_RDONLY)?;
    let mut sum = 0;
    for account in 0..ACCOUNTS {
        sum += reading.get(account)?;
    }
    ensure!(sum == BALANCE * ACCOUNTS as i64, "a snapshot adds up to {sum}");
    Ok(())
}
