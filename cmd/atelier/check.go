package main

import (
	"context"
	"fmt"
	"slices"

	"atelier/internal/account/personaldata"
	"atelier/internal/base/audit"
	"atelier/internal/base/queue"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/asset"
	"atelier/internal/file/library"
	"atelier/internal/file/quota"
	"atelier/internal/file/resumable"
	"atelier/internal/money/budget"
	"atelier/internal/money/ledger"
	"atelier/internal/money/report"
	"atelier/internal/notify/webhook"
	"atelier/internal/operate/inspect"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
	"atelier/internal/run/run"
)

type checkCmd struct {
	jsonFlag
	Files bool `help:"Read every stored file as well, and compare it with its hash."`
}

func (c checkCmd) Run(p *program) error {
	db, err := p.openForReading(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	limits := run.Limits{PerMinute: p.cfg.Limits.CreatePerMinute, PerHour: p.cfg.Limits.CreatePerHour, Active: p.cfg.Limits.ActiveRuns}
	list, held, err := p.verifyDatabase(p.ctx, db, run.LimitChecks(db.Dialect, limits))
	if err != nil {
		return err
	}

	blobs, err := p.openBlobsForReading(p.ctx)
	if err != nil {
		return err
	}
	defer blobs.Close()
	kept := library.Library{DB: db, Blobs: blobs}
	verify := kept.VerifySizes
	intact := "no file is missing"
	if c.Files {
		verify = kept.VerifyFiles
		intact = "every file is intact"
	}
	report := func(problem string) { list = append(list, violation{"every file is intact", problem}) }
	if err := verify(p.ctx, report); err != nil {
		return err
	}
	if err := resumable.VerifyParts(p.ctx, db, blobs, report); err != nil {
		return err
	}
	held += ", and " + intact
	if c.JSON {
		err = p.printResult(true, map[string]any{"violations": list}, "")
	} else if len(list) == 0 {
		err = p.printResult(false, nil, held)
	} else {
		rows := [][]string{{"ROW", "BREAKS"}}
		for _, v := range list {
			rows = append(rows, []string{v.Row, v.Check})
		}
		err = p.printTable(rows)
	}
	if err == nil && len(list) > 0 {
		err = errViolations
	}
	return err
}

// violation is a database row that violates an invariant.
type violation struct {
	Check string `json:"check"`
	Row   string `json:"row"`
}

// verifyDatabase runs the consistency checks of all packages and verifies the
// seals of rows. more has additional checks that apply only to some databases.
// held is a human-readable summary of the passed checks.
func (in *installation) verifyDatabase(ctx context.Context, db *sqldb.DB, more []sqldb.Check) (list []violation, held string, err error) {
	checks := slices.Concat(person.Checks, personaldata.Checks, session.Checks, company.Checks, credential.Checks, device.Checks, idtoken.Checks, audit.Checks, ledger.Checks, ratelimit.Checks,
		catalog.Checks, queue.Checks(db.Dialect), asset.Checks, library.Checks, resumable.Checks, quota.Checks, board.Checks, webhook.Checks, run.Checks, run.FlowChecks, report.Checks, budget.Checks, more)
	found, err := db.VerifyChecks(ctx, checks)
	if err != nil {
		return nil, "", err
	}
	list = []violation{}
	for _, v := range found {
		list = append(list, violation{v.Check, v.Row})
	}
	held = fmt.Sprintf("all %d checks passed", len(checks))

	hasKey, err := in.openSealKey(ctx, db)
	if err != nil {
		return nil, "", err
	}
	sealed := false
	if hasKey {
		var broken []inspect.Problem
		if broken, sealed, err = inspect.VerifySeals(ctx, db); err != nil {
			return nil, "", err
		}
		for _, b := range broken {
			list = append(list, violation{b.Check, b.Row})
		}
		_, log, err := audit.Verify(ctx, db, nil)
		if err != nil {
			return nil, "", err
		}
		for _, problem := range log {
			list = append(list, violation{"the audit log is unchanged", problem})
		}
	}
	if sealed {
		held += ", every row matches its seal"
	}
	return list, held, nil
}
