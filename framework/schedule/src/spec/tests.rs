use super::*;

fn parse(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    text.parse::<Spec>().map_or_else(|error| error.to_string(), |spec| panic!("{text} is {spec}"))
}

#[test]
fn a_printed_spec_parses_to_itself() {
    for text in [
        "random",
        "pos",
        "dfs",
        "pb",
        "db:bound=2",
        "surw",
        "surw:focus=all",
        "pct",
        "pct:depth=3",
        "pct:depth=auto,greatest=7,steps=100",
        "pct:confidence=0.99,runs=500,phases=idle,final-wait=off,starvation=off",
        "pct:depth=2,phases=none",
        "rpro",
        "rpro:radius=10,depth=4",
        "rpro:runs=9990",
        "stride",
        "stride:max=2",
        "stride:ratio=6.6",
        "stride:orders=2,runs=9_990",
        "noise",
        "noise:one-in=20,sleep=3ms",
        "portfolio",
        "portfolio:pct:depth=2,steps=10+stride:max=2+dfs",
        "portfolio:pct:depth=2*3+surw*1+pos*1000",
    ] {
        let spec = parse(text);
        assert_eq!(parse(&spec.to_string()), spec, "{text} prints as {spec}");
    }
}

#[test]
fn options_reach_the_strategy() {
    assert_eq!(parse("portfolio"), Spec::default());
    assert_eq!(parse(" rpro : radius = 10 "), Spec::RPro(RProOptions { radius: 10, ..Default::default() }));
    let Spec::Pct(options) = parse("pct:confidence=0.9") else { panic!() };
    assert_eq!(options.depth, Depth::Confident { confidence: 0.9, runs: PLANNED_RUNS });
    let Ok(Spec::Stride(limit)) = Spec::parse("stride", 77) else { panic!() };
    assert_eq!(limit, StrideLimit::Confident { confidence: 0.95, runs: 77, orders: 1 });
    let Spec::Noise(options) = parse("noise:sleep=2s") else { panic!() };
    assert_eq!(options.longest, Duration::from_secs(2));
    let Spec::Portfolio(members) = parse("portfolio") else { panic!() };
    assert_eq!(members.len(), super::MEMBERS.len());
    let weights: Vec<u32> = members.iter().map(|&(_, weight)| weight).collect();
    assert_eq!(weights, super::MEMBERS.map(|(_, weight)| weight));
    let Spec::Portfolio(members) = parse("portfolio: pct * 3 + pos") else { panic!() };
    assert_eq!(members, [(parse("pct"), 3), (Spec::Pos, 1)]);
}

#[test]
fn errors_say_what_to_write() {
    assert!(error("ptc").contains("did you mean \"pct\"?"));
    assert!(error("strid:max=2").contains("did you mean \"stride\"?"));
    assert!(!error("x").contains("did you mean"));
    assert!(error("").contains("known are pct, rpro"));
    assert!(error("pct:deph=3").contains("did you mean \"depth\"?"));
    assert!(error("random:depth=3").contains("it has none"));
    assert_eq!(error("pct:depth=0"), "pct: depth=\"0\" is not auto or a whole number from 1");
    assert_eq!(error("pct:depth=-1"), "pct: depth=\"-1\" is not auto or a whole number from 1");
    assert!(error("pct:confidence=95").contains("between 0 and 1"));
    assert!(error("pct:depth=3,runs=10").contains("cannot be combined"));
    assert!(error("pct:depth=3,greatest=10").contains("cannot be combined"));
    assert!(error("stride:max=2,ratio=3").contains("cannot be combined"));
    assert!(error("stride:ratio=inf").contains("above 0"));
    assert!(error("pct:depth").contains("key=value"));
    assert!(error("pct:depth=1,depth=2").contains("twice"));
    assert!(error("pct:phases=some").contains("one of joined, idle, none"));
    assert!(error("pb:bound=99999999999").contains("whole number"));
    assert!(error("noise:sleep=5").contains("such as 500us"));
    assert!(error("portfolio:pct+").contains("unknown strategy \"\""));
    for weight in ["0", "1001", "-1", "x", ""] {
        assert!(error(&format!("portfolio:pct*{weight}+pos")).contains("from 1 to 1000"), "{weight}");
    }
    assert!(error("portfolio:pct+portfolio").contains("member of a portfolio"));
}

#[test]
fn every_name_builds() {
    for name in NAMES {
        let mut strategy = parse(name).build();
        let run = crate::run::Run::default();
        let parameters = crate::strategy::Strategy::plan(&mut strategy, run).unwrap();
        // What a run is stored under builds the strategy that repeats it.
        parse(&parameters.strategy);
    }
}
