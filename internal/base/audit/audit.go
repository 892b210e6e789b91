// Package audit is the append-only log of security-relevant actions.
//
//	hash 16 ◀── 17 {at, act, who, whom, …} ◀── 18 {…} ◀── head {18, hash 18}
//
// The rows are numbered without a gap, and the hash of each covers its columns
// and the hash before it. The tables refuse changes; whoever gets around that
// cannot change, remove or reorder a row without breaking the chain, and Verify
// names the place. Each row and the head have a keyed seal besides, so that who
// can write the database, but does not have the installation's secret, cannot make
// the chain anew or cut its end off. Who has kept a copy of the whole database can
// put that back: against it, the operator keeps the head elsewhere and has it
// compared.
package audit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Entry is one action.
type Entry struct {
	Act       Act
	ActorID   string            // who did it; empty for the operator and for strangers
	PersonID  string            // the person concerned; may be empty
	CompanyID string            // whose admins may read it; empty for the operator only
	Address   string            // where the request came from
	Details   map[string]string // never a secret
}

// Record is an entry in the log.
type Record struct {
	Seq int64
	At  time.Time
	Entry
	Hash string
}

// Head is where the log ends.
type Head struct {
	Seq  int64
	Hash string
}

// Add writes the entry to the log. Call it last in a transaction: the head is
// one row, and all transactions that add pass through it one after the other.
//
// Texts are made clean and never refused, so that what a stranger sends cannot
// keep its own record from being written.
//
// A head whose seal does not fit keeps it: who cut off the end of the log cannot
// have the next entry seal what is left.
func Add(ctx context.Context, tx *sqldb.Tx, e Entry) error {
	head, seal, err := lockHead(ctx, tx)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	begins := head.Seq == 0 && seal == ""
	intact := begins || hmac.Equal([]byte(seal), []byte(head.keyedSeal(tx)))
	return addEntry(ctx, tx, e, head, intact)
}

// addEntry adds an entry after the head, and seals the new one unless the old one was
// not intact.
func addEntry(ctx context.Context, tx *sqldb.Tx, e Entry, head Head, intact bool) error {
	if !slices.Contains(Acts, e.Act) {
		return fmt.Errorf("audit: unknown act %q", e.Act)
	}
	if err := e.checkChange(); err != nil {
		return err
	}
	r := row{
		seq:       head.Seq + 1,
		at:        tx.Now.UnixMicro(),
		act:       string(e.Act),
		actorID:   sanitize.Line(e.ActorID, maxText),
		personID:  sanitize.Line(e.PersonID, maxText),
		companyID: sanitize.Line(e.CompanyID, maxText),
		address:   sanitize.Line(e.Address, maxText),
		details:   encodeDetails(e.Details),
	}
	r.hash = r.chainHash(head.Hash)
	err := insertRow(ctx, tx, r)
	if err == nil && intact {
		err = putHead(ctx, tx, Head{r.seq, r.hash})
	} else if err == nil {
		err = moveHead(ctx, tx, Head{r.seq, r.hash})
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// WithChange is the entry with what was before and what is from now on, "" for
// nothing.
func (e Entry) WithChange(from, to string) Entry {
	details := map[string]string{"from": from, "to": to}
	maps.Copy(details, e.Details)
	e.Details = details
	return e
}

// checkChange refuses the entry of a change that does not say from what to what.
func (e Entry) checkChange() error {
	_, from := e.Details["from"]
	_, to := e.Details["to"]
	if slices.Contains(Changes, e.Act) && !(from && to) {
		return fmt.Errorf("audit: %s does not say from what to what", e.Act)
	}
	return nil
}

// Filter chooses records. Empty fields choose all.
type Filter struct {
	CompanyID   string
	PersonID    string    // who did it, or whom it concerns
	Acts        []Act     // any of these
	From, Until time.Time // done from, and before
	Before      int64     // older than this one; 0: from the newest
	Limit       int       // the largest number of records; 0 returns none
}

// List returns records, newest first.
func List(ctx context.Context, tx *sqldb.Tx, f Filter) ([]Record, error) {
	rows, err := listRows(ctx, tx, f)
	if err != nil {
		return nil, err
	}
	records := make([]Record, len(rows))
	for i, r := range rows {
		if records[i], err = r.toRecord(); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// row is a record as it is stored. The hash covers these very texts, so that
// a verifier need not know how they were made.
type row struct {
	seq, at                               int64
	act                                   string
	actorID, personID, companyID, address string
	details                               string // JSON object, keys sorted
	hash                                  string
	keyedHash                             string // empty: from before there were seals
}

// keyedSeal returns the seal of the row. Its hash covers every row before it, and so
// does the seal, which nobody can make without the installation's secret.
func (r row) keyedSeal(tx *sqldb.Tx) string { return tx.SealTexts("audit", r.hash) }

// keyedSeal returns the seal of the head: not one that a row has, so that nobody can
// make an older row the head.
func (h Head) keyedSeal(tx *sqldb.Tx) string {
	return tx.SealTexts("audit_head", strconv.FormatInt(h.Seq, 10), h.Hash)
}

// chainHash returns the hash of the row that follows the one with the hash before.
// Each text comes after its length: nothing can move from one to the next.
func (r row) chainHash(before string) string {
	var b []byte
	for _, text := range []string{
		before, strconv.FormatInt(r.seq, 10), strconv.FormatInt(r.at, 10), r.act,
		r.actorID, r.personID, r.companyID, r.address, r.details,
	} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (r row) toRecord() (Record, error) {
	rec := Record{Seq: r.seq, At: time.UnixMicro(r.at).UTC(), Hash: r.hash, Entry: Entry{
		Act:       Act(r.act),
		ActorID:   r.actorID,
		PersonID:  r.personID,
		CompanyID: r.companyID,
		Address:   r.address,
	}}
	if err := json.Unmarshal([]byte(r.details), &rec.Details); err != nil {
		return Record{}, fmt.Errorf("audit %d: details: %w", r.seq, err)
	}
	return rec, nil
}

// encodeDetails writes details as a JSON object with sorted keys.
func encodeDetails(details map[string]string) string {
	tidy := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(details)) { // in order: of keys that clean makes equal, the same one stays
		tidy[sanitize.Line(key, maxText)] = sanitize.Line(details[key], maxText)
	}
	b, _ := json.Marshal(tidy) // a map of texts can always be written
	return string(b)
}

// maxText is how many bytes of a text are kept.
const maxText = 500
