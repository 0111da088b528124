//! x
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: u64 = a[1].parse().unwrap();
    let t = std::time::Instant::now();
    let c = bench::Corpus::new(1, n);
    let s = t.elapsed();
    let bytes: usize = c.iter().map(|r| r.json.len()).sum();
    eprintln!("new {s:?} gen {:.0}/s avg {}", n as f64 / t.elapsed().as_secs_f64(), bytes as u64 / n);
    if a.len() > 2 {
        for r in c.iter().take(15) { println!("{}", r.json); }
    }
    let o = bench::BenchOptions { records: n, dir: a.get(3).map(Into::into), ..Default::default() };
    bench::run(&o, &mut std::io::stdout(), &mut |p| eprintln!("{p}")).unwrap();
}
