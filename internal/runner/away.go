package runner

import (
	"context"
	"errors"
	"time"

	"atelier/internal/engine"
	"atelier/internal/generation"
	"atelier/internal/run"
	"atelier/internal/sqldb"
)

// An engine's server can be away. As long as it is, nothing is claimed for it
// here: its runs wait, and those whose tool allows no longer wait are failed.
//
//	there ──two probes fail, or a run finds nobody──▶ away
//	  ▲                                                │ told to all nodes,
//	  └──────────────── a probe succeeds ──────────────┘ every few seconds

const (
	probeTime  = 10 * time.Second // that a probe may take
	probeFirst = time.Second      // after the server was found away
	probeLast  = 15 * time.Second // and after it was away for long
)

// attend keeps an eye on an engine's server.
func (r *Runner) attend(ctx context.Context, p *pool, server engine.Prober) {
	wait, failed := probeFirst, 0
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-p.lost:
			timer.Stop()
			wait, failed = probeFirst, 2
			r.say(ctx, p, true, errors.New("a run found nobody"))
			continue
		case <-timer.C:
		}
		err := r.probe(ctx, server)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			wait, failed = r.Probe, 0
			if p.away.Load() {
				r.say(ctx, p, false, nil)
			}
		default:
			failed++
			wait = min(probeFirst<<min(failed, 10), probeLast)
			if failed >= 2 { // once is an accident
				r.say(ctx, p, true, err)
			}
		}
		r.metrics.away(p.name, p.away.Load())
	}
}

func (r *Runner) probe(ctx context.Context, server engine.Prober) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return server.Probe(ctx)
}

// say turns the engine off or on here, and lets the other nodes know.
func (r *Runner) say(ctx context.Context, p *pool, away bool, why error) {
	was := p.away.Swap(away)
	switch {
	case away && !was:
		r.Log.Warn("an engine's server is away; its runs wait", "engine", p.name, "error", why)
	case !away && was:
		r.Log.Info("an engine's server is back", "engine", p.name)
	}
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if away {
			return run.SetAway(ctx, tx, p.name)
		}
		return run.SetBack(ctx, tx, p.name)
	})
	if err != nil && ctx.Err() == nil {
		r.Log.Warn("runner: cannot tell that a server is away, or back", "engine", p.name, "error", err)
	}
	if !away {
		r.Notice(p.name)
	}
}

// awaits tells whether a run whose engine found nobody may wait for it. It may
// for as long as its tool may run, from its first start.
func (r *Runner) awaits(ctx context.Context, p *pool, j *job) bool {
	if _, ok := p.Engine.(engine.Prober); !ok {
		return false
	}
	p.away.Store(true)
	select {
	case p.lost <- struct{}{}:
	default:
	}
	tool, err := r.Catalog.Version(ctx, j.run.ToolHash)
	return err == nil && r.DB.Now().Sub(j.run.Started) < tool.Timeout
}

// giveUpAway ends runs that waited for a server that is away for as long as
// their tool may run.
func (r *Runner) giveUpAway(ctx context.Context) (found int, err error) {
	var away map[string]time.Time
	var now time.Time
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		now = tx.Now
		away, err = run.Away(ctx, tx)
		return err
	})
	if err != nil {
		return 0, err
	}
	for name, since := range away {
		for after, more := (run.Place{Created: time.UnixMicro(0)}), true; more; {
			var waiting []run.Run
			err := r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
				waiting, err = run.WaitingFor(ctx, tx, name, after, reapBatch)
				return err
			})
			if err != nil {
				return 0, err
			}
			for _, one := range waiting {
				if err := r.giveUpLate(ctx, one, now, since); err != nil {
					return 0, err
				}
				after = run.Place{Created: one.Created, ID: one.ID}
			}
			more = len(waiting) == reapBatch
		}
	}
	return 0, nil
}

// giveUpLate ends a run whose wait has been too long.
func (r *Runner) giveUpLate(ctx context.Context, one run.Run, now, since time.Time) error {
	tool, err := r.Catalog.Version(ctx, one.ToolHash)
	if err != nil {
		return err
	}
	began := one.Started // with the server, which was there or not
	if began.IsZero() {
		began = one.Created
		if since.After(began) {
			began = since
		}
	}
	if now.Sub(began) < tool.Timeout {
		return nil
	}
	err = r.Runs.End(ctx, one, generation.Ending{
		State: run.Failed, ErrorCode: string(engine.Unavailable), ErrorText: "What runs this tool could not be reached in time.",
	})
	if errors.Is(err, generation.ErrOver) {
		return nil
	}
	return err
}
