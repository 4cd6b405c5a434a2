//! Versions of stored records. A record says its format first, so a record of a newer Waylay is refused by that number before
//! anything else in it is looked at; whoever reads records gets that with the type.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// For `#[serde(deserialize_with = "…")]` on the first field of a record: reads formats up to the one that is known.
pub(crate) fn up_to<'de, const KNOWN: u32, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let format = u32::deserialize(from)?;
    if format > KNOWN {
        return Err(D::Error::custom(format_args!(
            "format {format} was written by a newer waylay, this one reads up to format {KNOWN}"
        )));
    }
    Ok(format)
}

#[cfg(test)]
mod tests {
    #[derive(Debug, serde::Deserialize)]
    struct Record {
        #[serde(deserialize_with = "super::up_to::<3, _>")]
        format: u32,
    }

    #[test]
    fn a_newer_record_is_refused_by_its_number_before_the_rest_is_read() {
        let read = |text: &str| serde_json::from_str::<Record>(text).map(|record| record.format);
        assert_eq!((read(r#"{"format":1}"#).ok(), read(r#"{"format":3,"x":1}"#).ok()), (Some(1), Some(3)));
        let error = read(r#"{"format":4,"other":[}"#).unwrap_err().to_string();
        assert!(error.contains("format 4") && error.contains("newer waylay"), "{error}");
    }
}
