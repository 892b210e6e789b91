package main

import (
	"fmt"

	"atelier/client"
)

type webhooksCmd struct {
	Listen     webhooksListenCmd     `cmd:"" help:"Receive webhooks on this machine, verify and print them, and pass them on."`
	Deliveries webhooksDeliveriesCmd `cmd:"" help:"List the webhooks of your runs and whether they arrived."`
	Attempts   webhooksAttemptsCmd   `cmd:"" help:"List the attempts to deliver the webhook of a run."`
	Redeliver  webhooksRedeliverCmd  `cmd:"" help:"Send the webhook of a run once more."`
	Secret     webhooksSecretCmd     `cmd:"" help:"Print the secret that signs your webhooks."`

	Certificate webhooksCertificateCmd `cmd:"" help:"Print the path of the certificate of webhooks listen, for a service to trust."`
}

type webhooksDeliveriesCmd struct {
	jsonFlag
	serviceFlags
	pageFlags
	Status string `help:"Only deliveries with this status: pending, delivered, failing, exhausted or gone." enum:",pending,delivered,failing,exhausted,gone" default:"" placeholder:"STATUS"`
}

func (c webhooksDeliveriesCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	return remoteList[client.WebhookDelivery]{
		columns: []string{"CREATED", "STATUS", "ATTEMPTS", "HOST", "LAST ANSWER", "RUN"},
		read: func(cursor string, limit int64) ([]client.WebhookDelivery, *string, error) {
			page, err := service.Webhooks.ListDeliveries(p.ctx, client.WebhooksListDeliveriesParams{
				Status: client.WebhookState(c.Status), Cursor: cursor, Limit: limit,
			})
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(d client.WebhookDelivery) []string {
			return []string{showTime(d.Created), string(d.Status), showCount(d.Attempts), d.Host, describeAnswer(d.StatusCode, d.Error), d.RequestID}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}

// describeAnswer describes the answer of a webhook's receiver.
func describeAnswer(status *int64, problem *string) string {
	if status != nil { // the problem says no more than that it is not a good one
		return fmt.Sprintf("status %d", *status)
	}
	return showOptional(problem)
}

type webhooksAttemptsCmd struct {
	jsonFlag
	serviceFlags
	pageFlags
	ID string `arg:"" name:"run" help:"Id of the run." complete:"runs"`
}

func (c webhooksAttemptsCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	return remoteList[client.WebhookAttempt]{
		columns: []string{"TIME", "ANSWER", "MILLISECONDS", "ID"},
		read: func(cursor string, limit int64) ([]client.WebhookAttempt, *string, error) {
			page, err := service.Webhooks.ListAttempts(p.ctx, c.ID, client.WebhooksListAttemptsParams{Cursor: cursor, Limit: limit})
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(a client.WebhookAttempt) []string {
			return []string{a.At.Local().Format("2006-01-02 15:04:05"), describeAnswer(a.StatusCode, a.Error), showCount(a.DurationMs), a.ID}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}

type webhooksRedeliverCmd struct{ runFlags }

func (c webhooksRedeliverCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	state, err := service.Webhooks.Redeliver(p.ctx, c.ID)
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, state, "the webhook is queued; atelier webhooks attempts "+c.ID+" shows its way")
}

type webhooksSecretCmd struct {
	jsonFlag
	serviceFlags
	Rotate bool `help:"Create a new secret; the old one stays valid for 24 hours."`
}

func (c webhooksSecretCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	read := service.Webhooks.GetSecret
	if c.Rotate {
		read = service.Webhooks.RotateSecret
	}
	secret, err := read(p.ctx)
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, secret, secret.Secret)
}
