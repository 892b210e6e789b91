// Package audit is the append-only log of security-relevant actions.
//
//	hash 16 ◀── 17 {at, act, who, whom, …} ◀── 18 {…} ◀── head {18, hash 18}
//
// The rows are numbered without a gap, and the hash of each row covers its
// columns and the hash of the previous row. Database triggers reject updates
// and deletions. An attacker who bypasses them cannot change, remove or reorder
// a row without breaking the chain, and Verify reports the row. Each row and
// the head also have a keyed hash, the seal: an attacker who can write to the
// database, but does not have the installation's secret, cannot rebuild the
// chain or cut off its end. An attacker who has an old copy of the whole
// database can still restore that copy. To detect this, the operator stores the
// head outside the database and compares it.
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

// Entry is one audited action, before it is written to the log.
type Entry struct {
	Act       Act
	ActorID   string            // the person who acted; empty for the operator and for anonymous callers
	PersonID  string            // the person concerned; may be empty
	CompanyID string            // the company whose admins may read the entry; if empty, only the operator may
	Address   string            // the IP address that the request came from
	Details   map[string]string // additional facts about the action; never a secret
}

// Record is an entry as stored in the log, with its number, time and hash.
type Record struct {
	Seq int64
	At  time.Time
	Entry
	Hash string
}

// Head is the number and the hash of the newest row of the log.
type Head struct {
	Seq  int64
	Hash string
}

// Add writes the entry to the log. Call it last in a transaction: the head is
// one row, which stays locked until the transaction ends, so other transactions
// that add entries wait.
//
// Add sanitizes invalid text instead of returning an error, so that nobody can
// prevent an entry about themselves by sending invalid text.
//
// If the seal of the head is wrong, Add leaves it wrong: after an attacker has
// cut off the end of the log, the next entry must not make the shortened log
// valid.
func Add(ctx context.Context, tx *sqldb.Tx, e Entry) error {
	head, seal, err := lockHead(ctx, tx)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	begins := head.Seq == 0 && seal == ""
	intact := begins || hmac.Equal([]byte(seal), []byte(head.keyedSeal(tx)))
	return addEntry(ctx, tx, e, head, intact)
}

// addEntry adds an entry after the head. It seals the new head only if intact
// is true, which means that the seal of the old head was correct.
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

// WithChange returns the entry with the old and the new value as the details
// "from" and "to". "" means no value.
func (e Entry) WithChange(from, to string) Entry {
	details := map[string]string{"from": from, "to": to}
	maps.Copy(details, e.Details)
	e.Details = details
	return e
}

// checkChange returns an error if the action changes a value and the entry
// lacks the details "from" and "to".
func (e Entry) checkChange() error {
	_, from := e.Details["from"]
	_, to := e.Details["to"]
	if slices.Contains(Changes, e.Act) && !(from && to) {
		return fmt.Errorf(`audit: an entry with the act %s requires the details "from" and "to"`, e.Act)
	}
	return nil
}

// Filter selects records of the log. Empty fields match all records.
type Filter struct {
	CompanyID   string
	PersonID    string    // the person who acted, or the person concerned
	Acts        []Act     // records with any of these actions
	From, Until time.Time // records at or after From and before Until
	Before      int64     // only records with a lower number; 0 starts at the newest record
	Limit       int       // the maximum number of records; 0 returns none
}

// HasIndexOrder reports whether indexes have the records that the filter selects
// in the order of List (see sqldb.WithIndexOrder).
func (f Filter) HasIndexOrder() bool {
	if f.CompanyID == "" && f.PersonID == "" {
		return len(f.Acts) <= maxActParts
	}
	return len(f.Acts) == 0 && (f.CompanyID == "" || f.PersonID == "")
}

// List returns the records that match the filter, newest first.
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

// row is a record as it is stored. The hash covers exactly these strings, so a
// verifier does not need to know how they were encoded.
type row struct {
	seq, at                               int64
	act                                   string
	actorID, personID, companyID, address string
	details                               string // JSON object with sorted keys
	hash                                  string
	keyedHash                             string // the seal of the row; empty if the row was stored before seals were introduced
}

// keyedSeal returns the seal of the row: a keyed hash of the row's hash. The
// row's hash depends on every earlier row, so the seal does too. The seal
// cannot be computed without the installation's secret.
func (r row) keyedSeal(tx *sqldb.Tx) string { return tx.SealTexts("audit", r.hash) }

// keyedSeal returns the seal of the head. It differs from the seal of the row
// with the same number, so that an attacker cannot use the seal of an older row
// as the seal of the head.
func (h Head) keyedSeal(tx *sqldb.Tx) string {
	return tx.SealTexts("audit_head", strconv.FormatInt(h.Seq, 10), h.Hash)
}

// chainHash returns the hash of the row, where before is the hash of the
// previous row. Each string is preceded by its length, so that moving
// characters from one column to the next changes the hash.
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
		return Record{}, fmt.Errorf("decode the details of audit entry %d: %w", r.seq, err)
	}
	return rec, nil
}

// encodeDetails returns the sanitized details as a JSON object with sorted
// keys.
func encodeDetails(details map[string]string) string {
	tidy := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(details)) { // sorted: if sanitizing makes two keys equal, the same one always wins
		tidy[sanitize.Line(key, maxText)] = sanitize.Line(details[key], maxText)
	}
	b, _ := json.Marshal(tidy) // marshalling a map of strings cannot fail
	return string(b)
}

// maxText is the maximum length in bytes of a stored string; longer strings are
// cut off.
const maxText = 500
