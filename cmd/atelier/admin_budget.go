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
	Tokens     int64  `required:"" help:"How many in a calendar month." placeholder:"N"`
	Hard       bool   `help:"Refuse runs that would go beyond it."`
	WebhookURL string `help:"What hears of alerts." placeholder:"URL"`
}

func (c budgetSetCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		b, err := pp.directory.SetBudget(ctx, principal.Operator(), c.Team, budget.Draft{Tokens: c.Tokens, Hard: c.Hard, WebhookURL: c.WebhookURL})
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
		b, err := pp.directory.Budget(ctx, principal.Operator(), c.Team)
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
		if err := pp.directory.RemoveBudget(ctx, principal.Operator(), c.Team); err != nil {
			return err
		}
		return p.print(c.JSON, struct{}{}, "done")
	})
}

// printBudget shows a budget with the names that the interface has.
func (p *program) printBudget(asJSON bool, b budget.Budget) error {
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
	out := shown{b.TeamID, b.Tokens, b.Hard, nil, b.Month, b.Spent, b.Percent, b.Told, stamp(b.Created), stamp(b.Updated)}
	if b.WebhookURL != "" {
		out.WebhookURL = &b.WebhookURL
	}
	kind := "only tells"
	if b.Hard {
		kind = "is a hard one"
	}
	return p.print(asJSON, out, fmt.Sprintf("in %s %d of %d tokens are spent, %d %%; the budget %s", b.Month, b.Spent, b.Tokens, b.Percent, kind))
}
