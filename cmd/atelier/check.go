package main

import (
	"fmt"
	"slices"

	"atelier/internal/asset"
	"atelier/internal/audit"
	"atelier/internal/board"
	"atelier/internal/budget"
	"atelier/internal/catalog"
	"atelier/internal/company"
	"atelier/internal/credential"
	"atelier/internal/device"
	"atelier/internal/dossier"
	"atelier/internal/idtoken"
	"atelier/internal/ledger"
	"atelier/internal/library"
	"atelier/internal/person"
	"atelier/internal/queue"
	"atelier/internal/ratelog"
	"atelier/internal/report"
	"atelier/internal/run"
	"atelier/internal/session"
	"atelier/internal/storage"
	"atelier/internal/webhook"
)

type checkCmd struct {
	jsonFlag
	Files bool `help:"Read every stored file as well, and compare it with its hash."`
}

func (c checkCmd) Run(p *program) error {
	db, err := p.openDatabase(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Migrated(p.ctx); err != nil {
		return err
	}
	checks := slices.Concat(person.Checks, dossier.Checks, session.Checks, company.Checks, credential.Checks, device.Checks, idtoken.Checks, audit.Checks, ledger.Checks, ratelog.Checks,
		catalog.Checks, queue.Checks(db.Dialect), asset.Checks, library.Checks, storage.Checks, board.Checks, webhook.Checks, run.Checks, report.Checks, budget.Checks,
		run.LimitChecks(db.Dialect, run.Limits{PerMinute: p.cfg.Limits.CreatePerMinute, PerHour: p.cfg.Limits.CreatePerHour, Active: p.cfg.Limits.ActiveRuns}))
	found, err := db.Verify(p.ctx, checks)
	if err != nil {
		return err
	}
	type violation struct {
		Check string `json:"check"`
		Row   string `json:"row"`
	}
	list := []violation{}
	for _, v := range found {
		list = append(list, violation{v.Check, v.Row})
	}
	held := fmt.Sprintf("all %d checks hold", len(checks))
	if c.Files {
		blobs, err := p.openBlobs(p.ctx, -1)
		if err != nil {
			return err
		}
		defer blobs.Close()
		kept := library.Library{DB: db, Blobs: blobs}
		if err := kept.VerifyFiles(p.ctx, func(problem string) { list = append(list, violation{"every file is as it was stored", problem}) }); err != nil {
			return err
		}
		held += ", and every file is as it was stored"
	}
	if c.JSON {
		err = p.print(true, map[string]any{"violations": list}, "")
	} else if len(list) == 0 {
		err = p.print(false, nil, held)
	} else {
		rows := [][]string{{"ROW", "BREAKS"}}
		for _, v := range list {
			rows = append(rows, []string{v.Row, v.Check})
		}
		err = p.table(rows)
	}
	if err == nil && len(list) > 0 {
		err = errViolations
	}
	return err
}
