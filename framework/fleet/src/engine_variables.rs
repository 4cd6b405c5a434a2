//! Which shard a process is, from the variables that engines set for the processes they start.
//!
//! Slurm numbers the tasks of a job array from anywhere, in steps; Kubernetes numbers the pods of an Indexed Job from 0 and
//! does not say how many there are, so that our manifests do, and others have to.

use waylay_schedule::Shard;

/// Set by our own manifests, because Kubernetes does not tell a pod how many there are.
pub const SHARDS: &str = "WAYLAY_SHARDS";

/// A shard, and the variable that it comes from.
pub type Told = (Shard, &'static str);

/// The shard that an engine told this process; none when there is no engine. `variable` looks a variable up.
///
/// # Errors
/// When the variables make no sense together.
pub fn shard(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Told>, String> {
    let number = |name: &'static str| match variable(name) {
        None => Ok(None),
        Some(text) => text.trim().parse::<u64>().map(Some).map_err(|_| format!("{name}={text} is no number")),
    };
    if let Some(id) = number("SLURM_ARRAY_TASK_ID")? {
        let of =
            number("SLURM_ARRAY_TASK_COUNT")?.ok_or("SLURM_ARRAY_TASK_ID is set and its count is not")?;
        let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
        let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
        let place = id.checked_sub(first).filter(|place| place % step == 0).map(|place| place / step + 1);
        let shard = place.and_then(|place| Shard::new(place, of)).ok_or_else(|| {
            format!(
                "the job array has gaps: task {id} of {of} that begin with {first} in steps of {step} is no shard; submit \
                 --array=1-{of}, or give --shard"
            )
        })?;
        return Ok(Some((shard, "SLURM_ARRAY_TASK_ID")));
    }
    if let Some(index) = number("JOB_COMPLETION_INDEX")? {
        // Every pod would make the same schedules, and the night would look as if it had made them all.
        let of = number(SHARDS)?.ok_or_else(|| {
            format!("JOB_COMPLETION_INDEX is set and {SHARDS} is not: say there how many completions the Job has, or give --shard")
        })?;
        let shard = Shard::new(index + 1, of)
            .ok_or_else(|| format!("JOB_COMPLETION_INDEX={index} is no shard of {SHARDS}={of}"))?;
        return Ok(Some((shard, "JOB_COMPLETION_INDEX")));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let look_up = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        };
        shard(look_up).map(|told| told.map(|(shard, _)| shard.to_string()))
    }

    #[test]
    fn engines_number_from_anywhere() {
        let slurm = |id, min, step| {
            told(&[
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_COUNT", "4"),
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_STEP", step),
            ])
        };
        assert_eq!(slurm("1", "1", "1"), Ok(Some("1/4".to_owned())));
        assert_eq!(slurm("0", "0", "1"), Ok(Some("1/4".to_owned())));
        assert_eq!(slurm("16", "10", "2"), Ok(Some("4/4".to_owned())));
        assert!(slurm("17", "10", "2").is_err() && slurm("18", "10", "2").is_err());
        assert!(slurm("9", "10", "1").is_err() && slurm("x", "1", "1").is_err());
        let kubernetes = [("JOB_COMPLETION_INDEX", "3"), (SHARDS, "4")];
        assert_eq!(told(&kubernetes), Ok(Some("4/4".to_owned())));
        assert!(
            told(&kubernetes[..1]).is_err_and(|error| error.contains(SHARDS)),
            "of how many is not known"
        );
        assert_eq!(told(&kubernetes[1..]), Ok(None), "that alone names no shard");
        assert!(told(&[("JOB_COMPLETION_INDEX", "4"), (SHARDS, "4")]).is_err());
        assert_eq!(told(&[]), Ok(None));
    }
}
