// Package dossier is all that is kept about a person: it hands it over to them,
// and it ends it.
//
//	person ──Delete──▶ nobody can act for them ──job person-erase──▶ contents erased ──library.Sweep──▶ bytes removed
//
// Delete is one short transaction, whatever the person has: it takes every way
// in, every membership and the address, and adds the job. The job takes out what
// they wrote and brought, some hundred rows at a time. It may be done again from
// the start at any time, and so it is after a crash.
//
// What belongs to a team stays with the team. The ledger and the audit log are
// never changed; they know a person by their id alone.
package dossier

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
	"atelier/internal/people/principal"
)

// Dossier joins what knows about people. It is safe for concurrent use.
type Dossier struct {
	DB    *sqldb.DB
	Blobs blob.Store
	// Queue is where the rest of a deletion waits.
	Queue queue.Queue
}

// checkOwner refuses everybody but the person and the operator.
func checkOwner(p principal.Principal, personID string) error {
	if p.Operator || personID != "" && p.PersonID == personID {
		return nil
	}
	return fault.New(fault.Forbidden, "Only the person can do this.").With("reason", "permission")
}

// Patience is how long whoever fetches an archive may take for its next part.
const Patience = 30 * time.Second

// EraseKind is the kind of the jobs that finish a deletion.
const EraseKind = "person-erase"

// Handler does those jobs.
func Handler(db *sqldb.DB) queue.Handler {
	return queue.Handler{
		Kind: EraseKind, Timeout: 10 * time.Minute,
		Retry: []time.Duration{
			time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour,
			6 * time.Hour, 6 * time.Hour, 6 * time.Hour, 6 * time.Hour, 24 * time.Hour, 24 * time.Hour, 24 * time.Hour,
		},
		Do: func(ctx context.Context, w queue.Work) error { return erase(ctx, db, string(w.Args)) },
	}
}
