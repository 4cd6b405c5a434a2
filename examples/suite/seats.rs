//! Unit tests as they are everywhere; one of them starts threads, and what it tests is wrong.

use std::sync::Mutex;

struct Seats(Mutex<Vec<bool>>);

impl Seats {
    fn new(count: usize) -> Seats {
        Seats(Mutex::new(vec![false; count]))
    }

    fn first_free(&self) -> Option<usize> {
        self.0.lock().unwrap().iter().position(|taken| !taken)
    }

    /// Books the first free seat. It may have been booked since it was looked for.
    fn book(&self) -> Option<usize> {
        let seat = self.first_free()?;
        self.0.lock().unwrap()[seat] = true;
        Some(seat)
    }
}

#[test]
fn seats_are_booked_in_order() {
    let seats = Seats::new(2);
    assert_eq!((seats.book(), seats.book(), seats.book()), (Some(0), Some(1), None));
}

#[test]
fn two_people_never_get_the_same_seat() {
    let seats = Seats::new(2);
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| seats.book());
        (seats.book(), one.join().unwrap())
    });
    assert_ne!(one, other, "one seat, booked twice");
}
