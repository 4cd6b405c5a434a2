//! Leaks a known number of boxes, with strings and threads coming and going around it.

#[inline(never)]
pub fn forget_box() {
    std::hint::black_box(Box::leak(Box::new([7u8; 200])));
}

fn main() {
    for round in 0..20_000usize {
        forget_box();
        let text: String = std::iter::repeat_n('t', round % 400).collect();
        std::hint::black_box(text);
        if round % 1000 == 0 {
            std::thread::spawn(move || std::hint::black_box(vec![round; 1000]).len()).join().unwrap();
        }
    }
}
