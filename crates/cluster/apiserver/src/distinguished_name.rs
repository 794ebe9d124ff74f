//! Names in certificates and certificate requests, in DER.

use yasna::ASN1Result;

/// DER-encoded object identifiers of subject attributes.
pub(crate) const COMMON_NAME: &[u8] = &[6, 3, 0x55, 4, 3];
pub(crate) const ORGANIZATION: &[u8] = &[6, 3, 0x55, 4, 10];

/// Returns the elements of a DER sequence.
pub(crate) fn elements(der: &[u8]) -> ASN1Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    yasna::parse_der(der, |reader| {
        reader.read_sequence_of(|reader| {
            found.push(reader.read_der()?);
            Ok(())
        })
    })?;
    Ok(found)
}

/// Returns the attributes of a name as pairs of identifier and text.
pub(crate) fn name_attributes(name: &[u8]) -> ASN1Result<Vec<(Vec<u8>, String)>> {
    let mut parts = Vec::new();
    for set in elements(name)? {
        yasna::parse_der(&set, |reader| {
            reader.read_set_of(|reader| {
                reader.read_sequence(|reader| {
                    let kind = reader.next().read_der()?;
                    let value = reader.next().read_der()?;
                    let text = yasna::parse_der(&value, |text| text.read_utf8string())
                        .or_else(|_| yasna::parse_der(&value, |text| text.read_printable_string()))
                        .or_else(|_| yasna::parse_der(&value, |text| text.read_ia5_string()));
                    if let Ok(text) = text {
                        parts.push((kind, text));
                    }
                    Ok(())
                })
            })
        })?;
    }
    Ok(parts)
}
