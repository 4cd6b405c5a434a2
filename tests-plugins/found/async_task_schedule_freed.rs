//! needs: async-task 1.1.0
//! fixed: async-task 1.1.1
//! finds: crash within 1000
//!
//! A task that is run and ends while it is being scheduled takes the running schedule function with it (changelog of 1.1.1).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

fn main() {
    let (queue, tasks) = mpsc::channel::<async_task::Task<()>>();
    let scheduled = Arc::new(AtomicUsize::new(0));
    let schedule = {
        let scheduled = Arc::clone(&scheduled);
        let queue = std::sync::Mutex::new(queue);
        move |task| {
            queue.lock().unwrap().send(task).unwrap();
            scheduled.fetch_add(1, Ordering::SeqCst);
        }
    };
    let running = thread::spawn(move || tasks.recv().unwrap().run());
    let (task, handle) = async_task::spawn(async {}, schedule, ());
    drop(handle);
    task.schedule();
    running.join().unwrap();
    assert_eq!(scheduled.load(Ordering::SeqCst), 1);
}
