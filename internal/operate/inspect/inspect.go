// Package inspect detects changes to the database that the program did not
// make.
//
// Packages store a keyed hash, called a seal, with their rows (see package
// seal), the audit log is a chain of keyed hashes, and the tokens granted in
// the ledger are compared with the audit log. Rows from before the introduction
// of seals are sealed once, at the first start with seals, and the audit log
// records this.
package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/seal"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
	"atelier/internal/money/budget"
	"atelier/internal/money/ledger"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/run/run"
)

// tables are the sealed tables, except those of the ledger and the audit log.
var tables = slices.Concat(company.Sealed, []seal.Table{
	person.Sealed, credential.Sealed, credential.SealedSCIMTokens, device.Sealed, device.SealedRefreshTokens, idtoken.Sealed,
	webhook.Sealed, budget.Sealed, asset.SealedAssets, asset.SealedUploads, run.Sealed, run.SealedResults,
})

// ledgerDetail is the name of a detail of the audit log entry SealsBegun: a
// digest of the ledger transactions that have no seal.
const ledgerDetail = "ledger"

// sealLimit is the time limit for sealing or verifying all rows. It is
// sufficient for a large installation.
const sealLimit = 6 * time.Hour

// BeginSeals seals the rows (stores keyed hashes) that were written before
// seals were introduced. It does so only once. The key for seals must have been
// set on db.
func BeginSeals(ctx context.Context, db *sqldb.DB) error {
	ctx = sqldb.WithLimit(ctx, sealLimit)
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		return audit.BeginSeals(ctx, tx, func() (map[string]string, error) {
			details := map[string]string{}
			for _, t := range tables {
				n, err := t.BeginSeals(ctx, tx)
				if err != nil {
					return nil, err
				}
				if n > 0 {
					details[t.Name] = strconv.Itoa(n)
				}
			}
			old, err := ledger.UnsealedDigest(ctx, tx)
			if err != nil {
				return nil, err
			}
			if old != "" {
				details[ledgerDetail] = old
			}
			return details, nil
		})
	})
}

// Problem is a row that was not written by the program.
type Problem struct {
	Check string // the rule that the row violates
	Row   string
}

// The rules whose violations "atelier check" prints.
const (
	sealedRule = "every row matches its seal"
	loggedRule = "the grants in the ledger match the audit log"
)

// VerifySeals verifies the sealed rows and returns the problems. kept is false
// if the database has no seals yet, which is the case between a migration from
// an older release and the next start of the service.
func VerifySeals(ctx context.Context, db *sqldb.DB) (problems []Problem, kept bool, err error) {
	ctx = sqldb.WithLimit(ctx, sealLimit)
	err = db.Read(ctx, func(tx *sqldb.Tx) error {
		kept, err = audit.Sealed(ctx, tx)
		if err != nil || !kept {
			return err
		}
		problems, err = verifySeals(ctx, tx)
		return err
	})
	return problems, kept, err
}

func verifySeals(ctx context.Context, tx *sqldb.Tx) (problems []Problem, err error) {
	report := func(row string) { problems = append(problems, Problem{sealedRule, row}) }
	for _, t := range tables {
		if err := t.VerifySeals(ctx, tx, report); err != nil {
			return nil, err
		}
	}

	begun, err := audit.List(ctx, tx, audit.Filter{Acts: []audit.Act{audit.SealsBegun}, Limit: 2})
	if err != nil {
		return nil, err
	}
	old := ""
	for _, r := range begun {
		old = r.Details[ledgerDetail]
	}
	if len(begun) > 1 {
		report("the audit log has more than one entry that marks the start of sealing")
	}
	if err := ledger.VerifySeals(ctx, tx, old, report); err != nil {
		return nil, err
	}

	err = verifyGrants(ctx, tx, func(row string) { problems = append(problems, Problem{loggedRule, row}) })
	return problems, err
}

// grantsAtOnce is the number of audit entries that are read at a time.
const grantsAtOnce = 1000

// verifyGrants compares the granted tokens and top-ups in the audit log with
// those in the ledger. Only this check detects ledger transactions that were
// deleted completely.
func verifyGrants(ctx context.Context, tx *sqldb.Tx, report func(row string)) error {
	granted := map[string]int64{}
	toppedUp := map[string]int64{}
	filter := audit.Filter{Acts: []audit.Act{audit.TokensGranted, audit.TokensToppedUp}, Limit: grantsAtOnce}
	for {
		page, err := audit.List(ctx, tx, filter)
		if err != nil {
			return err
		}
		for _, r := range page {
			if r.Act == audit.TokensToppedUp {
				toppedUp[r.PersonID]++
				continue
			}
			tokens, err := strconv.ParseInt(r.Details["tokens"], 10, 64)
			if err != nil {
				report(fmt.Sprintf("audit entry %d has an invalid number of tokens", r.Seq))
				continue
			}
			granted[r.Details["account"]] += tokens
		}
		if len(page) < grantsAtOnce {
			break
		}
		filter.Before = page[len(page)-1].Seq
	}
	booked, err := ledger.Sums(ctx, tx)
	if err != nil {
		return err
	}
	accounts := maps.Clone(booked)
	for id := range granted {
		accounts[id] = booked[id]
	}
	for id := range toppedUp {
		accounts[id] = booked[id]
	}
	for _, id := range slices.Sorted(maps.Keys(accounts)) {
		has := accounts[id]
		if has.Granted != granted[id] {
			report(fmt.Sprintf("ledger_account %s was granted %d tokens according to the ledger, but %d according to the audit log", id, has.Granted, granted[id]))
		}
		if has.TopUps != toppedUp[id] {
			report(fmt.Sprintf("ledger_account %s was topped up %d times according to the ledger, but %d times according to the audit log", id, has.TopUps, toppedUp[id]))
		}
	}
	return nil
}
