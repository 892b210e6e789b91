// Package audit is the append-only log of security-relevant actions.
//
//	hash 16 ◀── 17 {at, act, who, whom, …} ◀── 18 {…} ◀── head {18, hash 18}
//
// The rows are numbered without a gap, and the hash of each row covers its
// columns and the hash of the row before. The tables refuse changes. An attacker
// who bypasses that cannot change, remove or reorder a row without breaking the
// chain, and Verify reports the row. Each row and the head also have a keyed
// seal: an attacker who can write the database, but does not have the
// installation's secret, cannot rebuild the chain or cut off its end. An
// attacker with an old copy of the whole database can restore the copy. Against
// this, the operator stores the head elsewhere and compares it.
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
	ActorID   string            // the person who acted; empty for the operator and for anonymous callers
	PersonID  string            // the person concerned; may be empty
	CompanyID string            // the company whose admins may read the entry; empty: only the operator may
	Address   string            // of the request's sender
	Details   map[string]string // never a secret
}

// Record is an entry in the log.
type Record struct {
	Seq int64
	At  time.Time
	Entry
	Hash string
}

// Head is the end of the log.
type Head struct {
	Seq  int64
	Hash string
}

// Add writes the entry to the log. Call it last in a transaction: the head is
// one row, so transactions that add entries run one after the other from here
// on.
//
// Texts are sanitized and never refused, so that a caller cannot prevent an
// entry about itself with invalid text.
//
// A head with a wrong seal keeps the wrong seal: if an attacker cut off the end
// of the log, the next entry must not seal the rest.
func Add(ctx context.Context, tx *sqldb.Tx, e Entry) error {
	head, seal, err := lockHead(ctx, tx)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	begins := head.Seq == 0 && seal == ""
	intact := begins || hmac.Equal([]byte(seal), []byte(head.keyedSeal(tx)))
	return addEntry(ctx, tx, e, head, intact)
}

// addEntry adds an entry after the head, and seals the new head if the old head
// was intact.
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

// WithChange returns the entry with the old and the new value as details; ""
// means no value.
func (e Entry) WithChange(from, to string) Entry {
	details := map[string]string{"from": from, "to": to}
	maps.Copy(details, e.Details)
	e.Details = details
	return e
}

// checkChange refuses the entry of a change without the details from and to.
func (e Entry) checkChange() error {
	_, from := e.Details["from"]
	_, to := e.Details["to"]
	if slices.Contains(Changes, e.Act) && !(from && to) {
		return fmt.Errorf("audit: %s does not say from what to what", e.Act)
	}
	return nil
}

// Filter selects records. Empty fields match all records.
type Filter struct {
	CompanyID   string
	PersonID    string    // the person who acted, or the person concerned
	Acts        []Act     // any of these acts
	From, Until time.Time // at or after From, and before Until
	Before      int64     // only rows with a lower number; 0: from the newest row
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

// row is a record as it is stored. The hash covers exactly these texts, so that
// a verifier does not need to know how they were encoded.
type row struct {
	seq, at                               int64
	act                                   string
	actorID, personID, companyID, address string
	details                               string // JSON object, keys sorted
	hash                                  string
	keyedHash                             string // empty: the row is from before seals were introduced
}

// keyedSeal returns the seal of the row. The row's hash covers every row before
// it, and so does the seal, which cannot be made without the installation's
// secret.
func (r row) keyedSeal(tx *sqldb.Tx) string { return tx.SealTexts("audit", r.hash) }

// keyedSeal returns the seal of the head. It differs from the seal of the row,
// so that an older row cannot be made the head.
func (h Head) keyedSeal(tx *sqldb.Tx) string {
	return tx.SealTexts("audit_head", strconv.FormatInt(h.Seq, 10), h.Hash)
}

// chainHash returns the hash of the row after a row with the given hash. Each
// text is preceded by its length, so that characters cannot be moved from one
// text to the next.
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
	for _, key := range slices.Sorted(maps.Keys(details)) { // in order: if sanitizing makes keys equal, the same one always remains
		tidy[sanitize.Line(key, maxText)] = sanitize.Line(details[key], maxText)
	}
	b, _ := json.Marshal(tidy) // marshalling a map of strings cannot fail
	return string(b)
}

// maxText is the largest number of bytes stored of a text.
const maxText = 500
