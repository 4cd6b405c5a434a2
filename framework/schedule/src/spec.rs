//! Strategies by name: the text that the command line, TOML and stored runs share.
//!
//! `NAME` or `NAME:KEY=VALUE,KEY=VALUE`, for example `pct:depth=3`, `stride`, `rpro:radius=10`, `pb:bound=2`; a portfolio
//! names its members with plus signs between them, and behind an asterisk how much more of the runs one gets than another
//! until something is found: `portfolio:pct*2+pos+stride:max=2`. Keys and values are documented in
//! the options of each strategy. A [`Spec`] printed and parsed again is the same.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::any::AnyStrategy;
use crate::depth::Depth;
use crate::idiom::Idiom;
use crate::noise::{Noise, NoiseOptions};
use crate::pct::{Pct, PctOptions};
use crate::portfolio::Portfolio;
use crate::pos::Pos;
use crate::priority::{Phases, Rules};
use crate::random_walk::RandomWalk;
use crate::rpro::{RPro, RProOptions};
use crate::spec_text::{Fields, SpecError, nearest};
use crate::stride::{Stride, StrideLimit};
use crate::surw::{Selection, Surw};
use crate::systematic::{Bounding, Systematic};

/// A strategy and its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    /// `random`
    Random,
    /// `pct`
    Pct(PctOptions),
    /// `rpro`
    RPro(RProOptions),
    /// `stride`
    Stride(StrideLimit),
    /// `pos`
    Pos,
    /// `surw`
    Surw(Selection),
    /// `idiom`
    Idiom,
    /// `dfs`, `pb`, `db`
    Systematic {
        /// What is bounded.
        bounding: Bounding,
        /// The greatest bound tried.
        limit: Option<u32>,
    },
    /// `noise`
    Noise(NoiseOptions),
    /// `portfolio`: its members and their weights
    Portfolio(Vec<(Spec, u32)>),
}

/// The names, in the order they are listed to users.
pub const NAMES: &[&str] =
    &["pct", "rpro", "stride", "pos", "surw", "idiom", "random", "pb", "db", "dfs", "noise", "portfolio"];

/// Runs that a confidence refers to when nobody says how many are planned.
pub const PLANNED_RUNS: u64 = 10_000;

const CONFIDENCE: f64 = 0.95;

/// What is used when nothing is said.
///
/// The evidence, from docs/results.md (45 bugs of the zoo, 20 trials each, at most 10,000 schedules): the portfolio finds
/// all of them in all trials, as no single strategy but SURW does. PCT alone misses what needs many threads to be started
/// before any has come far, random walk and POS miss orders that are unlikely step by step, stride misses what must meet
/// at the ends of threads of different length. SURW alone finds as much, but promises nothing by depth: in the portfolio
/// PCT has a fifth of the schedules until something fails, and what it promises holds for these.
pub const DEFAULT: &str = "portfolio";

/// The members of a portfolio that names none, with their weights. Only one of them aims at a depth, so that it is known
/// whose the runs that aim at a depth are.
///
/// Half of the runs are SURW's, which needs the fewest schedules on most programs, and PCT keeps a fifth for what is promised.
/// With a fifth for each, the median schedules to a bug of the zoo were 2.2 times those of the best member (geometric mean).
pub const MEMBERS: [(&str, u32); 5] = [("pct", 2), ("surw", 5), ("pos", 1), ("stride", 1), ("random", 1)];

impl Default for Spec {
    /// What [`DEFAULT`] says.
    fn default() -> Self {
        DEFAULT.parse().unwrap_or(Spec::Random)
    }
}

impl Spec {
    /// Reads a spec; `planned_runs` stands in where it asks for a confidence without saying `runs`.
    pub fn parse(text: &str, planned_runs: u64) -> Result<Spec, SpecError> {
        let text = text.trim();
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        if name == "portfolio" {
            return Spec::parse_portfolio(rest, planned_runs);
        }
        let known = NAMES.iter().find(|known| **known == name).ok_or_else(|| SpecError::UnknownStrategy {
            name: name.to_owned(),
            hint: nearest(name, NAMES),
        })?;
        let mut fields = Fields::parse(known, rest)?;
        let spec = match name {
            "random" => Spec::Random,
            "pos" => Spec::Pos,
            "idiom" => Spec::Idiom,
            "pct" => Spec::Pct(PctOptions {
                depth: depth(&mut fields, PctOptions::default().depth, planned_runs)?,
                steps: fields.number("steps", 1)?.unwrap_or(0),
                rules: rules(&mut fields)?,
            }),
            "rpro" => Spec::RPro(RProOptions {
                radius: fields.number("radius", 1)?.unwrap_or(RProOptions::default().radius),
                depth: depth(&mut fields, RProOptions::default().depth, planned_runs)?,
                steps: fields.number("steps", 1)?.unwrap_or(0),
                rules: rules(&mut fields)?,
            }),
            "stride" => Spec::Stride(stride(&mut fields, planned_runs)?),
            "surw" => Spec::Surw(
                fields
                    .one_of("focus", &[("drawn", Selection::Drawn), ("all", Selection::All)])?
                    .unwrap_or_default(),
            ),
            "dfs" => Spec::Systematic { bounding: Bounding::None, limit: None },
            "noise" => Spec::Noise(noise(&mut fields)?),
            bounded => {
                let bounding = if bounded == "pb" { Bounding::Preemptions } else { Bounding::Delays };
                Spec::Systematic { bounding, limit: fields.number("bound", 0)? }
            }
        };
        fields.end()?;
        Ok(spec)
    }

