package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/report"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
)

// maxMails is the maximum number of people who get a mail about one alert.
const maxMails = 100

// maxShown is the maximum length of the name of a team or company in a mail, in
// bytes.
const maxShown = 120

// Event is the body of the webhook event about a budget. It corresponds to the
// schema BudgetEvent of the OpenAPI document.
type Event struct {
	Data      Alert     `json:"data"`
	Timestamp time.Time `json:"timestamp"` // truncated to seconds
	Type      string    `json:"type"`
}

// Alert reports that a team has spent a certain percentage of its budget. It
// corresponds to the schema BudgetAlert of the OpenAPI document.
type Alert struct {
	CompanyID        string `json:"company_id"`
	Month            string `json:"month"` // such as 2026-11, in the company's time zone
	Spent            int64  `json:"spent"` // tokens spent in the month so far
	TeamID           string `json:"team_id"`
	TeamName         string `json:"team_name"`
	ThresholdPercent int64  `json:"threshold_percent"`
	Tokens           int64  `json:"tokens"` // number of tokens in the monthly budget
}

// CheckThresholds sends alerts if a team's spending has reached another
// threshold of its budget. It is called after a run was charged, in the
// transaction that ends the run. For a team without a budget it costs one
// query.
func (k *Service) CheckThresholds(ctx context.Context, tx *sqldb.Tx, teamID string) error {
	// The budget's row is locked before the spending is read, so that of two
	// concurrent transactions the second sees the charges of the first.
	b, err := readBudget(ctx, tx, teamID, tx.Dialect.ForUpdate)
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check budget: %w", err)
	}
	month, spent, err := report.Spent(ctx, tx, b.companyID, teamID, tx.Now)
	if err != nil {
		return fmt.Errorf("check budget: %w", err)
	}
	before := b.alertedIn(month)
	now := reachedThreshold(spent, b.Tokens)
	if b.month > month || now <= before {
		return nil
	}
	if err := setAlerted(ctx, tx, teamID, month, now); err != nil {
		return fmt.Errorf("check budget: %w", err)
	}
	return k.publishAlert(ctx, tx, b, before, Alert{
		CompanyID:        b.companyID,
		TeamID:           teamID,
		TeamName:         b.teamName,
		Month:            month,
		ThresholdPercent: now,
		Tokens:           b.Tokens,
		Spent:            spent,
	})
}

// publishAlert queues a webhook event for each threshold that is greater than
// before and at most the alert's threshold, and one mail about the alert's
// threshold.
func (k *Service) publishAlert(ctx context.Context, tx *sqldb.Tx, b budgetRow, before int64, a Alert) error {
	for _, t := range thresholds {
		if b.WebhookURL == "" || t <= before || t > a.ThresholdPercent {
			continue
		}
		one := a
		one.ThresholdPercent = t
		body, err := json.Marshal(Event{Type: "budget.reached", Timestamp: tx.Now.UTC().Truncate(time.Second), Data: one})
		if err != nil {
			return fmt.Errorf("alert about budget: %w", err)
		}
		if err := webhook.AddNotice(ctx, tx, webhook.Notice{AccountID: a.TeamID, URL: b.WebhookURL, Body: body}); err != nil {
			return fmt.Errorf("alert about budget: %w", err)
		}
	}
	if b.WebhookURL != "" {
		tx.AfterCommit(k.Wake)
	}
	return k.mailAlert(ctx, tx, b, a)
}

func (k *Service) mailAlert(ctx context.Context, tx *sqldb.Tx, b budgetRow, a Alert) error {
	c, err := company.ByID(ctx, tx, a.CompanyID)
	if err != nil {
		return err
	}
	all, err := listRecipients(ctx, tx, a.CompanyID, a.TeamID)
	if err != nil {
		return err
	}
	for _, address := range all {
		m := k.composeMail(b, a, c.Name)
		m.To = address
		if m.CheckMessage() != nil {
			continue // an invalid e-mail address must not prevent the run from ending
		}
		if err := k.Post.QueueMessage(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}

// composeMail returns the mail about an alert. Its recipient is not set.
func (k *Service) composeMail(b budgetRow, a Alert, companyName string) mail.Message {
	team := sanitize.Line(a.TeamName, maxShown)
	text := fmt.Sprintf("The team “%s” of “%s” has spent %d of the %d tokens of its budget for %s. That is %d %%.\n",
		team, sanitize.Line(companyName, maxShown), a.Spent, a.Tokens, a.Month, percentOf(a.Spent, a.Tokens))
	switch {
	case b.Hard && a.ThresholdPercent == 100:
		text += "\nThis is a hard budget: runs that cost tokens are refused until the month ends or the budget is raised.\n"
	case b.Hard:
		text += "\nThis is a hard budget: runs that would exceed it are refused.\n"
	}
	text += "\nYou receive this mail because you manage the team or the company's billing at " + k.AppURL + ".\n"
	return mail.Message{Subject: fmt.Sprintf("%d %% of the budget of %s is spent", a.ThresholdPercent, team), Text: text}
}

// listRecipients returns the verified e-mail addresses of the people who manage
// the billing of the company or who manage the team.
func listRecipients(ctx context.Context, tx *sqldb.Tx, companyID, teamID string) ([]string, error) {
	roles, err := company.Roles(ctx, tx, companyID)
	if err != nil {
		return nil, err
	}
	teamRoles, err := company.TeamRoles(ctx, tx, teamID)
	if err != nil {
		return nil, err
	}
	var billing, managing []string
	for _, r := range roles {
		if r.May(company.ManageBilling) {
			billing = append(billing, r.Name)
		}
	}
	for _, r := range teamRoles {
		if r.May(company.ManageTeam) {
			managing = append(managing, r.Name)
		}
	}
	all, err := listAddresses(ctx, tx, companyID, billing, teamID, managing, maxMails)
	if err != nil {
		return nil, fmt.Errorf("alert about budget: %w", err)
	}
	return all, nil
}
