package audit

import (
	"context"
	"crypto/hmac"
	"fmt"
	"math"

	"atelier/internal/base/sqldb"
)

const (
	// pageRows is the number of rows read at a time, so that verifying a long
	// log needs little memory and does not block other transactions.
	pageRows = 1000
	// maxProblems is the number of problems after which verification stops.
	maxProblems = 100
)

// Reader runs functions in transactions that only read, as *sqldb.DB does.
type Reader interface {
	Read(ctx context.Context, fn func(*sqldb.Tx) error) error
}

// Verify checks the whole log and returns its head and the problems found, none
// if the log is intact. exported, if not nil, is a head that the operator
// stored outside the database; the log must still contain it. Entries may be
// added at the same time: the check ends at the row that was the newest when it
// began.
//
// A row with changed columns is reported. If its hash was changed to match, the
// hash of the next row no longer matches, and the next row is reported.
// The hash of the first row after a gap cannot be verified.
func Verify(ctx context.Context, db Reader, exported *Head) (Head, []string, error) {
	var head Head
	var headSeal string
	var newest int64
	w := walk{exported: exported, found: exported == nil || *exported == Head{}}
	err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		if tx.CanSeal() {
			w.sealer = tx
		}
		head, headSeal, newest, err = readEnds(ctx, tx)
		return err
	})
	if err != nil {
		return Head{}, nil, fmt.Errorf("verify the audit log: %w", err)
	}
	for after := int64(math.MinInt64); len(w.problems) < maxProblems; {
		var rows []row
		err := db.Read(ctx, func(tx *sqldb.Tx) (err error) { rows, err = pageOfRows(ctx, tx, after, newest, pageRows); return err })
		if err != nil {
			return Head{}, nil, fmt.Errorf("verify the audit log: %w", err)
		}
		for _, r := range rows {
			w.checkRow(r)
		}
		if len(rows) < pageRows {
			w.checkHead(head, headSeal)
			return head, w.problems, nil
		}
		after = rows[len(rows)-1].seq
	}
	w.addProblem("the verification stopped at audit entry %d; there may be more problems", w.last.Seq)
	return head, w.problems, nil
}

// walk is the state of a verification, which reads the rows in ascending order.
type walk struct {
	last     Head // number and hash of the last row read
	exported *Head
	found    bool // the exported head was found
	problems []string

	sealer *sqldb.Tx // provides the key for checking seals; nil if there is no key, and then seals are not checked
	sealed bool      // a row with a seal was read, so all later rows must have a seal
}

func (w *walk) addProblem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// checkRow checks the number, the hash and the seal of the row after w.last.
func (w *walk) checkRow(r row) {
	switch gap := r.seq - w.last.Seq - 1; {
	case r.seq < 1:
		w.addProblem("audit entry %d was inserted", r.seq)
		return
	case gap == 1:
		w.addProblem("audit entry %d is missing", r.seq-1)
	case gap > 1:
		w.addProblem("audit entries %d to %d are missing", w.last.Seq+1, r.seq-1)
	case r.chainHash(w.last.Hash) != r.hash && w.last.Seq == 0:
		w.addProblem("audit entry %d was changed", r.seq)
	case r.chainHash(w.last.Hash) != r.hash:
		w.addProblem("audit entry %d was changed, or entry %d and its hash were changed", r.seq, w.last.Seq)
	}
	switch {
	case w.sealer == nil:
	case r.keyedHash == "" && w.sealed:
		w.addProblem("audit entry %d has no seal", r.seq)
	case r.keyedHash != "" && !hmac.Equal([]byte(r.keyedHash), []byte(r.keyedSeal(w.sealer))):
		w.addProblem("audit entry %d does not match its seal", r.seq)
	}
	w.sealed = w.sealed || r.keyedHash != ""
	w.last = Head{r.seq, r.hash}
	if w.exported != nil && w.last == *w.exported {
		w.found = true
	}
}

// checkHead compares the head with the last row read and checks the head's
// seal.
func (w *walk) checkHead(head Head, seal string) {
	if w.sealer != nil && (w.sealed || seal != "") && !hmac.Equal([]byte(seal), []byte(head.keyedSeal(w.sealer))) {
		w.addProblem("the head of the audit log, entry %d, does not match its seal: the head was changed, or the newest entries were deleted", head.Seq)
	}
	switch {
	case w.last.Seq < head.Seq:
		w.addProblem("the newest audit entries are missing: the log ends at entry %d, but its head is entry %d", w.last.Seq, head.Seq)
	case w.last.Seq > head.Seq:
		w.addProblem("audit entry %d is newer than the head of the log, entry %d", w.last.Seq, head.Seq)
	case w.last.Hash != head.Hash:
		w.addProblem("audit entry %d or the head of the log was changed: their hashes differ", w.last.Seq)
	}
	if !w.found {
		w.addProblem("the exported head, entry %d with the hash %s, is not in the audit log", w.exported.Seq, w.exported.Hash)
	}
}
