package personaldata

import "atelier/internal/base/sqldb"

// Checks are the invariants about deleted people that involve tables of several
// packages. Each is a query for the rows that violate the invariant.
var Checks = []sqldb.Check{
	{Name: "a deleted person has no pending run", Query: `
		SELECT 'run ' || r.id FROM run r JOIN person p ON p.id = r.person_id WHERE r.status = 'pending' AND p.deleted IS NOT NULL`},
	{Name: "a deleted person has no SCIM user", Query: `
		SELECT 'scim_user ' || s.company_id || ' ' || s.person_id FROM scim_user s JOIN person p ON p.id = s.person_id WHERE p.deleted IS NOT NULL`},
	{Name: "a deleted person has no favorite and no idempotency key", Query: `
		SELECT 'person ' || p.id FROM person p WHERE p.deleted IS NOT NULL AND (
			EXISTS (SELECT 1 FROM favorite f WHERE f.person_id = p.id) OR EXISTS (SELECT 1 FROM idempotency i WHERE i.person_id = p.id))`},
}