    fn parse_portfolio(rest: &str, planned_runs: u64) -> Result<Spec, SpecError> {
        if rest.trim().is_empty() {
            let members =
                MEMBERS.iter().map(|&(name, weight)| Ok((Spec::parse(name, planned_runs)?, weight)));
            return Ok(Spec::Portfolio(members.collect::<Result<_, _>>()?));
        }
        let mut members = Vec::new();
        for text in rest.split('+') {
            let (text, weight) = match text.rsplit_once('*') {
                Some((text, weight)) => (text, weight_of(weight)?),
                None => (text, 1),
            };
            match Spec::parse(text, planned_runs)? {
                Spec::Portfolio(_) => return Err(SpecError::NestedPortfolio),
                member => members.push((member, weight)),
            }
        }
        Ok(Spec::Portfolio(members))
    }

    /// Whether it goes from one schedule to the next, and so needs every run to have the same steps.
    pub fn is_search(&self) -> bool {
        matches!(self, Spec::Systematic { .. })
    }

    /// Whether that holds for it or for a member of it.
    pub fn searches(&self) -> bool {
        match self {
            Spec::Systematic { .. } => true,
            Spec::Portfolio(members) => members.iter().any(|(member, _)| member.searches()),
            _ => false,
        }
    }

    /// Whether its runs promise nothing about bugs that were not seen, however many there are.
    pub fn promises_nothing(&self) -> bool {
        match self {
            Spec::Random | Spec::Pos | Spec::Surw(_) | Spec::Idiom | Spec::Noise(_) => true,
            Spec::Stride(limit) => matches!(limit, StrideLimit::Max(_)),
            Spec::Pct(_) | Spec::RPro(_) | Spec::Systematic { .. } => false,
            Spec::Portfolio(members) => members.iter().all(|(member, _)| member.promises_nothing()),
        }
    }

