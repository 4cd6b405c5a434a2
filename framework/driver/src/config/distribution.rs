//! Reads a distribution with the place of each of its keys.

use toml::Spanned;
use toml::de::DeValue;
use waylay_dist::spec::{Exponential, Gaussian, Interval, Uniform};
use waylay_dist::{Dist, Place, Spec, Value};

use super::diagnostic::{Diagnostic, Findings};
use super::reader::TableReader;
use super::source::{At, Span};
use super::suggestion;
use super::value::{FromToml, read_value, wrong_type};

/// A distribution as written, and where each part of it stands.
pub(super) struct PlacedSpec {
    pub(super) spec: At<Spec>,
    places: Vec<(Place, Span)>,
}

impl PlacedSpec {
    /// Reads a distribution such as `{ uniform = { min = 1, max = 64 } }`, or a plain value.
    pub(super) fn read(value: &Spanned<DeValue<'_>>, findings: &Findings) -> Option<Self> {
        let span = Span::from(value.span());
        let mut places = Places { findings, list: Vec::new() };
        let spec = match value.get_ref() {
            DeValue::Table(table) => {
                let mut named = table.iter();
                let (Some((name, body)), None) = (named.next(), named.next()) else {
                    findings.add(
                        Diagnostic::error(span, "a distribution has one name")
                            .help(format!("one of {}", Spec::NAMES.join(", "))),
                    );
                    return None;
                };
                match name.get_ref().as_ref() {
                    "uniform" => places.table(body, "uniform").and_then(|reader| places.uniform(reader)),
                    "gaussian" => places.table(body, "gaussian").and_then(|reader| places.gaussian(reader)),
                    "exponential" => {
                        places.table(body, "exponential").and_then(|reader| places.exponential(reader))
                    }
                    "weighted" => places.weighted(body),
                    other => {
                        findings.add(
                            Diagnostic::error(name.span().into(), format!("unknown distribution `{other}`"))
                                .help(suggestion::help(other, &Spec::NAMES)),
                        );
                        None
                    }
                }
            }
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::String(_) => {
                read_value::<Value>(value, None, findings).map(|value| Spec::fixed(value.value))
            }
            _ => {
                findings.add(
                    wrong_type(None, value, "a distribution or a plain value")
                        .help("such as { uniform = { min = 1, max = 64 } }"),
                );
                None
            }
        };
        Some(Self { spec: At::new(spec?, span), places: places.list })
    }

    /// Checks the distribution; problems are reported at the key that has them.
    pub(super) fn check(&self, findings: &Findings) -> Option<Dist> {
        match Dist::new(&self.spec.value) {
            Ok(dist) => return Some(dist),
            // Both ends of a plain value are wrong in the same way.
            Err(problems) if self.places.is_empty() => {
                if let Some(problem) = problems.iter().next() {
                    findings.add(Diagnostic::error(self.spec.span, problem.kind.to_string()));
                }
            }
            Err(problems) => {
                for problem in problems {
                    findings.add(Diagnostic::error(self.span_of(problem.place), problem.kind.to_string()));
                }
            }
        }
        None
    }

    /// Where a part of it stands; the whole for a part that was not written.
    pub(super) fn span_of(&self, place: Place) -> Span {
        self.places.iter().find(|(known, _)| *known == place).map_or(self.spec.span, |(_, span)| *span)
    }
}

impl TableReader<'_, '_> {
    /// The distribution of a key, if it is there and can be read.
    pub(super) fn distribution(&mut self, key: &'static str) -> Option<PlacedSpec> {
        PlacedSpec::read(self.value(key)?, self.findings())
    }
}

/// Reads the tables of a distribution and remembers where their keys are.
struct Places<'a> {
    findings: &'a Findings,
    list: Vec<(Place, Span)>,
}

impl<'a> Places<'a> {
    fn table<'v, 'i>(
        &mut self,
        body: &'v Spanned<DeValue<'i>>,
        name: &'static str,
    ) -> Option<TableReader<'v, 'i>>
    where
        'a: 'v,
    {
        match body.get_ref() {
            DeValue::Table(table) => Some(TableReader::new(table, body.span().into(), name, self.findings)),
            _ => {
                self.findings.add(wrong_type(Some(name), body, "a table"));
                None
            }
        }
    }

    fn required<T: FromToml>(
        &mut self,
        reader: &mut TableReader<'_, '_>,
        interval: Option<usize>,
        key: &'static str,
    ) -> Option<T> {
        let read = reader.required(key)?;
        self.list.push((Place { interval, key: Some(key) }, read.span));
        Some(read.value)
    }

    /// `None` when the key is there and cannot be read, so that no distribution is made without it.
    fn optional<T: FromToml>(
        &mut self,
        reader: &mut TableReader<'_, '_>,
        key: &'static str,
    ) -> Option<Option<T>> {
        if !reader.has(key) {
            return Some(reader.optional::<T>(key).map(|read| read.value));
        }
        let read = reader.optional(key)?;
        self.list.push((Place { interval: None, key: Some(key) }, read.span));
        Some(Some(read.value))
    }

    fn uniform(&mut self, mut reader: TableReader<'_, '_>) -> Option<Spec> {
        let min = self.required(&mut reader, None, "min");
        let max = self.required(&mut reader, None, "max");
        reader.finish();
        Some(Spec::Uniform(Uniform { min: min?, max: max? }))
    }

    fn gaussian(&mut self, mut reader: TableReader<'_, '_>) -> Option<Spec> {
        let mean = self.required(&mut reader, None, "mean");
        let sigma = self.required(&mut reader, None, "sigma");
        let min = self.optional(&mut reader, "min");
        let max = self.optional(&mut reader, "max");
        reader.finish();
        Some(Spec::Gaussian(Gaussian { mean: mean?, sigma: sigma?, min: min?, max: max? }))
    }

    fn exponential(&mut self, mut reader: TableReader<'_, '_>) -> Option<Spec> {
        let min = self.required(&mut reader, None, "min");
        let max = self.required(&mut reader, None, "max");
        let mean = self.optional(&mut reader, "mean");
        let rate = self.optional(&mut reader, "rate");
        reader.finish();
        Some(Spec::Exponential(Exponential { min: min?, max: max?, mean: mean?, rate: rate? }))
    }

    fn weighted(&mut self, body: &Spanned<DeValue<'_>>) -> Option<Spec> {
        let DeValue::Array(array) = body.get_ref() else {
            self.findings.add(
                wrong_type(Some("weighted"), body, "a list of intervals")
                    .help("such as [{ min = 0, max = 3, p = 1.0 }]"),
            );
            return None;
        };
        self.list.push((Place::default(), body.span().into()));
        let mut intervals = Some(Vec::new());
        for (i, value) in array.iter().enumerate() {
            self.list.push((Place { interval: Some(i), key: None }, value.span().into()));
            match (self.table(value, "interval").and_then(|reader| self.interval(reader, i)), &mut intervals)
            {
                (Some(interval), Some(intervals)) => intervals.push(interval),
                _ => intervals = None,
            }
        }
        intervals.map(Spec::Weighted)
    }

    fn interval(&mut self, mut reader: TableReader<'_, '_>, i: usize) -> Option<Interval> {
        let min = self.required(&mut reader, Some(i), "min");
        let max = self.required(&mut reader, Some(i), "max");
        let p = self.required(&mut reader, Some(i), "p");
        reader.finish();
        Some(Interval { min: min?, max: max?, p: p? })
    }
}
