// Package inspect finds what somebody changed behind the program's back: in the
// database without the installation's secret, or among the stored files.
//
// The packages seal their rows as they write them (package seal), the audit log
// is a keyed chain, and what must not be missing is compared with that log. What
// was stored before there were seals is sealed once, at the first start that has
// them, and the log says so.
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

// tables are all whose rows are sealed, but for the ledger's and the log's.
var tables = slices.Concat(company.Sealed, []seal.Table{
	person.Sealed, credential.Sealed, credential.SealedDirectories, device.Sealed, device.SealedRefreshTokens, idtoken.Sealed,
	webhook.Sealed, budget.Sealed, asset.Sealed, asset.SealedUploads, run.Sealed, run.SealedResults,
})

// ledgerDetail is where the log keeps which transactions have no seal.
const ledgerDetail = "ledger"

// sealLimit is how long all rows of a large installation may take to be sealed,
// or compared with their seals.
const sealLimit = 6 * time.Hour

// BeginSeals seals what was stored before there were seals, once. The database
// has its key.
func BeginSeals(ctx context.Context, db *sqldb.DB) error {
	ctx = sqldb.WithLimit(ctx, sealLimit)
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		return audit.BeginSeals(ctx, tx, func() (map[string]string, error) {
			details := map[string]string{}
			for _, t := range tables {
				n, err := t.Begin(ctx, tx)
				if err != nil {
					return nil, err
				}
				if n > 0 {
					details[t.Name] = strconv.Itoa(n)
				}
			}
			old, err := ledger.Old(ctx, tx)
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

// Problem is something that is not as the program left it.
type Problem struct {
	Check string // the rule that does not hold
	Row   string
}

// The rules, as "atelier check" names them.
const (
	sealedRule = "a row is as the program wrote it"
	loggedRule = "the ledger has the grants that the audit log has"
)

// VerifySeals returns what is wrong with sealed rows, and whether there are seals:
// there are none between a migration and the first start after it.
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
	tell := func(row string) { problems = append(problems, Problem{sealedRule, row}) }
	for _, t := range tables {
		if err := t.Verify(ctx, tx, tell); err != nil {
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
		tell("audit: seals began more than once")
	}
	if err := ledger.VerifySeals(ctx, tx, old, tell); err != nil {
		return nil, err
	}

	err = verifyGrants(ctx, tx, func(row string) { problems = append(problems, Problem{loggedRule, row}) })
	return problems, err
}

// grantsAtOnce is how many entries of the log are read at a time.
const grantsAtOnce = 1000

// verifyGrants compares what the log says was granted and topped up with what
// the ledger has: a movement that was deleted with both its sides leaves no
// other trace.
func verifyGrants(ctx context.Context, tx *sqldb.Tx, tell func(row string)) error {
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
				tell(fmt.Sprintf("audit %d: no number of tokens", r.Seq))
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
			tell(fmt.Sprintf("ledger_account %s: was granted %d tokens, the audit log has %d", id, has.Granted, granted[id]))
		}
		if has.TopUps != toppedUp[id] {
			tell(fmt.Sprintf("ledger_account %s: was topped up %d times, the audit log has %d", id, has.TopUps, toppedUp[id]))
		}
	}
	return nil
}
