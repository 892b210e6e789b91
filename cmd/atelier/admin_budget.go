package main

import (
	"context"
	"fmt"

	"atelier/internal/money/budget"
	"atelier/internal/people/principal"
)

type budgetSetCmd struct {
	jsonFlag
	Team       string `required:"" help:"The team's id." placeholder:"ID"`
	Tokens     int64  `required:"" help:"Tokens per calendar month." placeholder:"N"`
	Hard       bool   `help:"Refuse runs that would exceed the budget."`
	WebhookURL string `help:"Address that receives alerts." placeholder:"URL"`
}

func (c budgetSetCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		b, err := pp.companies.Budgets.SetBudget(ctx, principal.Operator(), c.Team, budget.Draft{Tokens: c.Tokens, Hard: c.Hard, WebhookURL: c.WebhookURL})
		if err != nil {
			return err
		}
		return p.printBudget(c.JSON, b)
	})
}

type budgetShowCmd struct {
	jsonFlag
	Team string `required:"" help:"The team's id." placeholder:"ID"`
}

func (c budgetShowCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		b, err := pp.companies.Budgets.GetBudget(ctx, principal.Operator(), c.Team)
		if err != nil {
			return err
		}
		return p.printBudget(c.JSON, b)
	})
}

type budgetRemoveCmd struct {
	jsonFlag
	Team string `required:"" help:"The team's id." placeholder:"ID"`
}

func (c budgetRemoveCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		if err := pp.companies.Budgets.RemoveBudget(ctx, principal.Operator(), c.Team); err != nil {
			return err
		}
		return p.printResult(c.JSON, struct{}{}, "done")
	})
}

// printBudget prints a budget with the field names of the API.
func (s streams) printBudget(asJSON bool, b budget.Budget) error {
	type shown struct {
		TeamID     string  `json:"team_id"`
		Tokens     int64   `json:"tokens"`
		Hard       bool    `json:"hard"`
		WebhookURL *string `json:"webhook_url"`
		Month      string  `json:"month"`
		Spent      int64   `json:"spent"`
		Percent    int64   `json:"percent"`
		Told       int64   `json:"told_percent"`
		Created    string  `json:"created"`
		Updated    string  `json:"updated"`
	}
	out := shown{b.TeamID, b.Tokens, b.Hard, nil, b.Month, b.Spent, b.Percent, b.Alerted, formatTime(b.Created), formatTime(b.Updated)}
	if b.WebhookURL != "" {
		out.WebhookURL = &b.WebhookURL
	}
	kind := "only sends alerts"
	if b.Hard {
		kind = "is a hard limit"
	}
	return s.printResult(asJSON, out, fmt.Sprintf("%s: %d of %d tokens spent (%d %%); the budget %s", b.Month, b.Spent, b.Tokens, b.Percent, kind))
}
