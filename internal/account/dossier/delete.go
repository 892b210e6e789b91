package dossier

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/queue"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/file/library"
	"atelier/internal/file/quota"
	"atelier/internal/money/ledger"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
	"atelier/internal/run/run"
)

var (
	errEmail     = fault.New(fault.Invalid, "This is not the address of the account.").On("email")
	errActive    = fault.New(fault.Forbidden, "Runs are still going. Cancel them or wait until they have ended.").With("reason", "runs_active")
	errLastAdmin = fault.New(fault.Forbidden, "A company would be left with nobody who can manage its members. Give somebody there that right first.").With("reason", "last_admin")
)

// Delete ends a person. email must be their address, so that nobody does it by
// mistake. When it returns nothing can be done in their name any more, on any
// node; what they wrote and brought is erased shortly after.
//
// Locks are taken in the order person, companies by id, rate keys, the account's
// storage, the account of the ledger.
func (d *Dossier) Delete(ctx context.Context, a Actor, personID, email string) error {
	if err := a.may(personID); err != nil {
		return err
	}
	err := d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		p, err := person.ByID(ctx, tx, personID)
		if err != nil {
			return err
		}
		if !p.HasEmail(email) {
			return errEmail
		}
		// Whoever creates a run has the person locked.
		if n, err := run.Active(ctx, tx, p.ID); err != nil || n > 0 {
			return cmp.Or(err, error(errActive))
		}
		left, err := a.leave(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		tokens, err := credential.DeleteAll(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := d.end(ctx, tx, p); err != nil {
			return err
		}
		return a.record(ctx, tx, p.ID, left, tokens)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// departure is what somebody was in a company that they left.
type departure struct {
	role  string
	teams []string
}

// leave takes a person out of all companies, and gives what they were by company.
func (a Actor) leave(ctx context.Context, tx *sqldb.Tx, personID string) (map[string]departure, error) {
	in, err := company.OfPerson(ctx, tx, personID)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(in, func(a, b company.Membership) int { return cmp.Compare(a.Company.ID, b.Company.ID) })
	left := map[string]departure{}
	for _, m := range in {
		id := m.Company.ID
		if err := company.Lock(ctx, tx, id); err != nil {
			return nil, err
		}
		had, err := company.HasAdmin(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		// Another may have put them out while we waited for the company.
		teams, err := company.RemoveMember(ctx, tx, id, personID)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		left[id] = departure{role: m.Role.Name, teams: teams}
		if a.trusted || !had {
			continue
		}
		managed, err := company.HasAdmin(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		others, err := company.HasMembers(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if others && !managed {
			return nil, errLastAdmin
		}
	}
	return left, nil
}

// end takes every way in and whatever is small. The job does the rest.
func (d *Dossier) end(ctx context.Context, tx *sqldb.Tx, p person.Person) error {
	if _, err := session.EndAll(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := device.Erase(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := company.ForgetProfiles(ctx, tx, p.ID); err != nil {
		return err
	}
	if _, err := company.Uninvite(ctx, tx, p.Email); err != nil {
		return err
	}
	if err := ratelimit.ForgetSubject(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := ratelimit.ForgetSubject(ctx, tx, strings.ToLower(p.Email)); err != nil {
		return err
	}
	if err := forget(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := person.Erase(ctx, tx, p.ID); err != nil {
		return err
	}
	if _, err := ledger.Clear(ctx, tx, p.ID, ledger.Expired, ""); err != nil {
		return err
	}
	args, err := json.Marshal(p.ID)
	if err != nil {
		return err
	}
	_, err = d.Queue.Add(ctx, tx, queue.Job{Kind: EraseKind, Args: args, Unique: p.ID})
	return err
}

// forget drops what hangs on a person alone.
func forget(ctx context.Context, tx *sqldb.Tx, personID string) error {
	if err := library.ForgetFavorites(ctx, tx, personID); err != nil {
		return err
	}
	if err := run.ForgetPerson(ctx, tx, personID); err != nil {
		return err
	}
	if err := webhook.EraseSecret(ctx, tx, personID); err != nil {
		return err
	}
	return quota.Forget(ctx, tx, personID)
}

// record writes down what ended: the log keeps ids and no address of mail.
func (a Actor) record(ctx context.Context, tx *sqldb.Tx, personID string, left map[string]departure, tokens []credential.Token) error {
	entry := audit.Entry{ActorID: a.PersonID, PersonID: personID, Address: a.Address}
	for _, t := range tokens {
		e := entry
		e.Act = audit.TokenDeleted
		e.CompanyID = t.CompanyID
		e.Details = map[string]string{"token": t.ID}
		if err := audit.Add(ctx, tx, e); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		e := entry
		e.Act = audit.CompanyMemberRemoved
		e.CompanyID = id
		e.Details = map[string]string{"teams": strings.Join(left[id].teams, " ")}
		if err := audit.Add(ctx, tx, e.Changing(left[id].role, "")); err != nil {
			return err
		}
	}
	entry.Act = audit.PersonDeleted
	return audit.Add(ctx, tx, entry)
}

// batch is how many rows one transaction erases: SQLite has one writer, and
// everybody else waits for it.
const batch = 200

// boardsAtOnce is batch for boards, of which each has thousands of nodes.
const boardsAtOnce = 5

// Erase finishes the deletion of a person now, where nobody works on the queue.
func (d *Dossier) Erase(ctx context.Context, personID string) error {
	args, err := json.Marshal(personID)
	if err != nil {
		return err
	}
	return erase(ctx, d.DB, string(args))
}

// erase takes out what a deleted person wrote and brought. It goes from one
// place to the next and may begin anew; what is done already costs little.
func erase(ctx context.Context, db *sqldb.DB, args string) error {
	var personID string
	if err := json.Unmarshal([]byte(args), &personID); err != nil {
		return queue.GiveUp(err)
	}
	if err := gone(ctx, db, personID); err != nil {
		return err
	}
	after := run.Place{}
	more := true
	for more {
		var last run.Place
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			ids, end, err := run.Some(ctx, tx, personID, after, batch)
			if err != nil {
				return err
			}
			last = end
			more = len(ids) == batch
			if err := run.Erase(ctx, tx, ids); err != nil {
				return err
			}
			if err := webhook.Erase(ctx, tx, ids); err != nil {
				return err
			}
			return library.EraseResults(ctx, tx, ids)
		})
		if err != nil {
			return fmt.Errorf("erase runs: %w", err)
		}
		after = last
	}
	afterUpload := ""
	more = true
	for more {
		var last string
		err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			last, err = library.EraseUploads(ctx, tx, personID, afterUpload, batch)
			return err
		})
		if err != nil {
			return fmt.Errorf("erase uploads: %w", err)
		}
		afterUpload = last
		more = last != ""
	}
	for more := true; more; {
		err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			more, err = board.EraseSome(ctx, tx, personID, boardsAtOnce)
			return err
		})
		if err != nil {
			return fmt.Errorf("erase boards: %w", err)
		}
	}
	// A poll or a look at the secret that was under way may have come late.
	return db.Write(ctx, func(tx *sqldb.Tx) error { return forget(ctx, tx, personID) })
}

// gone refuses to erase anybody who was not deleted.
func gone(ctx context.Context, db *sqldb.DB, personID string) error {
	return db.Read(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByID(ctx, tx, personID)
		if err == nil && !p.Deleted {
			err = queue.GiveUp(fmt.Errorf("person %s was not deleted", personID))
		}
		return err
	})
}
