// Package budget stores the monthly token budgets of teams, and sends alerts
// when certain percentages of a budget are spent.
//
// A budget is a number of tokens per calendar month in the company's time zone.
// The charges of runs that ended in the month count against it; package report
// sums them up. At 50, 80 and 100 % an event is sent to the webhook of the
// budget, and a mail to the people who manage the team or the billing of the
// company. A hard budget rejects further runs.
//
//	run ends ──CheckThresholds──▶ alerted: 0 ▶ 50 ▶ 80 ▶ 100   events and mail, same transaction
//	                                ▲ │
//	                                └─┘ a new month, or Set with a higher budget
//
// A budget's row contains a month and the highest threshold for which an alert
// was sent in that month. The month is never set back. A transaction that ends
// a run first adds the charge to the team's total, then locks the budget's row,
// and only then reads the total. Of two concurrent transactions, the second
// therefore reads the charges of both.
//
// While a budget is being set, no run of the company can end, so that each run
// is counted against either the old or the new budget.
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

// thresholds are the percentages of a budget at which alerts are sent.
var thresholds = []int64{50, 80, 100}

const maxTokens = int64(1e15)

// Draft contains the settings of a budget that users can change.
type Draft struct {
	Tokens     int64 // tokens per month
	Hard       bool  // runs that would exceed the budget are rejected
	WebhookURL string
}

// Budget is the budget of a team and the amount of it that has been spent.
type Budget struct {
	TeamID string
	Draft
	Month   string // the current month, such as 2026-11
	Spent   int64  // tokens spent in the current month
	Percent int64  // spent percentage of the budget, rounded down
	Alerted int64  // highest threshold for which an alert was sent in the current month; 0 if none

	Created, Updated time.Time
}

// Service sets budgets and sends alerts. It is safe for concurrent use.
type Service struct {
	Post  mailqueue.Outbox
	Guard *webhook.Guard
	// Wake is called after the commit of transactions that queue webhook
	// events.
	Wake func()
	// AppURL is the URL of this installation, for mails.
	AppURL string
}

var errNone = fault.New(fault.NotFound, "This team has no budget.")

// Of returns the budget of a team and the amount of it that has been spent this
// month.
func Of(ctx context.Context, tx *sqldb.Tx, teamID string) (Budget, error) {
	k, err := readBudget(ctx, tx, teamID, "")
	if errors.Is(err, sqldb.ErrNoRows) {
		return Budget{}, errNone
	}
	if err != nil {
		return Budget{}, fmt.Errorf("read budget: %w", err)
	}
	b := Budget{TeamID: teamID, Draft: k.Draft, Created: k.created, Updated: k.updated}
	if b.Month, b.Spent, err = report.Spent(ctx, tx, k.companyID, teamID, tx.Now); err != nil {
		return Budget{}, fmt.Errorf("read budget: %w", err)
	}
	b.Percent = percentOf(b.Spent, b.Tokens)
	b.Alerted = k.alertedIn(b.Month)
	return b, nil
}

// Set sets the budget of a team. It sends alerts for thresholds that the
// spending has already reached and for which no alert was sent this month. If
// the new budget is higher, so that the spending is below a threshold again, an
// alert is sent when the spending next reaches that threshold.
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
		problems = problems.Field("tokens", "Must be a whole number from 1 to 1,000,000,000,000,000.")
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

// Left returns the number of tokens that a team's runs can still spend under
// its hard budget: the budget minus the charges in the month that contains at,
// minus the tokens reserved for active runs. It is negative if the budget is
// exceeded. limited is false for teams without a hard budget.
func Left(ctx context.Context, tx *sqldb.Tx, teamID string, at time.Time) (left int64, limited bool, err error) {
	k, err := readBudget(ctx, tx, teamID, "")
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && !k.Hard {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read budget: %w", err)
	}
	_, spent, err := report.Spent(ctx, tx, k.companyID, teamID, at)
	if err != nil {
		return 0, false, fmt.Errorf("read budget: %w", err)
	}
	all, err := ledger.Balances(ctx, tx, []string{teamID}, 0)
	if err != nil {
		return 0, false, err
	}
	return k.Tokens - spent - all[teamID].Held, true, nil
}

// alertedIn returns the highest threshold for which an alert was sent in the
// given month, or 0 if none was sent.
func (k budgetRow) alertedIn(month string) int64 {
	if k.month != month {
		return 0
	}
	return k.alerted
}

// percentOf returns spent as a percentage of tokens, rounded down.
func percentOf(spent, tokens int64) int64 {
	return spent/tokens*100 + spent%tokens*100/tokens // spent*100 could overflow
}

// reachedThreshold returns the highest threshold that the spent tokens have
// reached, or 0 if they have reached none.
func reachedThreshold(spent, tokens int64) (highest int64) {
	for _, t := range thresholds {
		if percentOf(spent, tokens) >= t {
			highest = t
		}
	}
	return highest
}
