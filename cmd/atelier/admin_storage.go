package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"atelier/internal/base/config"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/quota"
)

type storageSetCmd struct {
	jsonFlag
	Email   string       `help:"The personal account of this person." xor:"account" required:"" placeholder:"ADDRESS"`
	Team    string       `help:"The account of this team." xor:"account" required:"" placeholder:"ID"`
	Bytes   *config.Size `help:"The account's own limit, such as 100GB; 0 means no limit." xor:"limit" required:"" placeholder:"N"`
	Default bool         `help:"Use storage.account_bytes again." xor:"limit" required:""`
}

func (c storageSetCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		var limit *int64
		if c.Bytes != nil {
			n := int64(*c.Bytes)
			limit = &n
		}
		u, err := pp.accounts.Settings.Storage.SetLimitByOperator(ctx, pp.db, c.Email, c.Team, limit)
		if err != nil {
			return err
		}
		return p.printUsage(c.JSON, u)
	})
}

type storageShowCmd struct {
	jsonFlag
	Email string `help:"The personal account of this person (default: the whole installation)." xor:"account" placeholder:"ADDRESS"`
	Team  string `help:"The account of this team." xor:"account" placeholder:"ID"`
}

func (c storageShowCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if c.Email == "" && c.Team == "" {
			return p.printTotal(ctx, c.JSON, pp.db)
		}
		u, err := pp.accounts.Settings.Storage.UsageByOperator(ctx, pp.db, c.Email, c.Team)
		if err != nil {
			return err
		}
		return p.printUsage(c.JSON, u)
	})
}

func (s streams) printUsage(asJSON bool, u quota.Usage) error {
	out := map[string]any{"used_bytes": u.Used, "deleted_bytes": u.Leaving, "limit_bytes": nil, "own_limit": u.HasOwnLimit}
	limit := "no limit"
	if u.Limit > 0 {
		out["limit_bytes"] = u.Limit
		limit = fmt.Sprintf("the limit is %v", config.Size(u.Limit))
	}
	return s.printResult(asJSON, out, fmt.Sprintf("%d bytes are stored, and %d bytes of deleted files; %s", u.Used, u.Leaving, limit))
}

// printTotal prints the storage that the whole installation uses and the free
// disk space.
func (p *program) printTotal(ctx context.Context, asJSON bool, db *sqldb.DB) error {
	var total int64
	err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		total, err = quota.TotalBytes(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}

	out := map[string]any{"stored_bytes": total, "limit_bytes": nil}
	text := fmt.Sprintf("%d bytes are stored", total)
	if limit := storageLimits(p.cfg).Total; limit > 0 {
		out["limit_bytes"] = limit
		text += fmt.Sprintf("; the limit is %v", config.Size(limit))
	}
	free := map[string]int64{}
	for name, folder := range diskFolders(p.cfg) {
		n, err := quota.FreeSpace(folder)
		if err != nil {
			if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return fmt.Errorf("read the free space of %s: %w", folder, err)
		}
		free[name] = n
		text += fmt.Sprintf("; %d bytes are free in %s", n, folder)
	}
	out["free_bytes"] = free
	return p.printResult(asJSON, out, text)
}
