// Package budget stores the monthly budgets of teams, and alerts people when parts
// of them are spent.
//
// A budget is a number of tokens per calendar month in the company's time zone.
// The charges of runs that ended in the month count against it; package report
// sums them up. At 50, 80 and 100 % the webhook of the budget gets an event, and
// the people who manage the team or the billing of the company get one mail. A
// hard budget refuses further runs.
//
//	run ends ──CheckThresholds──▶ alerted: 0 ▶ 50 ▶ 80 ▶ 100   events and mail, same transaction
//	                                ▲ │
//	                                └─┘ a new month, or Set with a higher budget
//
// The row has the month and the highest threshold that was alerted in it. A
// transaction that has added to the sum of the team locks the row before it reads
// the sum: of two, the second reads the additions of both. Months move forward
// only.
//
// While a budget is set, no run of the company can end, so that each is counted
// against either the old or the new budget.
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

// thresholds are the parts in percent at which people are alerted.
var thresholds = []int64{50, 80, 100}

const maxTokens = int64(1e15)

// Draft is the part of a budget that people set.
type Draft struct {
	Tokens     int64 // per month
	Hard       bool  // runs beyond the budget are refused
	WebhookURL string
}

// Budget is the budget of a team and how much of it is spent.
type Budget struct {
	TeamID string
	Draft
	Month   string // the current month, as in 2026-11
	Spent   int64  // tokens, in the month
	Percent int64  // of the tokens, rounded down
	Alerted int64  // the highest threshold that was alerted in the month

	Created, Updated time.Time
}

// Service sets budgets and sends alerts. It is safe for concurrent use.
type Service struct {
	Post  mailqueue.Outbox
	Guard *webhook.Guard
	// Wake is called for events that wait to be sent, after their commit.
	Wake func()
	// AppURL is the address of this installation in mails.
	AppURL string
}

var errNone = fault.New(fault.NotFound, "This team has no budget.")

// Of returns the budget of a team.
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
	b.Alerted = k.alertedIn(b.Month)
	return b, nil
}

// Set sets the budget of a team. Thresholds that the new budget has reached
// already and that were not alerted are alerted now; alerted thresholds that it
// has not reached are alerted again when it does.
func (k *Service) Set(ctx context.Context, tx *sqldb.Tx, teamID string, d Draft) (Budget, error) {
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
	if err := k.CheckThresholds(ctx, tx, teamID); err != nil {
		return Budget{}, err
	}
	return Of(ctx, tx, teamID)
}

func (k *Service) checkDraft(d Draft) error {
	problems := fault.New(fault.Invalid, "The budget is invalid.")
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

// Remove deletes the budget of a team.
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

// Left returns the tokens that a hard budget leaves to the runs of a team at a
// time: without the charges of the month and the tokens held for active runs.
// The result is negative if more is charged and held. Teams without a hard
// budget are not limited.
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

// alertedIn returns the highest threshold that was alerted in a month.
func (k budgetRow) alertedIn(month string) int64 {
	if k.month != month {
		return 0
	}
	return k.alerted
}

// percentOf returns the spent part of tokens in percent, rounded down.
func percentOf(spent, tokens int64) int64 {
	return spent/tokens*100 + spent%tokens*100/tokens // the plain product could overflow
}

// reachedThreshold returns the highest threshold that is reached, 0 for none.
func reachedThreshold(spent, tokens int64) (highest int64) {
	for _, t := range thresholds {
		if percentOf(spent, tokens) >= t {
			highest = t
		}
	}
	return highest
}