    /// The strategy, ready for its first run.
    pub fn build(&self) -> AnyStrategy {
        match self {
            Spec::Random => AnyStrategy::Random(RandomWalk::new()),
            Spec::Pct(options) => AnyStrategy::Pct(Pct::new(*options)),
            Spec::RPro(options) => AnyStrategy::RPro(RPro::new(*options)),
            Spec::Stride(limit) => AnyStrategy::Stride(Stride::new(*limit)),
            Spec::Pos => AnyStrategy::Pos(Pos::new()),
            Spec::Surw(selection) => AnyStrategy::Surw(Surw::new(*selection)),
            Spec::Idiom => AnyStrategy::Idiom(Idiom::new()),
            Spec::Systematic { bounding, limit } => {
                AnyStrategy::Systematic(Systematic::new(*bounding, *limit))
            }
            Spec::Noise(options) => AnyStrategy::Noise(Noise::new(*options)),
            Spec::Portfolio(members) => {
                let members = members.iter().map(|(member, weight)| (member.build(), *weight));
                AnyStrategy::Portfolio(Portfolio::new(members.collect()))
            }
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        Spec::parse(text, PLANNED_RUNS)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::Random => out.write_str("random"),
            Spec::Pct(options) => options.fmt(out),
            Spec::RPro(options) => options.fmt(out),
            Spec::Stride(limit) => limit.fmt(out),
            Spec::Pos => out.write_str("pos"),
            Spec::Idiom => out.write_str("idiom"),
            Spec::Surw(Selection::Drawn) => out.write_str("surw"),
            Spec::Surw(Selection::All) => out.write_str("surw:focus=all"),
            Spec::Systematic { bounding, limit } => {
                out.write_str(match bounding {
                    Bounding::None => "dfs",
                    Bounding::Preemptions => "pb",
                    Bounding::Delays => "db",
                })?;
                limit.map_or(Ok(()), |limit| write!(out, ":bound={limit}"))
            }
            Spec::Noise(options) => options.fmt(out),
            Spec::Portfolio(members) => {
                for (place, (member, weight)) in members.iter().enumerate() {
                    write!(out, "{}{member}", if place == 0 { "portfolio:" } else { "+" })?;
                    if *weight != 1 {
                        write!(out, "*{weight}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// How much more of the runs a member of a portfolio gets than one that has none.
fn weight_of(text: &str) -> Result<u32, SpecError> {
    const MOST: u32 = 1_000;
    let weight = text.trim().parse().ok().filter(|weight| (1..=MOST).contains(weight));
    weight.ok_or_else(|| SpecError::Weight(text.trim().to_owned()))
}

fn depth(fields: &mut Fields<'_>, default: Depth, planned_runs: u64) -> Result<Depth, SpecError> {
    let text = fields.take("depth")?;
    let greatest = fields.number("greatest", 1)?;
    let confidence = fields.fraction("confidence")?;
    let runs = fields.number("runs", 1)?;
    let confident = confidence.is_some() || runs.is_some();
    match text {
        Some(_) if confident => Err(fields.clash("depth", "confidence and runs")),
        Some("auto") => Ok(Depth::Auto { greatest: greatest.unwrap_or(5) }),
        Some(_) if greatest.is_some() => Err(fields.clash("greatest", "a fixed depth")),
        Some(text) => match text.parse() {
            Ok(depth) if depth > 0 => Ok(Depth::Fixed(depth)),
            _ => Err(fields.bad("depth", text, "auto or a whole number from 1")),
        },
        None if confident && greatest.is_some() => Err(fields.clash("greatest", "confidence and runs")),
        None if confident => Ok(Depth::Confident {
            confidence: confidence.unwrap_or(CONFIDENCE),
            runs: runs.unwrap_or(planned_runs),
        }),
        None => Ok(greatest.map_or(default, |greatest| Depth::Auto { greatest })),
    }
}

fn rules(fields: &mut Fields<'_>) -> Result<Rules, SpecError> {
    let on_off = [("on", true), ("off", false)];
    let phases = [("joined", Phases::Joined), ("idle", Phases::Idle), ("none", Phases::None)];
    let default = Rules::default();
    Ok(Rules {
        phases: fields.one_of("phases", &phases)?.unwrap_or(default.phases),
        final_wait: fields.one_of("final-wait", &on_off)?.unwrap_or(default.final_wait),
        starvation: fields.one_of("starvation", &on_off)?.unwrap_or(default.starvation),
    })
}

fn stride(fields: &mut Fields<'_>, planned_runs: u64) -> Result<StrideLimit, SpecError> {
    let max = fields.number("max", 1)?;
    let ratio = fields.take("ratio")?;
    let confidence = fields.fraction("confidence")?;
    let runs = fields.number("runs", 1)?;
    let orders = fields.number("orders", 1)?;
    let confident = confidence.is_some() || runs.is_some() || orders.is_some();
    match (max, ratio) {
        (Some(_), Some(_)) => Err(fields.clash("max", "ratio")),
        (Some(_), None) if confident => Err(fields.clash("max", "confidence, runs and orders")),
        (None, Some(_)) if confident => Err(fields.clash("ratio", "confidence, runs and orders")),
        (Some(max), None) => Ok(StrideLimit::Max(max)),
        (None, Some(text)) => match text.parse::<f64>() {
            Ok(ratio) if ratio > 0.0 && ratio.is_finite() => Ok(StrideLimit::Ratio(ratio)),
            _ => Err(fields.bad("ratio", text, "a number above 0")),
        },
        (None, None) => Ok(StrideLimit::Confident {
            confidence: confidence.unwrap_or(CONFIDENCE),
            runs: runs.unwrap_or(planned_runs),
            orders: orders.unwrap_or(1),
        }),
    }
}

fn noise(fields: &mut Fields<'_>) -> Result<NoiseOptions, SpecError> {
    let default = NoiseOptions::default();
    let one_in = fields.number("one-in", 1)?.unwrap_or(default.one_in);
    let steps = fields.number("steps", 1)?.unwrap_or(default.steps);
    let longest = match fields.take("sleep")? {
        None => default.longest,
        Some(text) => {
            duration(text).ok_or_else(|| fields.bad("sleep", text, "a time such as 500us, 10ms or 1s"))?
        }
    };
    Ok(NoiseOptions { one_in, steps, longest })
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(digits);
    let micros = match unit {
        "us" => 1,
        "ms" => 1000,
        "s" => 1_000_000,
        _ => return None,
    };
    Some(Duration::from_micros(count.parse::<u64>().ok()?.checked_mul(micros)?))
}

#[cfg(test)]
mod tests;
