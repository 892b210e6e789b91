// Package personaldata exports and deletes the data that is stored about a
// person.
//
//	person ──DeletePerson──▶ signed out everywhere ──job person-erase──▶ contents erased ──library.Sweep──▶ files removed
//
// DeletePerson is one short transaction, regardless of the amount of data: it
// revokes all credentials, removes all memberships and the e-mail address, and
// adds the background job. The job erases the person's contents, a few hundred
// rows per transaction. It can be restarted from the beginning at any time, for
// example after a crash.
//
// The contents of a team stay with the team. The ledger and the audit log are
// never changed; they contain only the person's id.
package personaldata

import (
	"atelier/internal/base/fault"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
	"atelier/internal/people/principal"
)

// Service exports and deletes people's data. It is safe for concurrent use.
type Service struct {
	DB    *sqldb.DB
	Blobs blob.Store  // used only by exports
	Queue queue.Queue // for the background jobs that erase contents
}

// requireOwner refuses callers other than the person themselves and the
// operator.
func requireOwner(caller principal.Principal, personID string) error {
	if caller.Operator || personID != "" && caller.PersonID == personID {
		return nil
	}
	return fault.New(fault.Forbidden, "Only the owner of the account can do this.").With("reason", "permission")
}
