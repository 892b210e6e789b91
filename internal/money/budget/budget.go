// Package budget holds what teams plan to spend, and tells their people how far
// it is spent.
//
// A budget is a number of tokens in a calendar month by the company's clock.
// What counts against it is what runs that ended in the month were charged,
// which package report sums up. When 50, 80 and 100 % are reached, the budget's
// webhook gets an event for each, and those who manage the team or what the
// company pays get one mail. A hard budget refuses runs besides.
//
//	run ends ──Charged──▶ told: 0 ▶ 50 ▶ 80 ▶ 100   notices and mail, same transaction
//	                        ▲ │
//	                        └─┘ a new month; Set, where a higher budget was reached less
//
// The row says which month it speaks of and how much was told in it. Whoever
// has added to the team's sum locks it, and then looks at what was spent: of
// two, the second sees what both have added. Months move on and never back.
//
// Who sets a budget keeps all runs of the company from ending meanwhile, so
// that none misses it and it misses none.
package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/money/report"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
)

// thresholds are the parts in percent that people are told of.
var thresholds = []int64{50, 80, 100}

const maxTokens = int64(1e15)

// Draft is what a team plans.
type Draft struct {
	Tokens     int64 // in a month
	Hard       bool  // what goes beyond is refused
	WebhookURL string
}

// Budget is what a team planned, and how it stands.
type Budget struct {
	TeamID string
	Draft
	Month   string // this one, as in 2026-11
	Spent   int64  // in it
	Percent int64  // of the tokens, rounded down
	Told    int64  // the highest part in percent that was told of in it

	Created, Updated time.Time
}

// Keeper sets budgets and watches them. It is safe for concurrent use.
type Keeper struct {
	Post  mailqueue.Office
	Guard *webhook.Guard
	// Wake hears of notices that wait to be sent, after their commit.
	Wake func()
	// AppURL is how mail names this installation.
	AppURL string
}

var errNone = fault.New(fault.NotFound, "This team has no budget.")

// Of gives a team's budget.
func Of(ctx context.Context, tx *sqldb.Tx, teamID string) (Budget, error) {
	k, err := readBudget(ctx, tx, teamID, "")
	if errors.Is(err, sqldb.ErrNoRows) {
		return Budget{}, errNone
	}
	if err != nil {
		return Budget{}, fmt.Errorf("budget: %w", err)
	}
	b := Budget{TeamID: teamID, Draft: k.Draft, Created: k.created, Updated: k.updated}
	if b.Month, b.Spent, err = report.Spent(ctx, tx, k.companyID, teamID, tx.Now); err != nil {
		return Budget{}, fmt.Errorf("budget: %w", err)
	}
	b.Percent = percentOf(b.Spent, b.Tokens)
	b.Told = k.alertedIn(b.Month)
	return b, nil
}

// Set gives a team a budget, or another one. What the new one has reached
// already and nobody was told of is told now; what was told and is no longer
// reached is told again when it is.
func (k *Keeper) Set(ctx context.Context, tx *sqldb.Tx, teamID string, d Draft) (Budget, error) {
	if err := k.checkDraft(d); err != nil {
		return Budget{}, err
	}
	t, err := company.TeamByID(ctx, tx, teamID)
	if err != nil {
		return Budget{}, err
	}
	if err := report.Lock(ctx, tx, t.CompanyID); err != nil {
		return Budget{}, fmt.Errorf("set budget: %w", err)
	}
	month, spent, err := report.Spent(ctx, tx, t.CompanyID, teamID, tx.Now)
	if err != nil {
		return Budget{}, fmt.Errorf("set budget: %w", err)
	}
	was, err := readBudget(ctx, tx, teamID, "")
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return Budget{}, fmt.Errorf("set budget: %w", err)
	}
	now := budgetRow{Draft: d, month: max(month, was.month), alerted: was.alerted}
	if was.month <= month {
		now.alerted = min(was.alertedIn(month), reachedThreshold(spent, d.Tokens))
	}
	if err := putBudget(ctx, tx, teamID, now); err != nil {
		return Budget{}, fmt.Errorf("set budget: %w", err)
	}
	if err := k.Charged(ctx, tx, teamID); err != nil {
		return Budget{}, err
	}
	return Of(ctx, tx, teamID)
}

func (k *Keeper) checkDraft(d Draft) error {
	problems := fault.New(fault.Invalid, "This is not a budget that can be kept.")
	if d.Tokens < 1 || d.Tokens > maxTokens {
		problems = problems.Field("tokens", "Tokens are a whole number from 1 to 1,000,000,000,000,000.")
	}
	if d.WebhookURL != "" {
		if problem := k.Guard.CheckURL(d.WebhookURL); problem != "" {
			problems = problems.Field("webhook_url", problem)
		}
	}
	if len(problems.Fields) > 0 {
		return problems
	}
	return nil
}

// Remove takes a team's budget away.
func Remove(ctx context.Context, tx *sqldb.Tx, teamID string) error {
	found, err := deleteBudget(ctx, tx, teamID)
	if err != nil {
		return fmt.Errorf("remove budget: %w", err)
	}
	if !found {
		return errNone
	}
	return nil
}

// Left is what a hard budget leaves to the runs of a team at a moment: what was
// charged in its month and what is held for runs that go on are taken off. It is
// below zero where more is. Teams without a hard budget are not limited.
func Left(ctx context.Context, tx *sqldb.Tx, teamID string, at time.Time) (left int64, limited bool, err error) {
	k, err := readBudget(ctx, tx, teamID, "")
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && !k.Hard {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("budget: %w", err)
	}
	_, spent, err := report.Spent(ctx, tx, k.companyID, teamID, at)
	if err != nil {
		return 0, false, fmt.Errorf("budget: %w", err)
	}
	all, err := ledger.Balances(ctx, tx, []string{teamID}, 0)
	if err != nil {
		return 0, false, err
	}
	return k.Tokens - spent - all[teamID].Held, true, nil
}

// alertedIn is what was told in a month.
func (k budgetRow) alertedIn(month string) int64 {
	if k.month != month {
		return 0
	}
	return k.alerted
}

// percentOf is how much of tokens is spent, rounded down.
func percentOf(spent, tokens int64) int64 {
	return spent/tokens*100 + spent%tokens*100/tokens // the plain product could overflow
}

// reachedThreshold is the highest threshold that is, 0 for none.
func reachedThreshold(spent, tokens int64) (highest int64) {
	for _, t := range thresholds {
		if percentOf(spent, tokens) >= t {
			highest = t
		}
	}
	return highest
}
